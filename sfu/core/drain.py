"""The life of an SFU from its first cordon to its exit (D2, D6, D7, D8, D12): one machine, no clock, no sockets.

    ONLINE --cordon, drain, SIGTERM--> CORDONED --empty, last moment, exit--> TERMINATING --done--> ENDED
       ^-------------uncordon-------------'   (not after SIGTERM)

The shell tells it what happened with `handle`, does the effects in their order, and calls `handle(TimePassed())` at
`next_deadline()`. It ends at zero players, at its last moment before the kill, or forced; in no other case
(invariant 7).
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sfu.core.asking import Asking
from sfu.core.drain_bounds import DrainBounds
from sfu.core.drain_events import (
    AnnounceCordoned,
    AnnounceUncordoned,
    AskPlayers,
    CordonOrdered,
    CordonStamped,
    Effect,
    Event,
    ExitOrdered,
    ExitProcess,
    FinalSequenceDone,
    InterruptedAtTerminal,
    OccupancyChanged,
    Outcome,
    RejectOrder,
    RunFinalSequence,
    SigtermReceived,
    UncordonOrdered,
)
from shared.records import Drain, DrainCause, SfuStatus

COMMANDS_KEPT = 256
"""Ids of commands already applied; several routers repeat each of them."""


class DrainState(StrEnum):
    """Where the SFU is in its life."""

    ONLINE = "ONLINE"
    """Takes new work."""
    CORDONED = "CORDONED"
    """Takes no new work, forwards what it carries; held by hand or on its way to the exit."""
    TERMINATING = "TERMINATING"
    """The final sequence runs; nothing can be taken back."""
    ENDED = "ENDED"
    """The process may exit."""


@dataclass(slots=True)
class _Cordon:
    """The facts of a cordon in progress; times are monotonic seconds."""

    cause: DrainCause
    by: str
    reason: str
    command: str
    began: float
    exit_when_empty: bool = False
    ask_at: float | None = None
    final_at: float | None = None
    since_at: float | None = None


class DrainMachine:
    """The machine. Its public attributes are for reading."""

    def __init__(self, bounds: DrainBounds, *, rng: random.Random) -> None:
        self.bounds = bounds
        self.state = DrainState.ONLINE
        self.outcome: Outcome | None = None
        self.occupancy = OccupancyChanged()
        self.story: deque[str] = deque(maxlen=64)
        """The last changes of state, for errors and logs."""
        self._rng = rng
        self._cordon: _Cordon | None = None
        self._interrupts = 0
        self._commands: deque[str] = deque(maxlen=COMMANDS_KEPT)
        self._asking: Asking | None = None
        self._end_by = math.inf

    # --- what others read ---

    @property
    def status(self) -> SfuStatus:
        """The word that routers and players hear."""
        return SfuStatus.TERMINATING if self.state is DrainState.ENDED else SfuStatus(self.state.value)

    @property
    def takes_new_work(self) -> bool:
        """True while ONLINE."""
        return self.state is DrainState.ONLINE

    @property
    def asking(self) -> bool:
        """True once the remaining players are being asked to move."""
        return self._asking is not None

    @property
    def asked(self) -> int:
        """How many players have been asked to move."""
        return self._asking.asked if self._asking else 0

    @property
    def began(self) -> float | None:
        """When the cordon in progress began [monotonic s]."""
        return self._cordon.began if self._cordon else None

    def facts(self, *, now: float) -> Drain | None:
        """The drain as it goes into `SfuState`; None while ONLINE. Both bounds count from the cordon's beginning."""
        cordon = self._cordon
        if cordon is None:
            return None
        kill_at = None if cordon.final_at is None else cordon.final_at + self.bounds.lead_s
        return Drain(
            cause=cordon.cause.value,
            by=cordon.by,
            reason=cordon.reason,
            command=cordon.command,
            exit_when_empty=cordon.exit_when_empty,
            elapsed_s=round(now - cordon.began, 3),
            drain_max_s=None if cordon.ask_at is None else round(cordon.ask_at - cordon.began, 3),
            grace_s=None if kill_at is None else round(kill_at - cordon.began, 3),
            asking=self.asking,
            since_at=cordon.since_at,
        )

    def next_deadline(self) -> float | None:
        """When `TimePassed` is due [monotonic s]; None: nothing waits for time."""
        if self.state is DrainState.TERMINATING:
            return self._end_by
        if self.state is not DrainState.CORDONED or self._cordon is None or self._cordon.final_at is None:
            return None
        ask_at = self._asking.next_at if self._asking else self._cordon.ask_at
        return min(self._cordon.final_at, math.inf if ask_at is None else ask_at)

    # --- what happens ---

    def handle(self, event: Event, *, now: float) -> list[Effect]:
        """Take an event in; the shell does the effects in their order."""
        before = self.state
        handler = _TABLE.get((self.state, type(event)))
        effects = handler(self, event, now) if handler else []
        effects += self._advance(now)
        if self.state is not before:
            self.story.append(f"{now:.3f} {type(event).__name__}: {before} -> {self.state}")
        return effects

    def check(self) -> None:
        """Raise `AssertionError` with the story when an invariant does not hold."""
        cordon, state = self._cordon, self.state
        promises = {
            "ONLINE has no cordon, everything else has one": (state is DrainState.ONLINE) == (cordon is None),
            "an outcome exactly once terminating": (self.outcome is not None)
            == (state in (DrainState.TERMINATING, DrainState.ENDED)),
            "a held SFU has no bounds": cordon is None
            or cordon.exit_when_empty == (cordon.final_at is not None) == (cordon.ask_at is not None),
            "only a bounded drain asks": not self.asking or (cordon is not None and cordon.ask_at is not None),
            "asks end before the final sequence": cordon is None
            or cordon.final_at is None
            or (cordon.ask_at is not None and cordon.ask_at < cordon.final_at),
        }
        broken = [promise for promise, kept in promises.items() if not kept]
        if broken:
            raise AssertionError(f"{'; '.join(broken)}. Story: {' | '.join(self.story)}")

    def _applied(self, command: str) -> bool:
        """True when a command of this id was applied before; remembers it."""
        if not command:
            return False
        if command in self._commands:
            return True
        self._commands.append(command)
        return False

    def _sigterm(self, event: SigtermReceived, now: float) -> list[Effect]:
        return self._end_for_signal("signal", now)

    def _end_for_signal(self, by: str, now: float) -> list[Effect]:
        cordon = self._cordon
        if cordon is None:
            cordon = self._cordon = _Cordon(DrainCause.SIGTERM, by, "", "", began=now)
            self.state = DrainState.CORDONED
        elif cordon.cause is DrainCause.SIGTERM:
            return []  # invariant 6: a repeated SIGTERM changes nothing
        cordon.cause, cordon.by = DrainCause.SIGTERM, by
        self._bound(cordon, now)
        return [AnnounceCordoned()]

    def _bound(self, cordon: _Cordon, now: float) -> None:
        """Give a cordon its bounds, counted from now: that is when the clock of the kill starts."""
        cordon.exit_when_empty = True
        cordon.final_at = now + self.bounds.final_after_s
        cordon.ask_at = min(now + self.bounds.drain_max_s, math.inf if cordon.ask_at is None else cordon.ask_at)

    def _interrupt(self, event: InterruptedAtTerminal, now: float) -> list[Effect]:
        self._interrupts += 1
        effects = self._end_for_signal("terminal", now)
        return effects + (self._terminate(Outcome.FORCED, now) if self._interrupts > 1 else [])

    def _cordoned(self, event: CordonOrdered, now: float) -> list[Effect]:
        if self._applied(event.command):
            return []
        cordon = self._cordon
        if cordon is None:
            cordon = self._cordon = _Cordon(DrainCause.OPERATOR, event.by, event.reason, event.command, began=now)
            self.state = DrainState.CORDONED
        elif cordon.exit_when_empty or not event.exit_when_empty:
            return []  # invariant 6: a repeated cordon changes nothing; only a held SFU can still be told to drain
        else:
            cordon.by, cordon.reason, cordon.command = event.by, event.reason, event.command
        if event.exit_when_empty:
            self._bound(cordon, now)
        return [AnnounceCordoned()]

    def _uncordoned(self, event: UncordonOrdered, now: float) -> list[Effect]:
        if self._applied(event.command):
            return []
        if self._cordon is not None and self._cordon.cause is DrainCause.SIGTERM:
            return [RejectOrder("uncordon", "it got SIGTERM, the kill is coming")]
        self.state, self._cordon = DrainState.ONLINE, None
        self._asking = None
        return [AnnounceUncordoned()]

    def _not_cordoned(self, event: UncordonOrdered | ExitOrdered, now: float) -> list[Effect]:
        if isinstance(event, UncordonOrdered):
            self._applied(event.command)  # so that it can't undo a later cordon when it comes again
            return []
        return [RejectOrder("exit", "it is not cordoned")]

    def _exit(self, event: ExitOrdered, now: float) -> list[Effect]:
        since_at = self._cordon.since_at if self._cordon else None
        if event.at and since_at is not None and event.at < since_at:
            return [RejectOrder("exit", "it was cordoned after the order")]
        return self._terminate(Outcome.FORCED, now)

    def _stamped(self, event: CordonStamped, now: float) -> list[Effect]:
        if self._cordon is not None:
            self._cordon.since_at = event.since_at
        return []

    def _occupied(self, event: OccupancyChanged, now: float) -> list[Effect]:
        self.occupancy = event
        return []

    def _done(self, event: FinalSequenceDone, now: float) -> list[Effect]:
        return self._end()

    # --- what time and emptiness do ---

    def _advance(self, now: float) -> list[Effect]:
        cordon = self._cordon
        if self.state is DrainState.TERMINATING and now >= self._end_by:
            return self._end()
        if self.state is not DrainState.CORDONED or cordon is None or cordon.final_at is None:
            return []
        if cordon.exit_when_empty and self.occupancy.empty:
            return self._terminate(Outcome.EMPTY, now)
        if now >= cordon.final_at:
            return self._terminate(Outcome.GRACE, now)
        if cordon.ask_at is not None and now >= cordon.ask_at:
            return self._ask(cordon.final_at, now)
        return []

    def _ask(self, final_at: float, now: float) -> list[Effect]:
        players = self.occupancy.players
        if self._asking is None:
            self._asking = Asking(players=len(players), ends_at=final_at, now=now, rng=self._rng)
        batch, within_s = self._asking.batch(players, now=now)
        return [AskPlayers(batch, within_s)] if batch else []

    def _terminate(self, outcome: Outcome, now: float) -> list[Effect]:
        self.state, self.outcome = DrainState.TERMINATING, outcome
        self._end_by = now + self.bounds.final_bound_s
        return [RunFinalSequence(outcome, bound_s=self.bounds.final_bound_s)]

    def _end(self) -> list[Effect]:
        self.state = DrainState.ENDED
        return [ExitProcess(0)]


_Handler = Callable[[DrainMachine, Any, float], list[Effect]]
_TABLE: dict[tuple[DrainState, type[Any]], _Handler] = {
    (DrainState.ONLINE, SigtermReceived): DrainMachine._sigterm,
    (DrainState.ONLINE, InterruptedAtTerminal): DrainMachine._interrupt,
    (DrainState.ONLINE, CordonOrdered): DrainMachine._cordoned,
    (DrainState.ONLINE, UncordonOrdered): DrainMachine._not_cordoned,
    (DrainState.ONLINE, ExitOrdered): DrainMachine._not_cordoned,
    (DrainState.ONLINE, OccupancyChanged): DrainMachine._occupied,
    (DrainState.CORDONED, SigtermReceived): DrainMachine._sigterm,
    (DrainState.CORDONED, InterruptedAtTerminal): DrainMachine._interrupt,
    (DrainState.CORDONED, CordonOrdered): DrainMachine._cordoned,
    (DrainState.CORDONED, UncordonOrdered): DrainMachine._uncordoned,
    (DrainState.CORDONED, ExitOrdered): DrainMachine._exit,
    (DrainState.CORDONED, CordonStamped): DrainMachine._stamped,
    (DrainState.CORDONED, OccupancyChanged): DrainMachine._occupied,
    (DrainState.TERMINATING, OccupancyChanged): DrainMachine._occupied,
    (DrainState.TERMINATING, FinalSequenceDone): DrainMachine._done,
}
"""What each event does in each state; a pair that is missing changes nothing."""
