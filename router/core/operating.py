"""Which operator's commands a router passes on (D12): a ladder of refusals, and how many an operator may give."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import StrEnum

from shared.rate import TokenBucket
from shared.records import CommandVerb, DrainCause, SfuState, SfuStatus, status_of

COMMANDS_PER_S = 1.0
COMMAND_BURST = 30.0
"""An operator who drains a rack by hand clicks this often; a script that does more uses the command line."""
MAX_OPERATORS = 256
"""Operators whose pace is remembered; the one heard of longest ago is forgotten first."""


class Denied(StrEnum):
    """Why a command is not passed on; stable, pages act on it."""

    UNKNOWN_SFU = "unknown-sfu"
    """Redis has no record of such an SFU."""
    SIGTERM = "got-sigterm"
    """Its process got SIGTERM, which nothing takes back (D12)."""
    TERMINATING = "terminating"
    """It runs its final sequence."""
    TOO_FAST = "too-fast"
    """More commands than `COMMANDS_PER_S` allows."""


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal and what to do instead."""

    why: Denied
    fix: str


def denial(verb: CommandVerb, state: SfuState | None) -> Denial | None:
    """Why `verb` is not passed on for an SFU in `state` (None: it has no record); None when it is."""
    if state is None:
        return Denial(Denied.UNKNOWN_SFU, "it has ended or has just begun; look at the list of SFUs again in a second")
    if status_of(state) is SfuStatus.TERMINATING:
        return Denial(Denied.TERMINATING, "it is about to be gone; start another SFU if you need the capacity")
    if verb is CommandVerb.UNCORDON and state.drain is not None and state.drain.cause == DrainCause.SIGTERM:
        return Denial(Denied.SIGTERM, "a process that got SIGTERM ends; start another SFU in its place")
    return None


class Pace:
    """How often each operator has given commands lately."""

    def __init__(self) -> None:
        self._buckets: OrderedDict[str, TokenBucket] = OrderedDict()

    def take(self, operator: str, *, now: float) -> Denial | None:
        """One command of this operator; a denial when there were too many."""
        bucket = self._buckets.get(operator)
        if bucket is None:
            bucket = self._buckets[operator] = TokenBucket(now=now, per_s=COMMANDS_PER_S, burst=COMMAND_BURST)
            if len(self._buckets) > MAX_OPERATORS:
                self._buckets.popitem(last=False)
        self._buckets.move_to_end(operator)
        if bucket.take(now=now):
            return None
        return Denial(Denied.TOO_FAST, f"wait a second; {COMMAND_BURST:g} at once and {COMMANDS_PER_S:g} a second pass")
