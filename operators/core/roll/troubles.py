"""Why a roll pauses: every sentence here is the first thing that an operator reads."""

from __future__ import annotations

from collections.abc import Iterator

from operators.core.fleet_view import span
from operators.core.roll.planning import BEFORE_DRAIN
from operators.core.roll.seen import RolledSfu, RollSeen
from shared.records import SfuStatus
from shared.roll_records import RollRecord, RollStep, RouterStage, StepStage

GONE_WITHIN_S = 10.0
"""A report that has not come so long after an SFU's end does not come."""
ROUTER_WITHIN_S = 60.0
"""A router that is not back by then needs a person: it starts within seconds."""
WITHOUT_MEDIA_S = 3.0
"""A player that tries again for a moment is no reason."""
FREEZE_MS = 500
"""A move with a longer gap counts as a freeze; a bound of the router's histograms. A move costs two frame times."""


def trouble(plan: RollRecord, seen: RollSeen, *, now: float) -> str:
    """The first reason to pause, or empty."""
    return next(_all(plan, seen, now=now), "")


def _all(plan: RollRecord, seen: RollSeen, *, now: float) -> Iterator[str]:
    if seen.failed:
        yield f"{_players(seen.failed)} could not connect to the SFU they were sent to"
    if seen.freezes:
        yield f"{seen.freezes} moves had a gap of more than {FREEZE_MS} ms"
    if plan.more_without_since_at and now - plan.more_without_since_at >= WITHOUT_MEDIA_S:
        yield (
            f"media does not get through for {_players(seen.without_media)}, "
            f"and for {plan.without_media} when the roll was begun or gone on with"
        )
    for router in plan.routers:
        if router.stage == RouterStage.RESTARTING and now - router.since_at > ROUTER_WITHIN_S:
            yield f"{router.router} is not back {span(now - router.since_at)} after it was told to start again"
    for step in plan.steps:
        yield from _of_step(plan, step, seen, now=now)


def _of_step(plan: RollRecord, step: RollStep, seen: RollSeen, *, now: float) -> Iterator[str]:
    new, old = seen.sfus.get(step.new), seen.sfus.get(step.old)
    if step.stage in (StepStage.STARTING, StepStage.WARMING):
        yield from _coming(plan, step, new, now=now)
    if step.stage == StepStage.WAITING and step.old_run and old is None and not step.forgiven:
        yield f"{step.old} has ended before its turn and left no drain report of an empty end: it may have died"
    if step.stage == StepStage.DRAINING:
        yield from _going(step, old, now=now)
    if step.report is not None and step.report.evicted and not step.forgiven:
        yield f"{step.old} ended with {_players(step.report.evicted)} on it, who had to rejoin"
    replaced = step.stage not in BEFORE_DRAIN and not step.forgiven
    ended_later = any(each.old == step.new and each.stage not in BEFORE_DRAIN for each in plan.steps)
    if replaced and not ended_later and new is None:
        yield f"{step.new}, which replaces {step.old}, is gone"


def _coming(plan: RollRecord, step: RollStep, new: RolledSfu | None, *, now: float) -> Iterator[str]:
    waited_s = now - step.since_at
    here = new is not None and new.run > step.above
    if here and new is not None and new.version != plan.version:
        yield f"{step.new} came up as release {new.version!r} and not {plan.version!r}"
    if here and new is not None and new.status is not SfuStatus.ONLINE:
        yield f"{step.new}, which is to replace {step.old}, is {new.status.value}"
    if waited_s <= plan.warm_up_within_s:
        return
    if not here or new is None:
        yield f"{step.new} has not shown up within {span(waited_s)}"
    elif new.silent:
        yield f"{step.new} has fallen silent before it had warmed up"
    else:
        why = f": its probe call fails ({new.probe_failure})" if new.probe_failure else ""
        yield f"{step.new} has not warmed up within {span(waited_s)}{why}"


def _going(step: RollStep, old: RolledSfu | None, *, now: float) -> Iterator[str]:
    if old is not None and old.run == step.old_run:
        if step.cordoned and old.status is SfuStatus.ONLINE:
            yield f"{step.old} takes players again: its drain was taken back"
    elif now - step.since_at > GONE_WITHIN_S and not step.forgiven:
        yield f"{step.old} is gone and left no drain report: it died, and its players had to rejoin"


def _players(count: int) -> str:
    return "1 player" if count == 1 else f"{count} players"
