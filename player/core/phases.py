"""The phases of a player's way from SFU to SFU, the wish that drives it, and its time-outs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.errors import SluiceError

REQUEST_TIMEOUT_S = 5.0
"""A router that has not answered by then is asked again."""
ENTER_TIMEOUT_S = 5.0
"""From opening a link until the SFU lets us in: TCP and TLS fit, on a poor line too."""
FLOW_TIMEOUT_S = 8.0
"""From there until something flows: ICE, a DTLS handshake and a key frame on a poor line fit."""
REST_TIMEOUT_S = 3.0
"""From the first publication that flows until a move no longer waits for the rest: what sends, flows by then."""
MAX_RETRY_AFTER_S = 60.0
"""No router makes us wait longer than about this; it may have meant milliseconds, or be about to end."""


class Phase(StrEnum):
    """Where the player is on its way."""

    OUTSIDE = "outside"
    """No session at a router yet."""
    SETTLED = "settled"
    """The home link carries everything, and there is no wish to leave it."""
    WAITING = "waiting"
    """Wants another SFU and will ask at a moment drawn with jitter, or when a router is there."""
    ASKING = "asking"
    """The router was asked."""
    OPENING = "opening"
    """A target link is being opened."""
    LEFT = "left"
    """The end."""


class Cause(StrEnum):
    """Why the player wants another SFU."""

    JOIN = "join"
    CORDONED = "cordoned"
    ASKED = "asked"
    LOST = "lost"
    REJOIN = "rejoin"
    """A new session needs links of its own; the old ones last until then."""


UNFORCED = (Cause.CORDONED, Cause.ASKED)
"""Causes that vanish when the cordon is taken back, and before which the rule is asked again."""

NO_MEDIA = ("ice-timeout", "dtls-timeout", "ice-silent")
"""Words for the end of a link whose media died, while its websocket may be well."""
EXCLUDING = ("terminating", *NO_MEDIA)
"""A home that ended so is not asked for again for a while: its media is gone, or it ends and the router may not
know."""


class BrokenMover(SluiceError):
    """The mover reached a state that must not be. Carries what led to it."""

    code = "broken-mover"

    def __init__(self, detail: str, story: list[str]) -> None:
        super().__init__()
        self.detail = detail
        self.story = story

    def sentence(self) -> str:
        return f"{self.detail}; the story: " + " | ".join(self.story)


@dataclass(slots=True)
class MoveWish:
    """The wish for another SFU."""

    cause: Cause
    started: float
    """When it arose; from the first request on, when that was."""
    attempts: int = 0
    told: bool = False
    """Observers know that a move has started."""
    missed: bool = False
    """An SFU could not be reached; that there was none to be had is another thing."""

    @property
    def word(self) -> str:
        """How `request-sfu` calls it."""
        match self.cause:
            case Cause.JOIN if self.missed:
                return "failed"
            case Cause.REJOIN:
                return "lost"
        return self.cause.value
