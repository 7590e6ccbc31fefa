"""What a controller exports to Prometheus (A10). Labels are bounded: never a node's or an SFU's id."""

from __future__ import annotations

import math
from collections.abc import Mapping

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from control.core.autoscaler.effects import TickDecision
from control.core.autoscaler.world import NodeKind
from shared.front.metrics import FrontMetrics
from shared.load import Part
from shared.scaling_records import ScalingFigures

_LAUNCH_S = (1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800)


class ControlMetrics:
    """The controller's own registry and everything in it. What is not known is NaN: Prometheus draws a gap, no zero."""

    def __init__(self, *, scale_out_at: float) -> None:
        self.registry = registry = CollectorRegistry()
        self.front = FrontMetrics(registry, program="control")
        self.leader = Gauge("sluice_control_leader", "1 while this controller may scale.", registry=registry)
        self.token = Gauge("sluice_control_token", "Its fencing token; 0 while it may not.", registry=registry)
        self.mean_load = Gauge(
            "sluice_control_mean_load", "Mean over capacity of each node's fullest part; 1 is full.", registry=registry
        )
        self.mean_part = Gauge(
            "sluice_control_mean_part", "Mean over capacity of one part; 1 is full.", ["part"], registry=registry
        )
        self.nodes = Gauge("sluice_control_nodes", "Nodes by what they count as.", ["kind"], registry=registry)
        self.floor = Gauge("sluice_control_floor", "The least nodes now.", registry=registry)
        self.maximum = Gauge("sluice_control_maximum", "The most nodes.", registry=registry)
        self.scale_out_at = Gauge(
            "sluice_control_scale_out_at", "The mean load from which a tick is hot.", registry=registry
        )
        self.out_hits = Gauge("sluice_control_out_hits", "Hot ticks within the window.", registry=registry)
        self.quiet_ticks = Gauge("sluice_control_quiet_ticks", "Quiet ticks in a row.", registry=registry)
        self.cooldown_left = Gauge(
            "sluice_control_cooldown_left_seconds", "Until the pool may change again.", registry=registry
        )
        self.decisions = Counter("sluice_control_decisions", "Records in the audit.", ["action"], registry=registry)
        self.ticks = Counter("sluice_control_ticks", "Ticks by what they came to.", ["outcome"], registry=registry)
        self.refused_writes = Counter(
            "sluice_control_refused_writes", "Writes that the store refused as late.", registry=registry
        )
        self.bad_input = Counter("sluice_control_bad_input", "Input that was ignored.", ["kind"], registry=registry)
        self.store_trouble = Gauge(
            "sluice_control_store_trouble", "What went wrong with Redis since the start.", ["kind"], registry=registry
        )
        self.pool_errors = Counter(
            "sluice_control_pool_errors", "Calls to the pool that failed.", ["pool", "call"], registry=registry
        )
        self.launch = Histogram(
            "sluice_control_launch_seconds",
            "From the decision to each stage of a launch.",
            ["stage"],
            buckets=_LAUNCH_S,
            registry=registry,
        )
        self.scale_out_at.set(scale_out_at)  # a setting: known whether we lead or not
        self.lead(0)

    def show(self, decision: TickDecision) -> None:
        """Take a tick's figures."""
        figures = decision.figures
        self._means(figures)
        for kind in NodeKind:
            self.nodes.labels(kind.value).set(getattr(figures, kind.value))
        self.floor.set(figures.floor)
        self.maximum.set(figures.maximum)
        self.out_hits.set(figures.out_hits)
        self.quiet_ticks.set(figures.quiet_ticks)
        self.cooldown_left.set(decision.state.cooldown_left_s)

    def store(self, counts: Mapping[str, int]) -> None:
        """What the store has counted of its own troubles."""
        for kind, count in counts.items():
            self.store_trouble.labels(kind).set(count)

    def lead(self, token: int) -> None:
        """Whether this controller leads; if not, its figures are not worth drawing."""
        self.leader.set(1 if token else 0)
        self.token.set(token)
        if not token:
            self._means(ScalingFigures())
            counts = [self.nodes.labels(kind.value) for kind in NodeKind]
            for gauge in (*counts, self.floor, self.maximum, self.out_hits, self.quiet_ticks, self.cooldown_left):
                gauge.set(math.nan)

    def _means(self, figures: ScalingFigures) -> None:
        self.mean_load.set(_or_nan(figures.mean_load))
        for part in Part:
            self.mean_part.labels(part.value).set(_or_nan(getattr(figures, f"mean_{part.value}")))


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value
