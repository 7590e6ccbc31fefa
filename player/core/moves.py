"""The words of the mover: what can happen to a player (events) and what it then does (effects)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from shared.records import Presence

# --- events: past facts ---


@dataclass(frozen=True, kw_only=True, slots=True)
class Joined:
    """The router opened a new session. The assignment, if any, comes next as `Assigned`."""

    assigned: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterBack:
    """The session was resumed on some router. An assignment, if any, comes next as `Assigned`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterLost:
    """The websocket to the router broke. Media is not concerned; what was asked will not be answered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Assigned:
    """The router named an SFU; `request` is empty when it was not asked."""

    sfu: str
    address: str
    token: str
    incarnation: int = 0
    revision: int = 0
    request: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Unassigned:
    """The router has no SFU for us, or refused the request."""

    request: str = ""
    code: str = ""
    retry_after_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CordonHeard:
    """An SFU takes no new work."""

    sfu: str
    incarnation: int = 0
    revision: int = 0
    asks_in_s: float | None = None
    ends_in_s: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CordonTakenBack:
    """It takes new work again."""

    sfu: str
    incarnation: int = 0
    revision: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class SfuEnded:
    """The router says that an SFU has ended or was lost."""

    sfu: str
    reason: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AskedToMove:
    """The SFU wants us to move within that time, past `drain_max` (D7)."""

    sfu: str
    within_s: float = 0.0
    incarnation: int = 0
    revision: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class PresenceChanged:
    """The inputs of the rule changed."""

    presence: Presence


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkEntered:
    """The SFU let us in."""

    link: int


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaConnected:
    """The publish connection of this link is up (ICE and DTLS), whether or not packets flow."""

    link: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicationFlows:
    """The first packets of a publication arrived at the SFU of this link."""

    link: int
    publication: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Watched:
    """How many subscribers a publication has at the SFU of this link."""

    link: int
    publication: str
    count: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkDown:
    """A link failed to open, broke, or was closed by the SFU. `cut`: its media stopped too, not only its websocket."""

    link: int
    reason: str
    cut: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Left:
    """The player goes, of its own will."""


Event = (
    Joined
    | RouterBack
    | RouterLost
    | Assigned
    | Unassigned
    | CordonHeard
    | CordonTakenBack
    | SfuEnded
    | AskedToMove
    | PresenceChanged
    | LinkEntered
    | MediaConnected
    | PublicationFlows
    | Watched
    | LinkDown
    | Left
)

# --- effects: imperatives ---


@dataclass(frozen=True, kw_only=True, slots=True)
class AskRouter:
    """Send `request-sfu`."""

    request: str
    leave: str
    incarnation: int
    revision: int
    exclude: tuple[str, ...]
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenLink:
    """Open a media link and publish everything there with this generation."""

    link: int
    sfu: str
    address: str
    token: str
    generation: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Announce:
    """Send `publish`: the publication is live there."""

    publication: str
    sfu: str
    generation: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LetGo:
    """Stop publishing on this link; leave the SFU once nothing is subscribed there either."""

    link: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Abandon:
    """Close this link: it failed, broke, or lost its purpose before it carried anything."""

    link: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportDecided:
    """Send `decided`."""

    sfu: str
    move: bool
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ReportMoved:
    """Send `moved`: the old link is let go."""

    sfu: str
    left: str
    took_ms: float


class MoveStep(StrEnum):
    """What observers follow, in the order of a move."""

    CORDONED = "cordoned"
    PLEASE_MOVE = "please-move"
    MOVE_STARTED = "move-started"
    NEW_LINK_UP = "new-link-up"
    FLOWING = "flowing"
    SWITCHED = "switched"
    FAILED = "failed"
    """A link to an SFU failed before it carried anything; the old one was not touched."""
    CANCELLED = "cancelled"
    """The reason to move is gone, and the player stays."""
    SFU_GONE = "sfu-gone"
    EVICTED = "evicted"
    """The player's media was cut before it had moved."""
    LINK_LOST = "link-lost"
    """The websocket to the SFU broke; media may go on."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TellStep:
    """Tell observers."""

    step: MoveStep
    sfu: str = ""
    reason: str = ""


Effect = AskRouter | OpenLink | Announce | LetGo | Abandon | ReportDecided | ReportMoved | TellStep
