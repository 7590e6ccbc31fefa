"""What happens to the drain machine, as past facts, and what it wants done, as imperatives."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Outcome(StrEnum):
    """Why the final sequence ran."""

    EMPTY = "empty"
    """No player was left (D6)."""
    GRACE = "grace"
    """The last moment before the kill had come (D7)."""
    FORCED = "forced"
    """An operator's exit, or a second Ctrl-C (D8)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """For how long a leased cordon holds (A6)."""

    lease_s: float
    """It lapses this long after the order unless another renews it."""
    drain_max_s: float | None = None
    """From the cordon's beginning to asking the remaining players to move; None: never."""


# --- events: what has happened ---


@dataclass(frozen=True, slots=True)
class SigtermReceived:
    """The platform wants the process gone; the kill comes `grace_s` later."""


@dataclass(frozen=True, slots=True)
class InterruptedAtTerminal:
    """Ctrl-C at the terminal that started the process: the first counts as SIGTERM, the second forces the exit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonOrdered:
    """An operator's `cordon` (holds, never ends) or `drain` (ends when empty, with the same bounds as SIGTERM), or a
    controller's leased cordon."""

    command: str = ""
    by: str = ""
    reason: str = ""
    exit_when_empty: bool = False
    lease: Lease | None = None
    token: int = 0
    """The controller's fencing token; 0: a person's order, which is never fenced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UncordonOrdered:
    """An operator takes a cordon back, or a controller its own."""

    command: str = ""
    by: str = ""
    token: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitOrdered:
    """A forced termination, given at `at` by Redis' clock; 0: without a timestamp."""

    at: float = 0.0
    by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CordonStamped:
    """Redis' clock says when this cordon became known [Unix seconds]."""

    since_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OccupancyChanged:
    """What keeps the SFU from exiting: player sessions (subscribe-only ones too), pipes, jobs."""

    players: frozenset[str] = frozenset()
    pipes: int = 0
    jobs: int = 0

    @property
    def empty(self) -> bool:
        """True when nothing is left."""
        return not self.players and not self.pipes and not self.jobs


@dataclass(frozen=True, slots=True)
class TimePassed:
    """`next_deadline()` has come."""


@dataclass(frozen=True, slots=True)
class FinalSequenceDone:
    """The final sequence has run to its end."""


Event = (
    SigtermReceived
    | InterruptedAtTerminal
    | CordonOrdered
    | UncordonOrdered
    | ExitOrdered
    | CordonStamped
    | OccupancyChanged
    | TimePassed
    | FinalSequenceDone
)

# --- effects: what the shell is to do ---


@dataclass(frozen=True, slots=True)
class AnnounceCordoned:
    """Raise the revision, refuse new work, and tell the routers at once."""


@dataclass(frozen=True, slots=True)
class AnnounceUncordoned:
    """Raise the revision, take new work again, and tell the routers at once."""

    lapsed: str = ""
    """Whose lease ran out; empty when an order took the cordon back."""


@dataclass(frozen=True, slots=True)
class AskPlayers:
    """Ask these to move, each at a moment of its own within `within_s`; no call is cut."""

    players: tuple[str, ...]
    within_s: float


@dataclass(frozen=True, slots=True)
class RunFinalSequence:
    """Tell players, close transports, report, unregister; within `bound_s`. Then `FinalSequenceDone`."""

    outcome: Outcome
    bound_s: float


@dataclass(frozen=True, slots=True)
class ExitProcess:
    """End the process with this status."""

    status: int = 0


@dataclass(frozen=True, slots=True)
class RejectOrder:
    """An order that can't be followed; say so in the log."""

    order: str
    reason: str


Effect = AnnounceCordoned | AnnounceUncordoned | AskPlayers | RunFinalSequence | ExitProcess | RejectOrder
