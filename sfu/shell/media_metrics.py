"""The media port's and the plane's counters for Prometheus, read when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from sfu.plane.api import PlaneTotals
from sfu.shell.udp import MediaPort

_TOTALS = {
    "packets_in": "Datagrams of media received",
    "bytes_in": "Bytes of media received",
    "packets_out": "Datagrams of media sent",
    "bytes_out": "Bytes of media sent",
    "forwarded": "RTP packets sent to consumers",
    "nacks_sent": "Packets asked for again at publishers",
    "nacks_received": "Packets consumers asked for again",
    "plis_sent": "Key frames asked for at publishers",
    "plis_received": "Key frames consumers asked for",
    "rtx_received": "Retransmissions and probes received",
    "resent": "Packets sent again to consumers",
    "feedbacks_sent": "Transport-cc feedback packets sent to publishers",
    "feedbacks_received": "Transport-cc feedback packets of consumers received",
}


class MediaCollector(Collector):
    """Register it once with the program's registry. Labels are drop reasons and ends, all bounded."""

    def __init__(self, port: MediaPort) -> None:
        self._port = port

    def collect(self) -> Iterator[Metric]:
        totals = self._port.plane.snapshot().totals
        for name, text in _TOTALS.items():
            yield CounterMetricFamily(f"sluice_sfu_media_{name}", text, value=getattr(totals, name))
        yield self._labelled("sluice_sfu_media_drops", "Datagrams dropped", "reason", self._drops(totals))
        yield self._labelled("sluice_sfu_peer_ends", "Peer connections ended from outside", "reason", self._port.ends)

    def _drops(self, totals: PlaneTotals) -> dict[str, int]:
        drops = Counter(totals.drops)
        drops.update({str(reason): count for reason, count in self._port.drops.items()})
        return dict(drops)

    @staticmethod
    def _labelled(name: str, text: str, label: str, counts: dict[str, int]) -> CounterMetricFamily:
        family = CounterMetricFamily(name, text, labels=[label])
        for value, count in sorted(counts.items()):
            family.add_metric([value], count)
        return family
