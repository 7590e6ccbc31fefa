"""Every metric that a program of ours really registers, with its labels: read off the registries themselves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import create_autospec

from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector

from client_sim.core.report import BotCounts, BotGaps, FleetReport
from client_sim.shell.metrics import BotsCollector
from control.shell.scaling_metrics import ControlMetrics
from router.shell.metrics import Metrics
from sfu.plane.api import PlaneTotals, SocketPlane
from sfu.shell.media_metrics import MediaCollector
from sfu.shell.metrics import SfuMetrics

SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


@dataclass(frozen=True)
class Registered:
    """One metric as a program registers it."""

    name: str
    kind: str
    help: str
    labels: frozenset[str]

    @property
    def series(self) -> list[str]:
        """Names of its series, as queries use them."""
        return [self.name + suffix for suffix in SUFFIXES[self.kind]]


def registered() -> dict[str, Registered]:
    """By name, without the suffix of its series."""
    sfu = CollectorRegistry()
    SfuMetrics(sfu, version="v1")
    found: dict[str, Registered] = {}
    for registry in (Metrics().registry, sfu, ControlMetrics(scale_out_at=0.65).registry):
        for metric in {id(m): m for m in _wrapped(registry)}.values():
            described = metric.describe()[0]
            labels = frozenset(metric._labelnames)
            found[described.name] = Registered(described.name, described.type, described.documentation, labels)
    for collector in (_media(), _bots()):
        for family in collector.collect():
            labels = frozenset(label for sample in family.samples for label in sample.labels if label != "le")
            found[family.name] = Registered(family.name, family.type, family.documentation, labels)
    return found


def _wrapped(registry: CollectorRegistry) -> list[MetricWrapperBase]:
    return [c for c in registry._collector_to_names if isinstance(c, MetricWrapperBase)]


def _media() -> Collector:
    snapshot = SimpleNamespace(totals=PlaneTotals(drops={"stranger": 1}))
    plane = create_autospec(SocketPlane, instance=True, gso=True)
    plane.snapshot.return_value = snapshot
    plane.sending.return_value = (0, 0, 0, [])
    port: Any = SimpleNamespace(plane=plane, drops={}, ends=Counter(closed=1), streams=None)
    return MediaCollector(port)


def _bots() -> Collector:
    report = cast(FleetReport, SimpleNamespace(counts=BotCounts(), gaps=BotGaps(), reports=()))
    return BotsCollector(lambda: report)
