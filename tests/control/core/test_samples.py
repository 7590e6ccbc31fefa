"""What is made of a node's reports over a tick: unknown is not zero, and never what was known before (A3, A11)."""

from __future__ import annotations

import math

import msgspec
import pytest

from control.core.autoscaler.samples import NodeCeilings, NodeReport, Samples
from shared.records import Capacities, LoadParts, SfuState

BASE = SfuState(
    address="ws://s",
    sfu="s",
    incarnation=1,
    revision=1,
    players=0,
    producers=0,
    consumers=0,
    capacities=Capacities(egress_mbps=1000, streams=100),
    load_parts=LoadParts(cpu=0.1, egress_bps=0.0, streams=50),
)


def heard(*states: SfuState) -> NodeReport:
    """One look a second at each of these, after one that makes the SFU known."""
    samples = Samples(ceilings=NodeCeilings(), max_age_s=5.0)
    for second, state in enumerate((msgspec.structs.replace(BASE, revision=0), *states)):
        samples.look([state], now=float(second))
    return samples.reports(now=float(len(states)))["s"]


def saying(revision: int, incarnation: int = 1, **parts: float | None) -> SfuState:
    """The base state with other figures."""
    load_parts = msgspec.structs.replace(BASE.load_parts, **parts)
    return msgspec.structs.replace(BASE, revision=revision, incarnation=incarnation, load_parts=load_parts)


def test_the_load_is_the_mean_of_the_looks() -> None:
    assert heard(saying(1, streams=20), saying(2, streams=40)).load.streams == pytest.approx(0.3)


def test_a_node_that_has_gone_blind_is_unknown_whatever_it_said_before() -> None:
    report = heard(saying(1, streams=20), saying(2, streams=None))
    assert not report.load.known
    assert not report.known


def test_the_mean_of_a_restarted_node_has_nothing_of_its_former_life() -> None:
    assert heard(saying(9, streams=80), saying(1, 2, streams=20)).load.streams == pytest.approx(0.2)


def test_empty_means_that_everything_is_known_to_be_nothing() -> None:
    assert heard(saying(1, streams=0)).empty
    assert not heard(saying(1, streams=0, egress_bps=None)).empty, "unknown is not zero"
    assert not heard(saying(1, streams=None)).empty


@pytest.mark.parametrize("count", ["players", "consumers", "producers"])
@pytest.mark.parametrize("value", [None, 1, -1])
def test_a_count_that_is_left_or_not_known_leaves_no_node_empty(count: str, value: int | None) -> None:
    assert not heard(msgspec.structs.replace(saying(1, streams=0), **{count: value})).empty


@pytest.mark.parametrize(
    ("count", "value"),
    [("egress_bps", math.nan), ("streams", -1), ("cpu", 1.5), ("rooms", -1), ("clients", -1), ("tracks", -1)],
)
def test_a_figure_that_can_not_be_is_a_fault_and_makes_the_node_unknown(count: str, value: float) -> None:
    assert heard(saying(1, rooms=0, clients=0, tracks=0)).known
    report = heard(saying(1, **{count: value}))  # type: ignore[arg-type]
    assert len(report.faults) == 1
    assert report.faults[0] in ("egress", count)
    assert (report.known, report.streams, report.empty) == (False, None, False)


@pytest.mark.parametrize("count", ["players", "consumers", "producers"])
def test_a_negative_count_is_a_fault(count: str) -> None:
    report = heard(msgspec.structs.replace(saying(1), **{count: -1}))
    assert (report.faults, report.known) == ((count,), False)


@pytest.mark.parametrize("cores", [-1, 0, 4097, 2**40])
def test_a_node_with_cores_that_no_machine_has_is_not_believed(cores: int) -> None:
    report = heard(msgspec.structs.replace(saying(1), capacities=Capacities(cores=cores)))
    assert (report.faults, report.known) == (("cores",), False)


@pytest.mark.parametrize("cores", [1, 4096])
def test_a_node_with_cores_that_a_machine_may_have_is(cores: int) -> None:
    assert heard(msgspec.structs.replace(saying(1), capacities=Capacities(cores=cores))).known


@pytest.mark.parametrize(
    ("capacities", "faults"),
    [
        (Capacities(egress_mbps=1e-6), ("ceilings",)),
        (Capacities(cpu_guard=1e-9), ("ceilings",)),
        (Capacities(streams=0), ("ceilings",)),
        (Capacities(egress_mbps=1.0), ("egress",)),
    ],
)
def test_a_node_that_would_be_a_hundred_times_full_is_not_believed(
    capacities: Capacities, faults: tuple[str, ...]
) -> None:
    report = heard(msgspec.structs.replace(saying(1, egress_bps=100e6), capacities=capacities))
    assert (report.faults, report.known) == (faults, False)


def test_the_settings_ceilings_are_what_a_node_is_judged_by() -> None:
    samples = Samples(ceilings=NodeCeilings(egress_mbps=1.0), max_age_s=5.0)
    for revision in (0, 1):
        samples.look([saying(revision, egress_bps=100e6)], now=float(revision))
    report = samples.reports(now=1.0)["s"]
    assert (report.faults, report.known) == (("egress",), False)
