"""What the SFU measures of itself, and how it shows it: unknown is NaN, never zero (A2, A10, invariant 4)."""

from __future__ import annotations

import asyncio
import math
import os
import time

from prometheus_client import CollectorRegistry

from sfu.shell.loop_lag import LoopLag
from sfu.shell.metrics import SfuMetrics
from sfu.shell.process_age import process_age_s
from sfu.shell.sampling import take_sample
from shared.records import Capacities, Drain, LoadParts, Milestones, SfuState


async def test_a_loop_that_was_held_up_says_for_how_long_and_only_once() -> None:
    lag = LoopLag()
    try:
        time.sleep(0.4)  # noqa: ASYNC251 - it holds the loop up, which is what is measured
        assert lag.take() >= 0.25, "a look that is overdue counts before it has run"
        await asyncio.sleep(0.15)
        assert lag.take() >= 0.25, "and so does the look itself"
    finally:
        lag.stop()


def test_the_process_age_counts_from_its_start() -> None:
    first, second = process_age_s(), process_age_s()
    assert 0 < first <= second
    assert first >= time.process_time() / os.cpu_count() - 0.02, "it can't have used more CPU than there was"  # type: ignore[operator]


def test_a_sample_knows_the_process_and_the_machine() -> None:
    sample = take_sample(bytes_out=7, bytes_in=8, loop_lag_s=0.5, now=3.0)
    assert (sample.bytes_out, sample.bytes_in, sample.loop_lag_s, sample.at) == (7, 8, 0.5, 3.0)
    assert sample.process_cpu_s > 0
    assert sample.machine is not None
    assert 0 < sample.machine.busy_s <= sample.machine.total_s


class Shown:
    """The metrics after one report."""

    def __init__(self, state: SfuState) -> None:
        self.registry = CollectorRegistry()
        SfuMetrics(self.registry, version="1").show_state(state)

    def __call__(self, name: str, **labels: str) -> float:
        value = self.registry.get_sample_value(f"sluice_sfu_{name}", labels)
        assert value is not None, f"{name} {labels}"
        return value


def test_parts_and_ceilings_are_shown_apart() -> None:
    shown = Shown(
        SfuState(
            address="ws://a", warmed_up=True, milestones=Milestones(healthy_s=0.5),
            capacities=Capacities(egress_mbps=100.0, streams=200, cpu_guard=0.5),
            load_parts=LoadParts(egress_bps=10e6, streams=150, cpu=0.1, loop_lag_s=0.02),
        )
    )  # fmt: skip
    assert [shown("load", part=part) for part in ("node", "egress", "streams", "cpu")] == [0.75, 0.1, 0.75, 0.2]
    assert [shown("ceiling", part=part) for part in ("egress", "streams", "cpu")] == [100e6, 200, 0.5]
    assert (shown("event_loop_lag_seconds"), shown("warmed_up"), shown("cordoned")) == (0.02, 1.0, 0.0)
    assert shown("milestone_seconds", milestone="healthy") == 0.5
    assert math.isnan(shown("milestone_seconds", milestone="first_packet"))
    assert math.isnan(shown("drain_deadline_seconds"))


def test_an_unknown_share_is_no_zero() -> None:
    shown = Shown(SfuState(address="ws://a", load_parts=LoadParts(streams=0, cpu=math.nan)))
    assert [math.isnan(shown("load", part=part)) for part in ("node", "egress", "streams", "cpu")] == [
        True, True, False, True,
    ]  # fmt: skip
    assert math.isnan(shown("event_loop_lag_seconds"))


def test_a_drain_shows_what_is_left_of_its_deadline_and_of_its_lease() -> None:
    drain = Drain(elapsed_s=100.0, drain_max_s=1800.0, lease_left_s=3500.0)
    shown = Shown(SfuState(address="ws://a", status="CORDONED", drain=drain))
    assert (shown("cordoned"), shown("drain_deadline_seconds"), shown("cordon_lease_seconds")) == (1.0, 1700.0, 3500.0)
    late = Shown(SfuState(address="ws://a", status="CORDONED", drain=Drain(elapsed_s=9e3, drain_max_s=1800.0)))
    assert late("drain_deadline_seconds") == 0.0
    assert math.isnan(late("cordon_lease_seconds"))
