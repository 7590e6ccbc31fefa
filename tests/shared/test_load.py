"""Which part of a node's or a pool's load binds; what can't be true is unknown, never zero (A1, invariant 4)."""

from __future__ import annotations

import math

import pytest

from shared.load import (
    UNKNOWN,
    Ceilings,
    Load,
    Part,
    absurd,
    ceilings_of,
    load_of,
    mean_over_time,
    normalised,
    pool_load,
)
from shared.records import Capacities, LoadParts, SfuState

CEILINGS = Ceilings(egress_bps=700e6, streams=1200)


@pytest.mark.parametrize(
    ("parts", "node", "binding"),
    [
        (LoadParts(egress_bps=350e6, streams=12, cpu=0.1), 0.5, Part.EGRESS),
        (LoadParts(egress_bps=7e6, streams=900, cpu=0.1), 0.75, Part.STREAMS),
        (LoadParts(egress_bps=7e6, streams=12, cpu=0.68), 0.8, Part.CPU),
        (LoadParts(egress_bps=0.0, streams=0, cpu=0.0), 0.0, Part.EGRESS),
        (LoadParts(egress_bps=1400e6, streams=0, cpu=0.0), 2.0, Part.EGRESS),
    ],
)
def test_the_fullest_part_binds_and_is_the_load(parts: LoadParts, node: float, binding: Part) -> None:
    load = normalised(parts, CEILINGS)
    assert (load.node, load.binding) == (pytest.approx(node), binding)


@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -math.inf, -1.0, 1e30])
@pytest.mark.parametrize("part", ["egress_bps", "cpu"])
def test_a_value_that_cant_be_is_unknown_and_so_is_the_load(part: str, bad: float | None) -> None:
    parts = LoadParts(**({"egress_bps": 7e6, "streams": 12, "cpu": 0.1} | {part: bad}))  # type: ignore[arg-type]
    load = normalised(parts, CEILINGS)
    assert (load.node, load.binding, load.known) == (None, None, False)
    assert load.streams == pytest.approx(0.01), "the other parts stay known"
    assert bool(absurd(parts, CEILINGS)) == (bad is not None), "absent is no fault"


@pytest.mark.parametrize("streams", [-1, 2**62])
def test_streams_that_cant_be_are_unknown(streams: int) -> None:
    parts = LoadParts(egress_bps=7e6, streams=streams, cpu=0.1)
    assert normalised(parts, CEILINGS).node is None
    assert absurd(parts, CEILINGS) == (Part.STREAMS,)


@pytest.mark.parametrize(
    "capacities",
    [
        Capacities(egress_mbps=0.0),
        Capacities(egress_mbps=math.nan),
        Capacities(egress_mbps=-700.0),
        Capacities(egress_mbps=1e-6),
        Capacities(egress_mbps=0.99),
        Capacities(streams=0),
        Capacities(streams=-5),
        Capacities(cpu_guard=0.0),
        Capacities(cpu_guard=7.0),
        Capacities(cpu_guard=1e-9),
        Capacities(cpu_guard=0.0099),
    ],
)
def test_without_ceilings_there_is_no_load(capacities: Capacities) -> None:
    state = SfuState(
        address="ws://a", capacities=capacities, load_parts=LoadParts(egress_bps=1.0, streams=1, cpu=0.1), load=0.01
    )
    assert ceilings_of(capacities) is None
    assert load_of(state) == UNKNOWN
    assert load_of(state, CEILINGS).known, "other ceilings can be given"


def test_the_least_ceilings_are_ceilings() -> None:
    least = Capacities(egress_mbps=1.0, streams=1, cpu_guard=0.01)
    assert ceilings_of(least) == Ceilings(egress_bps=1e6, streams=1, cpu_guard=0.01)


@pytest.mark.parametrize(
    ("parts", "part"),
    [
        (LoadParts(egress_bps=100e6, streams=0, cpu=0.0), Part.EGRESS),
        (LoadParts(egress_bps=0.0, streams=100, cpu=0.0), Part.STREAMS),
        (LoadParts(egress_bps=0.0, streams=0, cpu=1.0), Part.CPU),
    ],
)
def test_no_node_carries_a_hundred_times_its_ceiling(parts: LoadParts, part: Part) -> None:
    """A ceiling that can be and a figure that can be, and together they can't: one such node would fill a pool."""
    smallest = Ceilings(egress_bps=1e6, streams=1, cpu_guard=0.01)
    assert normalised(parts, smallest).node is None
    assert absurd(parts, smallest) == (part,)
    barely = Ceilings(egress_bps=1.01e6, streams=2, cpu_guard=0.0101)
    assert normalised(parts, barely).known
    assert absurd(parts, barely) == ()


def test_a_node_is_judged_by_its_own_ceilings_not_by_the_mixture_it_reports() -> None:
    state = SfuState(
        address="ws://a", capacities=Capacities(egress_mbps=100.0, streams=100, cpu_guard=0.5), load=0.9,
        load_parts=LoadParts(egress_bps=10e6, streams=20, cpu=0.2),
    )  # fmt: skip
    assert load_of(state) == Load(egress=0.1, streams=0.2, cpu=0.4)


def test_a_node_without_a_report_is_counted_and_does_not_pull_the_mean_down() -> None:
    full = Load(egress=0.1, streams=0.9, cpu=0.2)
    pool = pool_load([full, UNKNOWN, Load(egress=0.5, streams=None, cpu=0.1)])
    assert (pool.mean, pool.nodes, pool.unknown, pool.binding) == (0.9, 1, 2, Part.STREAMS)
    assert pool.parts == full


def test_the_pools_mean_is_of_the_nodes_loads_not_of_one_part() -> None:
    pool = pool_load([Load(egress=0.9, streams=0.1, cpu=0.1), Load(egress=0.1, streams=0.7, cpu=0.1)])
    assert pool.mean == pytest.approx(0.8)
    assert pool.binding is Part.EGRESS


def test_the_mean_of_an_empty_pool_is_no_number() -> None:
    pool = pool_load([])
    assert (pool.mean, pool.parts, pool.binding, pool.nodes, pool.unknown) == (None, UNKNOWN, None, 0, 0)


def test_over_a_tick_samples_that_do_not_know_are_left_out() -> None:
    samples = [Load(egress=0.2, streams=0.4, cpu=None), UNKNOWN, Load(egress=0.4, streams=0.6, cpu=None)]
    mean = mean_over_time(samples)
    assert (mean.egress, mean.streams, mean.cpu, mean.node) == (pytest.approx(0.3), 0.5, None, None)


@pytest.mark.parametrize("share", [0.65, 0.30])
@pytest.mark.parametrize("ceiling", [300, 400, 960, 1200])
def test_a_pool_that_is_at_a_line_is_at_it_however_many_samples_were_added_up(share: float, ceiling: int) -> None:
    node = Load(egress=0.1, streams=round(share * ceiling) / ceiling, cpu=0.1)
    means = {pool_load([mean_over_time([node] * n)] * nodes).mean for n in range(1, 61) for nodes in range(1, 21)}
    assert means == {share}
