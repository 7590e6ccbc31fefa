"""What is made of a node's reports over a tick: unknown is not zero, and never what was known before (A3, A11)."""

from __future__ import annotations

import msgspec
import pytest

from control.core.autoscaler.samples import NodeCeilings, Report, Samples
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


def heard(*states: SfuState) -> Report:
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
    assert not heard(msgspec.structs.replace(saying(1, streams=0), players=None)).empty
