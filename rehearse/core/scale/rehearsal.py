"""What a scale rehearsal comes to: what was seen, promise by promise, and whether each was kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from control.core.scaling_settings import ScalingSettings
from rehearse.core.gaps import ON_LOOPBACK, Bounds
from rehearse.core.scale.log import LogLine
from rehearse.core.scale.pattern import PatternStep, scale_in, scale_out
from rehearse.core.scale.promises import Promise, promises
from rehearse.core.scale.replay import Replay, replay
from rehearse.core.scale.seen import Seen
from rehearse.core.scale.timeline import Timeline, timeline
from shared.fleet_rows import short
from shared.load import Part


class ScaleReport(msgspec.Struct, frozen=True, kw_only=True):
    """A rehearsal's result, as `--json` prints it. Times `_at_s` are seconds since the beginning of the play."""

    kind: str
    passed: bool
    broken: list[str]
    """Why it did not pass, one sentence each."""
    promises: list[Promise]
    failed_connections: int
    players_moved: int
    players_stayed: int
    """Players that were on the removed node until its end."""
    players_evicted: int
    audio_gap_ms_max: float | None
    """Longest gap over the moves."""
    video_gap_ms_max: float | None
    audio_gap_ms_bound: float
    video_gap_ms_bound: float
    machine_stall_ms_max: float | None
    """Longest time for which an idle process of this machine was kept waiting meanwhile [ms]: gaps of that size are the
    machine's, not the fleet's."""
    launched: str
    """The node that came."""
    launch_to_healthy_s: float | None
    launch_to_first_packet_s: float | None
    launch_to_capacity_s: float | None
    launch_to_first_room_s: float | None
    terminated: str
    """The node that went."""
    cordon_to_terminate_s: float | None
    streams_at_terminate: int | None
    egress_bps_at_terminate: float | None
    cpu_alone: Replay
    """The same ticks, decided by CPU alone."""
    all_parts: Replay
    """The same ticks, decided by all parts in the same way: what shows that CPU alone would have been heard."""
    timeline: Timeline
    tick_s: float
    nodes: int
    routers: int
    bots: int
    """Players that took part."""
    seed: int
    redis_server: str
    took_s: float
    logs: str
    """Where the programs' logs are kept when it did not pass."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setting:
    """The settings and sizes of a rehearsal."""

    settings: ScalingSettings
    nodes: int
    routers: int
    bots: int
    seed: int
    redis_server: str = ""
    stall_ms: float | None = None
    took_s: float = 0.0
    logs: str = ""


def summarize(seen: Seen, setting: Setting, *, bounds: Bounds = ON_LOOPBACK) -> ScaleReport:
    """The report."""
    settings = setting.settings
    came = scale_out(seen.lines, hits=settings.scale_out_hits, window=settings.scale_out_window)
    went = scale_in(seen.lines, ticks=settings.scale_in_ticks)
    cpu = replay(seen.ticks, settings, nodes=setting.nodes, parts=(Part.CPU,))
    full = replay(seen.ticks, settings, nodes=setting.nodes, parts=tuple(Part))
    kept = promises(seen, came=came, went=went, cpu=cpu, full=full, bounds=bounds)
    broken = [sentence for promise in kept for sentence in promise.broken]
    terminate = _line(went, "terminate at zero")
    cordon = _line(went, "cordon")
    return ScaleReport(
        kind="scale",
        passed=not broken,
        broken=broken,
        promises=kept,
        failed_connections=len(seen.failures),
        players_moved=len({move.bot for move in seen.moves if move.left == seen.victim}),
        players_stayed=len(seen.left_on_victim),
        players_evicted=len(seen.evicted),
        audio_gap_ms_max=short(seen.gaps.audio_ms),
        video_gap_ms_max=short(seen.gaps.video_ms),
        audio_gap_ms_bound=bounds.audio_ms,
        video_gap_ms_bound=round(bounds.video_frames * seen.gaps.frame_ms, 1),
        machine_stall_ms_max=short(setting.stall_ms),
        launched=_field(came, "healthy", "sfu"),
        launch_to_healthy_s=_after(came, "healthy"),
        launch_to_first_packet_s=_after(came, "first packet"),
        launch_to_capacity_s=_after(came, "capacity"),
        launch_to_first_room_s=_after(came, "first room"),
        terminated=seen.victim,
        cordon_to_terminate_s=short(terminate.at - cordon.at) if terminate and cordon else None,
        streams_at_terminate=terminate.count("streams") if terminate else None,
        egress_bps_at_terminate=terminate.figure("egress_bps") if terminate else None,
        cpu_alone=cpu,
        all_parts=full,
        timeline=timeline(seen.lines, seen.moves, began_at=seen.began_at, began=seen.began),
        tick_s=settings.tick_s,
        nodes=setting.nodes,
        routers=setting.routers,
        bots=setting.bots,
        seed=setting.seed,
        redis_server=setting.redis_server,
        took_s=round(setting.took_s, 1),
        logs=setting.logs if broken else "",
    )


def _line(marks: Sequence[PatternStep], step: str) -> LogLine | None:
    return next((mark.line for mark in marks if mark.step == step), None)


def _field(marks: Sequence[PatternStep], step: str, key: str) -> str:
    line = _line(marks, step)
    return line.fields.get(key, "") if line else ""


def _after(marks: Sequence[PatternStep], step: str) -> float | None:
    line = _line(marks, step)
    return line.figure("after_s") if line else None
