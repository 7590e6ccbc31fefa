"""Taking a roll back: which cordons can be lifted, and what can't be undone."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from operators.core.roll.planning import BEFORE_DRAIN
from operators.core.roll.seen import RollSeen
from shared.records import SfuStatus
from shared.roll_records import RollRecord, RollState


@dataclass(frozen=True, slots=True, kw_only=True)
class Abort:
    """What an abort comes to."""

    uncordon: tuple[str, ...] = ()
    """SFUs that this roll has cordoned and that still run."""
    kept: tuple[str, ...] = ()
    """What stays as it is, a sentence each."""


def abort(plan: RollRecord, seen: RollSeen) -> Abort:
    """What can be taken back now."""
    uncordon: list[str] = []
    kept: list[str] = []
    for step in plan.steps:
        old = seen.sfus.get(step.old)
        if old is not None and old.run == step.old_run and old.status is not SfuStatus.ONLINE:
            if old.sigterm:
                kept.append(f"{step.old} got SIGTERM, which nothing takes back: it ends when it is empty")
            elif old.status is SfuStatus.TERMINATING:
                kept.append(f"{step.old} is in its final sequence and ends")
            elif step.stage not in BEFORE_DRAIN:
                uncordon.append(step.old)
        elif step.stage not in BEFORE_DRAIN and step.old_run:
            kept.append(f"{step.old} has ended")
        if step.stage != "waiting" and step.new in seen.sfus:
            kept.append(f"{step.new} stays and takes players; 'sluice drain {step.new}' ends it")
    return Abort(uncordon=tuple(dict.fromkeys(uncordon)), kept=tuple(dict.fromkeys(kept)))


def aborted(plan: RollRecord, *, now: float) -> RollRecord:
    """The plan that nothing goes on with."""
    return replace(plan, state=RollState.ABORTED.value, ended_at=now, pause="")
