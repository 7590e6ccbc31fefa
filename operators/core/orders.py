"""Whether an SFU has followed an operator's command, read off its state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from operators.core.fleet_view import SILENT_AFTER_S, span
from shared.records import CommandVerb, DrainCause, ExitScope, SfuState, SfuStatus, sfu_id, status_of
from shared.store.answers import HeardSfu


class CommandAnswer(StrEnum):
    """How far a command has come."""

    DONE = "done"
    """The fleet's state says so."""
    WAITING = "waiting"
    """Not yet."""
    REFUSED = "refused"
    """It will not be followed; the detail says why."""


@dataclass(frozen=True, slots=True)
class CommandProgress:
    """How far a command has come, and why, in words."""

    answer: CommandAnswer
    detail: str = ""


DONE = CommandProgress(CommandAnswer.DONE)
WAITING = CommandProgress(CommandAnswer.WAITING)


def progress(verb: CommandVerb, state: SfuState | None) -> CommandProgress:
    """How far `verb` has come, given the SFU's newest state; None: its record is gone."""
    if verb is CommandVerb.UNCORDON:
        return _uncordon(state)
    if state is None:
        return CommandProgress(CommandAnswer.DONE, "it has ended already")
    if status_of(state) not in (SfuStatus.CORDONED, SfuStatus.TERMINATING):
        return WAITING
    held = state.drain is not None and not state.drain.exit_when_empty
    # A drain on top of a hand cordon must let go of the hold, or it would never end.
    return WAITING if verb is CommandVerb.DRAIN and held else DONE


def _uncordon(state: SfuState | None) -> CommandProgress:
    if state is None:
        return CommandProgress(CommandAnswer.REFUSED, "it has ended")
    status = status_of(state)
    if status is SfuStatus.ONLINE:
        return DONE
    if status is SfuStatus.TERMINATING:
        return CommandProgress(CommandAnswer.REFUSED, "it is in its final sequence")
    if state.drain is not None and state.drain.cause == DrainCause.SIGTERM:
        return CommandProgress(CommandAnswer.REFUSED, "its process got SIGTERM, which nothing takes back")
    return WAITING


def leaves_none(sfu: str, fleet: Iterable[HeardSfu]) -> bool:
    """Whether to cordon this SFU leaves players nowhere to go: it takes work, and no other one that is heard does."""
    working = {
        sfu_id(heard.state)
        for heard in fleet
        if status_of(heard.state) is SfuStatus.ONLINE and (heard.silent_for_s or 0.0) < SILENT_AFTER_S
    }
    return working == {sfu}


def why_not(heard: HeardSfu | None) -> str:
    """What to look at when an SFU does not follow, for the end of an error's sentence."""
    silent_for_s = heard.silent_for_s if heard else None
    if silent_for_s is not None and silent_for_s >= SILENT_AFTER_S:
        return f"nothing was heard of it for {span(silent_for_s)}: has its process died?"
    return "is a router up that this SFU is linked to? 'sluice status' shows both"


def touched(scope: ExitScope, target: str, states: Iterable[SfuState]) -> list[str]:
    """Ids of the SFUs that a forced exit given now would end: the cordoned ones in scope, and no other (D8)."""
    return sorted(
        sfu_id(state) for state in states if status_of(state) is SfuStatus.CORDONED and _in_scope(scope, target, state)
    )


def _in_scope(scope: ExitScope, target: str, state: SfuState) -> bool:
    if scope is ExitScope.SFU:
        return sfu_id(state) == target
    return scope is ExitScope.ALL_CORDONED or state.version == target
