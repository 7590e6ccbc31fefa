"""What bots report: each one's moves, gaps and losses, and the totals; `cut` is what decides the exit status."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from client_sim.core.audience import Received


class MoveReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One completed move. Times are milliseconds since the wish to move arose."""

    left: str
    sfu: str
    reason: str = ""
    asked_ms: float | None = None
    """The router was asked."""
    new_link_up_ms: float | None = None
    flowing_ms: float | None = None
    """The last publication flows on the new link."""
    switched_ms: float | None = None
    took_ms: float | None = None
    """The old link was let go."""
    audio_gap_ms: float | None = None
    """Longest gap the mover itself heard meanwhile."""
    video_gap_ms: float | None = None


class BotCounts(msgspec.Struct, kw_only=True):
    """What is counted of one bot, or summed over several."""

    moves: int = 0
    evictions: int = 0
    """Lost its media without having moved."""
    rejoins: int = 0
    """Was back on an SFU after an eviction."""
    failed_connections: int = 0
    """Media links that came to nothing, other than by a cordon meanwhile."""
    resumes: int = 0
    rule_faults: int = 0
    packets_in: int = 0
    packets_out: int = 0
    bytes_in: int = 0
    bytes_out: int = 0
    bad_packets: int = 0
    repaired: int = 0
    """Lost packets of others that a retransmission brought."""
    repairs: int = 0
    """Packets of ours that were sent again."""
    keyframe_requests: int = 0


class BotGaps(msgspec.Struct, frozen=True, kw_only=True):
    """The worst of what receivers measured; None when nothing was received."""

    audio_gap_ms: float | None = None
    video_gap_ms: float | None = None
    audio_content_gap_ms: float | None = None
    """Longest run of missing packets, as playing time."""
    audio_units: int = 0
    video_units: int = 0
    audio_missing: int = 0
    video_missing: int = 0
    duplicates: int = 0
    damaged: int = 0


class BotReport(msgspec.Struct, frozen=True, kw_only=True):
    """One bot."""

    bot: str
    room: str
    phase: str
    sfu: str
    ended: str
    """Why it will not come back, if so."""
    counts: BotCounts
    gaps: BotGaps
    marked_audio_gap_ms: float | None
    """Longest gap since the last `mark`."""
    marked_video_gap_ms: float | None
    moves: tuple[MoveReport, ...]


class FleetReport(msgspec.Struct, frozen=True, kw_only=True):
    """All bots of a process."""

    bots: int
    counts: BotCounts
    gaps: BotGaps
    marked_audio_gap_ms: float | None
    marked_video_gap_ms: float | None
    frame_ms: float
    """Time of one video frame of the clip."""
    worst_send_lag_ms: float
    """How late this process was at worst in sending; gaps include it."""
    marked_send_lag_ms: float
    """The same since the last `mark`."""
    took_s: float
    cut: tuple[str, ...]
    """One sentence for each way in which a player was cut; empty when none was."""
    reports: tuple[BotReport, ...]


def gaps_of(received: Iterable[Received]) -> BotGaps:
    """The worst gaps and the summed counts over publications."""
    by_kind: dict[str, list[Received]] = {"audio": [], "video": []}
    for one in received:
        by_kind.setdefault(one.kind, []).append(one)
    audio, video = by_kind["audio"], by_kind["video"]
    both = [*audio, *video]
    return BotGaps(
        audio_gap_ms=max((one.report.longest_gap_ms for one in audio), default=None),
        video_gap_ms=max((one.report.longest_gap_ms for one in video), default=None),
        audio_content_gap_ms=max((one.report.longest_content_gap_ms for one in audio), default=None),
        audio_units=sum(one.report.units for one in audio),
        video_units=sum(one.report.units for one in video),
        audio_missing=sum(one.report.missing for one in audio),
        video_missing=sum(one.report.missing for one in video),
        duplicates=sum(one.report.duplicates for one in both),
        damaged=sum(one.report.damaged for one in both),
    )


def merge_gaps(parts: Sequence[BotGaps]) -> BotGaps:
    """The worst and the sums over bots."""
    worst = ("audio_gap_ms", "video_gap_ms", "audio_content_gap_ms")
    merged: dict[str, float | None] = {name: worst_of(getattr(part, name) for part in parts) for name in worst}
    sums = {name: sum(getattr(part, name) for part in parts) for name in BotGaps.__struct_fields__ if name not in worst}
    return msgspec.convert({**merged, **sums}, BotGaps)


def merge_counts(parts: Sequence[BotCounts]) -> BotCounts:
    """The sums over bots."""
    return BotCounts(**{name: sum(getattr(part, name) for part in parts) for name in BotCounts.__struct_fields__})


def worst_of(values: Iterable[float | None]) -> float | None:
    """The greatest of what is known; None when nothing is."""
    return max((value for value in values if value is not None), default=None)


def unmarked(report: BotReport) -> BotReport:
    """The report of a bot that has left before a new mark: nothing of it is since then."""
    return msgspec.structs.replace(report, marked_audio_gap_ms=None, marked_video_gap_ms=None)


def cut_of(reports: Sequence[BotReport]) -> tuple[str, ...]:
    """Who was cut: evicted, failed to connect, or not on any SFU in the end."""
    cut: list[str] = []
    for report in reports:
        if report.counts.evictions:
            cut.append(f"{report.bot} lost its media {report.counts.evictions} times without having moved")
        if report.counts.failed_connections:
            cut.append(f"{report.bot} had {report.counts.failed_connections} failed connections")
        if not report.sfu:
            cut.append(f"{report.bot} is on no SFU{f': {report.ended}' if report.ended else ''}")
        if report.gaps.damaged:
            cut.append(f"{report.bot} received {report.gaps.damaged} packets or frames with changed content")
    return tuple(cut)


def fleet_report(
    reports: Sequence[BotReport],
    *,
    frame_ms: float,
    worst_send_lag_ms: float,
    marked_send_lag_ms: float = 0.0,
    took_s: float,
) -> FleetReport:
    """All of it."""
    return FleetReport(
        bots=len(reports),
        counts=merge_counts([report.counts for report in reports]),
        gaps=merge_gaps([report.gaps for report in reports]),
        marked_audio_gap_ms=worst_of(report.marked_audio_gap_ms for report in reports),
        marked_video_gap_ms=worst_of(report.marked_video_gap_ms for report in reports),
        frame_ms=round(frame_ms, 3),
        worst_send_lag_ms=round(worst_send_lag_ms, 2),
        marked_send_lag_ms=round(marked_send_lag_ms, 2),
        took_s=round(took_s, 2),
        cut=cut_of(reports),
        reports=tuple(reports),
    )
