"""What happens to a player, as its application hears of it. All are past facts."""

from __future__ import annotations

from dataclasses import dataclass

from shared.records import PlayerRecord, PublicationRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayerEvent:
    """The base of all events."""


# --- the session ---


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionBegan(PlayerEvent):
    """We are in the room: at the join, and again when a session could not be resumed."""

    router: str
    player: str
    """Our session id; the room knows us by it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionResumed(PlayerEvent):
    """The session goes on, on this router."""

    router: str
    player: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterWentAway(PlayerEvent):
    """The websocket to the router broke; another one is tried. Media is not concerned."""

    code: int
    """Its close code; 1006 when it broke."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterEndsSoon(PlayerEvent):
    """The router ends soon; we resume on another one by then."""

    after_s: float


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionEnded(PlayerEvent):
    """The end: nothing comes after it."""

    reason: str
    """`left`; `replaced` (joined elsewhere with the same identity); `bad-token`."""


# --- the room ---


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayerCame(PlayerEvent):
    """Another player is in the room; also for those that were there before us."""

    player: PlayerRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayerChanged(PlayerEvent):
    """Another player's presence, SFU or decision has changed."""

    player: PlayerRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayerWent(PlayerEvent):
    """Another player has left the room."""

    player: PlayerRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackPublished(PlayerEvent):
    """Another player publishes this, and we take it."""

    record: PublicationRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackEnded(PlayerEvent):
    """Another player's publication has ended."""

    record: PublicationRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackHeard(PlayerEvent):
    """The first packet or frame of a publication has come."""

    record: PublicationRecord
    sfu: str


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackSwitched(PlayerEvent):
    """A publication that has moved now comes from this SFU only."""

    publication: str
    sfu: str


# --- SFUs ---


@dataclass(frozen=True, kw_only=True, slots=True)
class MoveDecided(PlayerEvent):
    """What we do about the cordoned SFU that we are on, and why."""

    sfu: str
    move: bool
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class StepTaken(PlayerEvent):
    """A step on our way from SFU to SFU."""

    step: str
    """In the order of a move: `cordoned`, `please-move`, `move-started`, `new-link-up`, `flowing`, `switched`. Else:
    `failed` (the new link; the old one is untouched), `cancelled` (the reason to move is gone), `sfu-gone`, `evicted`
    (our media was cut before we had moved), `link-lost` (the websocket to the SFU broke; media may go on)."""
    sfu: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Relocated(PlayerEvent):
    """A move is complete: the old SFU has been let go. Gaps are the longest [ms]; None when nothing measures them."""

    sfu: str
    left: str
    took_ms: float
    audio_gap_ms: float | None = None
    video_gap_ms: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Recovered(PlayerEvent):
    """On an SFU again after an eviction."""

    sfu: str


# --- trouble ---


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaMissing(PlayerEvent):
    """Our media has not got through for ten seconds, whatever the websockets do; SFUs are tried on and on."""

    missing: tuple[str, ...]
    """`send` (the others can't hear us), `receive` (we can't hear all of them), or both."""
    tried: tuple[str, ...]
    """SFUs, where their media goes, and why it failed: `sfu-1 at UDP 203.0.113.7:5000 (ice-timeout)`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaFound(PlayerEvent):
    """What was missing gets through again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkFailed(PlayerEvent):
    """A media link came to nothing; another SFU is asked for."""

    sfu: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestRefused(PlayerEvent):
    """A router, or the SFU that is named, refused something; the connection stays."""

    code: str
    message: str
    sfu: str = ""
    publication: str = ""
    """The publication that it is about: with `codec-refused`, one in a codec that we can't take apart."""
