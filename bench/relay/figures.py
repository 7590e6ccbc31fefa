"""What a run of `sluice bench relay` measured, out of two readings of both sides' counters."""

from __future__ import annotations

import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

from bench.relay.peers import PeerStats

Flow = tuple[int, int, int, int, int, int]
"""See `Generator.flows`."""

Histogram = Sequence[tuple[int, int]]
"""`(upper bound [us], packets)`, bounds rising, empty buckets left out."""

BUCKET_BEGINS = 8 / 9
"""Of its upper bound, at the lowest: the plane's histogram has eight buckets an octave."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FlowCounts:
    """Who has sent and got what, at a moment when nothing was under way."""

    sent: Mapping[int, int]
    """See `Generator.sent_by`."""
    flows: Sequence[Flow]


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """All counters at one moment."""

    at: float
    """Monotonic seconds."""
    peer: PeerStats
    flows: Sequence[Flow]
    arrivals: Histogram
    sent: tuple[int, int, int, int, int]
    """See `Generator.sent`."""
    generator_s: float
    """CPU of the generator's process."""
    busy_s: float
    """CPU that all programs spent on the cores in use."""
    overrun: int = 0
    """Datagrams that found the generator's socket full."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RelayFigures:
    """Keys are what `--json` prints. None: this server does not tell, or this workload has no such thing."""

    workload: str
    server: str
    version: str = ""
    """The version of another server and of the libraries it is made of."""
    subscribers: int
    profile: str
    seconds: float
    packets_in_per_s: float
    packets_out_per_s: float
    loss: float
    """Share of what publishers sent that did not come to a subscriber who wants it, one who gets nothing included."""
    cpu_us_per_packet: float
    """CPU of the whole server process (user and system) per forwarded packet."""
    cpu_us_user: float
    cpu_us_sys: float
    floor_us_per_packet: float | None = None
    """CPU the kernel alone took for the same sends, in a process that does nothing else."""
    packets_per_send: float | None
    delay_ms_p50: float
    """Ours: from the kernel's receive time-stamp to the return of the send. Others: as `arrival_ms_p50`."""
    delay_ms_p99: float
    arrival_ms_p50: float
    """Seen from outside: from the generator's send of a frame to the arrival of each of its packets."""
    arrival_ms_p99: float
    rss_kib_per_subscriber: float
    server_core_share: float
    generator_core_share: float
    others_core_share: float
    """CPU that other programs took on the cores in use, of one core."""
    generator_drops: int
    """Packets that arrived and found the generator's socket full: lost, and not by the server."""
    late_frames: float
    """Share of the publishers' frames that the generator sent over 2 ms late."""
    verified: int
    """Packets decrypted by the subscriber that is looked at closely, with their content and order checked."""
    joins: int | None = None
    """Subscribers who joined while it was measured."""
    joins_per_s: float | None = None
    rss_kib_warm: float | None = None
    """`churn`: memory of the server after joins and leaves to warm up, and after those that are measured."""
    rss_kib_end: float | None = None
    drops: Mapping[str, int] = field(default_factory=dict)
    delays: Histogram = ()
    """The histogram behind `delay_ms_*`."""


def loss(before: FlowCounts, after: FlowCounts, wanted: Sequence[Collection[int]]) -> float:
    """The share of packets lost by subscribers whose tracks (by SSRC) are `wanted`, by number; 1: nothing was sent."""
    fresh = [0] * len(wanted)
    for sign, traffic in ((-1, before), (1, after)):
        for subscriber, _, _, _, _, packets in traffic.flows:
            if subscriber < len(wanted):
                fresh[subscriber] += sign * packets
    expected = [sum(after.sent[ssrc] - before.sent[ssrc] for ssrc in ssrcs) for ssrcs in wanted]
    # One subscriber's surplus does not make up for what another lacks.
    missing = sum(max(0, due - got) for due, got in zip(expected, fresh, strict=True))
    return missing / sum(expected) if any(expected) else 1.0


def difference(first: Histogram, last: Histogram) -> list[tuple[int, int]]:
    """What came between two readings of a histogram."""
    earlier = {reading[0]: reading[1] for reading in first}
    return [(bound, count - earlier.get(bound, 0)) for bound, count in last if count > earlier.get(bound, 0)]


def quantile(counts: Histogram, share: float) -> float:
    """Milliseconds, between a bucket's ends in proportion; 0 for an empty histogram."""
    wanted, seen, below = share * sum(count for _, count in counts), 0, 0.0
    for bound, count in counts:
        if seen + count >= wanted:
            begin = max(below, bound * BUCKET_BEGINS)
            return (begin + (bound - begin) * (wanted - seen) / count) / 1000
        seen, below = seen + count, bound
    return 0.0


def received(first: Sequence[Flow], last: Sequence[Flow]) -> int:
    """Packets that came to all subscribers between two readings."""
    return sum(flow[2] for flow in last) - sum(flow[2] for flow in first)


def figures(
    first: Reading,
    last: Reading,
    *,
    workload: str,
    server: str,
    profile: str,
    subscribers: int,
    lost: float,
    rss_bytes: int,
    verified: int,
) -> RelayFigures:
    """`subscribers` were there all the time; `lost` is what `loss` says of them, `rss_bytes` the memory they took."""
    elapsed = last.at - first.at
    came = received(first.flows, last.flows)
    forwarded = came if last.peer.forwarded is None else last.peer.forwarded - (first.peer.forwarded or 0)
    user_s, sys_s = last.peer.user_s - first.peer.user_s, last.peer.sys_s - first.peer.sys_s
    generator_s = last.generator_s - first.generator_s
    arrivals = difference(first.arrivals, last.arrivals)
    delays = difference(first.peer.delays, last.peer.delays) if last.peer.delays else arrivals
    frames = last.sent[2] - first.sent[2]
    user_us, sys_us = 1e6 * user_s / max(1, forwarded), 1e6 * sys_s / max(1, forwarded)
    return RelayFigures(
        workload=workload,
        server=server,
        subscribers=subscribers,
        profile=profile,
        seconds=elapsed,
        packets_in_per_s=(last.sent[0] - first.sent[0]) / elapsed,
        packets_out_per_s=forwarded / elapsed,
        loss=lost,
        cpu_us_per_packet=user_us + sys_us,
        cpu_us_user=user_us,
        cpu_us_sys=sys_us,
        packets_per_send=_packets_per_send(first.peer, last.peer),
        delay_ms_p50=quantile(delays, 0.5),
        delay_ms_p99=quantile(delays, 0.99),
        arrival_ms_p50=quantile(arrivals, 0.5),
        arrival_ms_p99=quantile(arrivals, 0.99),
        rss_kib_per_subscriber=rss_bytes / 1024 / max(1, subscribers),
        server_core_share=(user_s + sys_s) / elapsed,
        generator_core_share=generator_s / elapsed,
        others_core_share=max(0.0, last.busy_s - first.busy_s - user_s - sys_s - generator_s) / elapsed,
        generator_drops=last.overrun - first.overrun,
        late_frames=(last.sent[3] - first.sent[3]) / max(1, frames),
        verified=verified,
        drops={
            kind: count - first.peer.drops.get(kind, 0)
            for kind, count in last.peer.drops.items()
            if count > first.peer.drops.get(kind, 0)
        },
        delays=delays,
    )


def _packets_per_send(first: PeerStats, last: PeerStats) -> float | None:
    if last.sends is None or last.datagrams is None:
        return None
    return (last.datagrams - (first.datagrams or 0)) / max(1, last.sends - (first.sends or 0))


def median(rounds: Sequence[RelayFigures]) -> RelayFigures:
    """The median of each figure separately; words, drops and histograms are those of the round with the median CPU.

    User and system time are parts of that median, divided as those of all rounds together are: their own medians would
    not add up to it.
    """
    middle = sorted(rounds, key=lambda one: one.cpu_us_per_packet)[(len(rounds) - 1) // 2]
    numbers = {}
    for one in fields(RelayFigures):
        values = [getattr(figures, one.name) for figures in rounds]
        if all(isinstance(value, float) for value in values):
            numbers[one.name] = statistics.median(values)
    told = replace(middle, **numbers)
    user, whole = sum(one.cpu_us_user for one in rounds), sum(one.cpu_us_user + one.cpu_us_sys for one in rounds)
    user_us = told.cpu_us_per_packet * user / whole if whole else 0.0
    return replace(told, cpu_us_user=user_us, cpu_us_sys=told.cpu_us_per_packet - user_us)
