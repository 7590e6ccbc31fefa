"""The life of an SFU from its first cordon to its exit (D2, D6, D7, D8, D12): one machine, no clock, no sockets.

    ONLINE --cordon, drain, SIGTERM--> CORDONED --empty, last moment, exit--> TERMINATING --done--> ENDED
       ^------uncordon, lease lapses------'   (not after SIGTERM)

The shell tells it what happened with `handle`, does the effects in their order, and calls `handle(TimePassed())` at
`next_deadline()`. It ends at zero players, at its last moment before the kill, or forced; in no other case
(invariant 7).
"""

from __future__ import annotations

import math
import random
from collections import deque
from collections.abc import Callable
from enum import StrEnum
from typing import Any

from sfu.core.drain.asking import Asking
from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.cordon import CordonInForce, lease_fault
from sfu.core.drain.events import (
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
    Lease,
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
        self._cordon: CordonInForce | None = None
        self._interrupts = 0
        self._commands: deque[str] = deque(maxlen=COMMANDS_KEPT)
        self._newest_token = 0
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
        """The drain as it goes into `SfuState`; None while ONLINE."""
        return None if self._cordon is None else self._cordon.facts(self.bounds, asking=self.asking, now=now)

    def next_deadline(self) -> float | None:
        """When `TimePassed` is due [monotonic s]; None: nothing waits for time."""
        if self.state is DrainState.TERMINATING:
            return self._end_by
        if self.state is not DrainState.CORDONED or self._cordon is None:
            return None
        ask_at = self._asking.next_at if self._asking else self._cordon.ask_at
        due = min(self._cordon.next_at, math.inf if ask_at is None else ask_at)
        return None if due == math.inf else due

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
            "only a bounded cordon asks": not self.asking or (cordon is not None and cordon.ask_at is not None),
        }
        broken = [promise for promise, kept in promises.items() if not kept]
        broken += [] if cordon is None else cordon.broken_promises()
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

    def _outdated(self, token: int) -> bool:
        """True for an order of a controller that has been replaced since (A7); a person's carries no token."""
        if token == 0:
            return False
        newest = self._newest_token
        self._newest_token = max(newest, token)
        return token < newest

    def _sigterm(self, event: SigtermReceived, now: float) -> list[Effect]:
        return self._end_for_signal("signal", now)

    def _end_for_signal(self, by: str, now: float) -> list[Effect]:
        cordon = self._cordon
        if cordon is None:
            cordon = self._cordon = CordonInForce(DrainCause.SIGTERM, by, "", "", began=now)
            self.state = DrainState.CORDONED
        elif cordon.cause is DrainCause.SIGTERM:
            return []  # invariant 6: a repeated SIGTERM changes nothing
        cordon.cause, cordon.by = DrainCause.SIGTERM, by
        cordon.bound(self.bounds, now=now)
        return [AnnounceCordoned()]

    def _interrupt(self, event: InterruptedAtTerminal, now: float) -> list[Effect]:
        self._interrupts += 1
        effects = self._end_for_signal("terminal", now)
        return effects + (self._terminate(Outcome.FORCED, now) if self._interrupts > 1 else [])

    def _cordoned(self, event: CordonOrdered, now: float) -> list[Effect]:
        if self._applied(event.command):
            return []
        if self._outdated(event.token):
            return [RejectOrder("cordon", "it comes from a controller that was replaced")]
        if event.lease is not None and not event.exit_when_empty:
            return self._leased(event, event.lease, now)
        cordon = self._cordon
        if cordon is None:
            cordon = self._begin(event, now)
        elif cordon.exit_when_empty or not (event.exit_when_empty or cordon.leased):
            return []  # invariant 6: a repeated cordon changes nothing; a held SFU can be told to drain, no more
        else:
            cordon.take_over(event)
        if event.exit_when_empty:
            cordon.bound(self.bounds, now=now)
        else:
            self._asking = None
        return [AnnounceCordoned()]

    def _leased(self, event: CordonOrdered, lease: Lease, now: float) -> list[Effect]:
        """A controller's cordon (A6). Repeated it changes nothing but the lease; what a person holds is left alone."""
        if fault := lease_fault(lease):
            return [RejectOrder("cordon", fault)]
        cordon = self._cordon
        if cordon is None:
            self._begin(event, now).renew(lease, by=event.by, token=event.token, now=now)
            return [AnnounceCordoned()]
        if cordon.owned_by(event.by):
            cordon.renew(lease, by=event.by, token=event.token, now=now)
            return []
        return [] if cordon.exit_when_empty else [RejectOrder("cordon", f"{cordon.by or 'a person'} holds it already")]

    def _begin(self, event: CordonOrdered, now: float) -> CordonInForce:
        self.state = DrainState.CORDONED
        self._cordon = CordonInForce(DrainCause.OPERATOR, event.by, event.reason, event.command, began=now)
        return self._cordon

    def _uncordoned(self, event: UncordonOrdered, now: float) -> list[Effect]:
        cordon = self._cordon
        if self._applied(event.command) or cordon is None:
            return []
        if self._outdated(event.token):
            return [RejectOrder("uncordon", "it comes from a controller that was replaced")]
        if cordon.cause is DrainCause.SIGTERM:
            return [RejectOrder("uncordon", "it got SIGTERM, the kill is coming")]
        if event.token and not cordon.owned_by(event.by):
            return [RejectOrder("uncordon", f"{cordon.by or 'a person'} holds it, not a controller")]
        return self._open_again()

    def _open_again(self, lapsed: str = "") -> list[Effect]:
        self.state, self._cordon, self._asking = DrainState.ONLINE, None, None
        return [AnnounceUncordoned(lapsed)]

    def _not_cordoned(self, event: UncordonOrdered | ExitOrdered, now: float) -> list[Effect]:
        if isinstance(event, UncordonOrdered):
            # So that it can't undo a later cordon when it comes again, nor a replaced controller anything.
            self._applied(event.command)
            self._outdated(event.token)
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
        if self.state is not DrainState.CORDONED or cordon is None:
            return []
        if cordon.exit_when_empty and self.occupancy.empty:
            return self._terminate(Outcome.EMPTY, now)
        if cordon.final_at is not None and now >= cordon.final_at:
            return self._terminate(Outcome.GRACE, now)
        if cordon.lapses_at is not None and now >= cordon.lapses_at:
            return self._open_again(lapsed=cordon.by or "unnamed")
        if cordon.ask_at is not None and now >= cordon.ask_at:
            return self._ask(cordon.final_at, now)
        return []

    def _ask(self, final_at: float | None, now: float) -> list[Effect]:
        """Ask the next few. A leased cordon has no end of its own, so it asks at the pace of a drain's tail."""
        players = self.occupancy.players
        if self._asking is None:
            ends_at, tail_s = (math.inf, self.bounds.tail_s) if final_at is None else (final_at, final_at - now)
            self._asking = Asking(players=len(players), tail_s=tail_s, ends_at=ends_at, now=now, rng=self._rng)
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
