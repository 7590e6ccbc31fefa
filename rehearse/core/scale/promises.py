"""What every scale rehearsal must keep (A4-A6, A9, A11), promise by promise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from rehearse.core.gaps import Bounds, gaps_beyond
from rehearse.core.scale.pattern import PatternStep, first_missing, placed_on_cordoned
from rehearse.core.scale.replay import Replay
from rehearse.core.scale.seen import Seen
from shared.scaling_records import ScaleAction, ScalingRecord

AUDIT = (
    (ScaleAction.SCALE_OUT, "hot"),
    (ScaleAction.LAUNCHED, "capacity"),
    (ScaleAction.SCALE_IN, "quiet"),
    (ScaleAction.TERMINATED, "empty"),
)
"""The audit of a whole rehearsal, oldest first, but for what was only held back or repeated."""
CHANGE_NOTHING = (ScaleAction.HELD, ScaleAction.LAUNCH_FAILED, ScaleAction.CORDON_RENEWED)
"""Actions whose records are no change: one held back, one asked for again, a lease made longer."""


class Promise(msgspec.Struct, frozen=True, kw_only=True):
    """Something that must hold in every rehearsal."""

    promise: str
    broken: list[str]
    """One sentence for each way in which it was not kept."""


def promises(
    seen: Seen, *, came: Sequence[PatternStep], went: Sequence[PatternStep], cpu: Replay, full: Replay, bounds: Bounds
) -> list[Promise]:
    """Each with what broke it. `came` and `went` are the pattern of the scale-out and of the scale-in."""
    return [
        Promise(promise="the play comes to its end", broken=[seen.stuck] if seen.stuck else []),
        Promise(promise="no connection fails", broken=[f"a connection failed: {each}" for each in seen.failures]),
        Promise(promise="no player is cut", broken=_cut(seen)),
        Promise(promise="a node comes: hot ticks to first room", broken=_pattern(came)),
        Promise(promise="a node goes: quiet ticks to zero streams", broken=_pattern(went) + _misplaced(seen)),
        Promise(promise="the audit tells the same", broken=_audit(seen.records)),
        Promise(promise="nothing is sent when it is ended", broken=_not_empty(seen)),
        Promise(promise="CPU alone would never have acted", broken=_would_have_acted(cpu, full)),
        Promise(promise="no player hears a gap", broken=gaps_beyond(seen.gaps, bounds)),
    ]


def _pattern(marks: Sequence[PatternStep]) -> list[str]:
    missing = first_missing(marks)
    return [missing] if missing else []


def _misplaced(seen: Seen) -> list[str]:
    wrong = placed_on_cordoned(seen.lines, seen.victim) if seen.victim else []
    return [f"{line.program} placed {line.fields.get('player')} on the cordoned {seen.victim}" for line in wrong]


def _cut(seen: Seen) -> list[str]:
    broken = [f"{bot} lost its media and had to rejoin" for bot in seen.evicted]
    if seen.left_on_victim:
        broken.append(f"{', '.join(sorted(seen.left_on_victim))} never moved off {seen.victim}")
    moved = {move.bot for move in seen.moves if move.left == seen.victim}
    if not moved:
        broken.append("no player was on the node that went, so no move was seen")
    elif missing := seen.on_victim - moved - seen.left_on_victim:
        broken.append(f"{', '.join(sorted(missing))} left {seen.victim} other than by a move")
    return broken


def _audit(records: Iterable[ScalingRecord]) -> list[str]:
    told = [(record.action, record.reason) for record in records if record.action not in CHANGE_NOTHING]
    want = [(action.value, reason) for action, reason in AUDIT]
    if told == want:
        return []
    words = ", ".join(f"{action} ({reason})" for action, reason in told) or "nothing"
    return [f"the audit must tell of {', '.join(action for action, _ in want)} and nothing else; it tells of {words}"]


def _not_empty(seen: Seen) -> list[str]:
    last, drain, broken = seen.last_report, seen.drain, []
    if last is None:
        return ["the removed node was never heard of"]
    held = {"players": last.players, "streams": last.load_parts.streams, "producers": last.producers}
    broken += [f"{seen.victim} last reported {name} {value}" for name, value in held.items() if value != 0]
    if last.load_parts.egress_bps is None or last.load_parts.egress_bps >= 1:
        broken.append(f"{seen.victim} last reported egress of {last.load_parts.egress_bps} bit/s")
    if not seen.gone:
        broken.append(f"{seen.victim} was not ended")
    elif drain is None:
        broken.append(f"{seen.victim} left no drain report")
    elif drain.evicted or drain.producers_at_exit or drain.consumers_at_exit:
        broken.append(f"{seen.victim} ended with {drain.players_at_exit} players on it")
    return broken


def _would_have_acted(cpu: Replay, full: Replay) -> list[str]:
    broken = []
    if cpu.changed:
        broken.append(f"CPU alone would have made a {cpu.changed} at tick {cpu.changed_at_tick}")
    if cpu.peak is None:
        broken.append("no tick's CPU is known, so nothing is known of what it would have done")
    if full.changed != ScaleAction.SCALE_OUT:
        broken.append("the recorded ticks lead to no scale-out by all parts either, so they prove nothing of CPU alone")
    return broken
