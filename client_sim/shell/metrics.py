"""Counters of a bots process for Prometheus, read when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from client_sim.core.report import BotCounts, FleetReport


class BotsCollector(Collector):
    """Reads the report of the moment."""

    def __init__(self, report: Callable[[], FleetReport]) -> None:
        self._report = report

    def collect(self) -> Iterator[Metric]:
        """Each count as a counter, the worst gaps as gauges."""
        report = self._report()
        for name in BotCounts.__struct_fields__:
            yield CounterMetricFamily(f"sluice_bots_{name}", f"Bots: {name}", value=getattr(report.counts, name))
        for name in ("audio_gap_ms", "video_gap_ms"):
            value = getattr(report.gaps, name)
            yield GaugeMetricFamily(f"sluice_bots_{name}", f"Bots: worst {name} received", value=value or 0.0)
        yield CounterMetricFamily("sluice_bots_missing", "Units that never came", value=_missing(report))
        yield CounterMetricFamily("sluice_bots_damaged", "Units with changed content", value=report.gaps.damaged)
        placed = sum(1 for one in report.reports if one.sfu)
        yield GaugeMetricFamily("sluice_bots_placed", "Bots that are on an SFU", value=placed)


def _missing(report: FleetReport) -> int:
    return report.gaps.audio_missing + report.gaps.video_missing
