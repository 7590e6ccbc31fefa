"""The media port's and the plane's counters for Prometheus, read at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from sfu.plane.api import PlaneTotals, SocketPlane
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


DELAY_BOUNDS_US = (
    *range(128, 769, 128), *range(1024, 2048, 256), *range(2048, 4097, 256), 5120, 6144, 8192, 16384, 32768, 65536,
)  # fmt: skip
"""Upper bounds of the forwarding delay's buckets [us]: where the plane's own begin, finest around the 3 ms of A2."""


class MediaCollector(Collector):
    """Register it once with the program's registry. Labels are drop reasons and ends, all bounded."""

    def __init__(self, port: MediaPort) -> None:
        self._port = port

    def collect(self) -> Iterator[Metric]:
        totals = self._port.plane.snapshot().totals
        for name, text in _TOTALS.items():
            yield CounterMetricFamily(f"sluice_sfu_media_{name}", text, value=getattr(totals, name))
        if isinstance(plane := self._port.plane, SocketPlane):
            sends, _, _, delays = plane.sending()
            yield CounterMetricFamily(
                "sluice_sfu_media_sends", "Sends to the kernel, a run of datagrams each", value=sends
            )
            yield GaugeMetricFamily("sluice_sfu_media_gso", "1 while runs are sent as one (UDP GSO)", value=plane.gso)
            yield delay_histogram(delays)
        streams = self._port.streams
        yield GaugeMetricFamily(
            "sluice_sfu_media_tcp_connections", "Open TCP connections for media", value=streams.count if streams else 0
        )
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


def delay_histogram(delays: Sequence[tuple[int, int]]) -> HistogramMetricFamily:
    """Of `(upper bound [us], packets)` pairs. It has no sum: the plane does not add the delays up."""
    family = HistogramMetricFamily(
        "sluice_sfu_forwarding_delay_seconds", "From the kernel's receive time-stamp to the return of the send"
    )
    buckets = [
        (repr(bound / 1e6), float(sum(count for upper, count in delays if upper <= bound))) for bound in DELAY_BOUNDS_US
    ]
    whole = float(sum(count for _, count in delays))
    family.add_metric([], [*buckets, ("+Inf", whole)], sum_value=None)
    return family
