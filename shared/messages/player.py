"""Between a player and its router. The player speaks first, with `join` or `resume`."""

from __future__ import annotations

import msgspec

from shared.messages.base import Message, Reader
from shared.records import Int, PlayerRecord, Presence, PublicationRecord

# --- player -> router ---


class Join(Message, frozen=True, kw_only=True):
    """Enter a room with a token from the app."""

    token: str
    presence: Presence = Presence()
    client: str = ""
    """Name and version of the client program, for logs."""
    exclude: tuple[str, ...] = ()
    """SFUs this player could not reach; skipped while another is eligible."""
    cell: str = ""
    """SFUs of this cell are preferred, unless the token names one; empty: none in particular."""


class Resume(Message, frozen=True, kw_only=True):
    """Take a session up again after its websocket was lost, on any router, within the resume window."""

    resume_token: str
    presence: Presence = Presence()
    sfu: str = ""
    """The SFU the player is publishing to right now."""
    publications: tuple[PublicationRecord, ...] = ()
    """What the player publishes, so that a router with an empty Redis can rebuild the room."""


class Leave(Message, frozen=True, kw_only=True):
    """End the session; nothing can be resumed afterwards."""


class RequestSfu(Message, frozen=True, kw_only=True):
    """Ask for another SFU (reassignment). Answered by `assigned-sfu` or `error` with the same `request`."""

    request: str = ""
    leave: str = ""
    """The SFU the player wants to leave."""
    incarnation: Int = 0
    revision: Int = 0
    """Revision of `leave` the player was told; a router that lags behind treats `leave` as cordoned (invariant 1)."""
    exclude: tuple[str, ...] = ()
    """SFUs that failed this player."""
    reason: str = ""
    """`cordoned` or `asked` (the old one still carries the player), `lost`, `failed` (could not reach the one it was
    given first), `join` (there was none at the join)."""


class RequestAccess(Message, frozen=True, kw_only=True):
    """Ask for a token to subscribe at an SFU that carries a publication of the room. Answered by `sfu-access`."""

    sfu: str
    request: str = ""


class Publish(Message, frozen=True, kw_only=True):
    """A publication is live on an SFU: new, or moved there with a higher generation. Says so only after
    `publication-flowing`."""

    publication: str
    kind: str
    sfu: str
    source: str = ""
    generation: Int = 1


class Unpublish(Message, frozen=True, kw_only=True):
    """The publication has ended."""

    publication: str


class SetPresence(Message, frozen=True, kw_only=True):
    """The inputs of the player's rule have changed."""

    presence: Presence


class Decided(Message, frozen=True, kw_only=True):
    """What the player's rule said about the cordoned SFU; operators see it (D12)."""

    sfu: str
    move: bool
    reason: str = ""


class Moved(Message, frozen=True, kw_only=True):
    """The player publishes to `sfu` now and has let the old one go."""

    sfu: str
    left: str = ""
    took_ms: float | None = None
    audio_gap_ms: float | None = None
    video_gap_ms: float | None = None


class MediaState(Message, frozen=True, kw_only=True):
    """Whether the player's media gets through, whatever its websockets do; operators see who has none.

    Sent when it has changed, and after each `welcome` while something is missing. A router older than this skips it.
    """

    missing: tuple[str, ...] = ()
    """`send` (the others can't hear or see the player), `receive` (it can't hear or see all of them), both, or none."""


class Ping(Message, frozen=True, kw_only=True):
    """Browsers can't send websocket pings; this is theirs."""

    n: Int = 0


ToRouter = (
    Join
    | Resume
    | Leave
    | RequestSfu
    | RequestAccess
    | Publish
    | Unpublish
    | SetPresence
    | Decided
    | Moved
    | MediaState
    | Ping
)

# --- router -> player ---


class IceServer(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser's `RTCPeerConnection` takes as one of its `iceServers`."""

    urls: tuple[str, ...]
    username: str = ""
    credential: str = ""
    """Opens a relay for a limited time; ask for no new connection with one that is older than its link."""


class AssignedSfu(Message, frozen=True, kw_only=True):
    """Where the player is to publish from now on. Sent within `welcome` and in answer to `request-sfu`."""

    sfu: str
    address: str
    token: str
    """Opens this SFU for this player for a short time; use it at once."""
    incarnation: Int = 0
    revision: Int = 0
    request: str = ""
    ice_servers: tuple[IceServer, ...] = ()
    """For the peer connections of this link; empty: the fleet has none."""


class RoomSnapshot(Message, frozen=True, kw_only=True):
    """The whole room; replaces all the player knew of it."""

    players: tuple[PlayerRecord, ...] = ()
    publications: tuple[PublicationRecord, ...] = ()


class CordonedSfu(Message, frozen=True, kw_only=True):
    """An SFU takes no new work. The players on it decide when to move (D5). Sent after the router's own placement
    excludes it."""

    sfu: str
    incarnation: Int = 0
    revision: Int = 0
    reason: str = ""
    asks_in_s: float | None = None
    """Seconds until the remaining players are asked to move."""
    ends_in_s: float | None = None
    """Seconds until the SFU ends."""


class UncordonedSfu(Message, frozen=True, kw_only=True):
    """The SFU takes new work again; no need to move."""

    sfu: str
    incarnation: Int = 0
    revision: Int = 0


class Welcome(Message, frozen=True, kw_only=True):
    """The session has begun or was resumed."""

    player: str
    resume_token: str
    room: str
    identity: str
    name: str = ""
    can_publish: bool = True
    can_subscribe: bool = True
    resume_window_s: float = 25.0
    resumed: bool = False
    assignment: AssignedSfu | None = None
    """None on a resume whose SFU is still right: keep the media links as they are."""
    snapshot: RoomSnapshot = RoomSnapshot()
    cordoned: tuple[CordonedSfu, ...] = ()
    """Cordoned SFUs that carry this room, for a player that missed the message."""
    router: str = ""
    ping_every_s: float = 10.0


class SfuAccess(Message, frozen=True, kw_only=True):
    """A token to subscribe at `sfu`."""

    sfu: str
    address: str
    token: str
    request: str = ""
    ice_servers: tuple[IceServer, ...] = ()
    """As in `assigned-sfu`."""


class RoomUpdate(Message, frozen=True, kw_only=True):
    """What has changed in the room since the last update or snapshot. Publications that moved come as `publications`
    with a new `sfu` and a higher generation."""

    players: tuple[PlayerRecord, ...] = ()
    left: tuple[str, ...] = ()
    publications: tuple[PublicationRecord, ...] = ()
    ended: tuple[str, ...] = ()


class SfuGone(Message, frozen=True, kw_only=True):
    """The SFU has ended or was lost; players on it ask for another one at once."""

    sfu: str
    reason: str = ""
    """`terminating`, `lost`."""


class RouterClosing(Message, frozen=True, kw_only=True):
    """The router is about to go; reconnect elsewhere after `after_s` and resume. Media is not concerned."""

    after_s: float = 0.0


class Failed(Message, frozen=True, kw_only=True, tag="error"):
    """A request was refused, or a message was bad; the connection stays unless a close follows."""

    code: str
    """A `Refusal`, or the `code` of a `SluiceError`."""
    message: str = ""
    request: str = ""
    retry_after_s: float | None = None
    publication: str = ""
    """The publication that it is about, if it is about one."""


class Pong(Message, frozen=True, kw_only=True):
    """The answer to `ping`."""

    n: Int = 0


ToPlayer = (
    Welcome
    | AssignedSfu
    | SfuAccess
    | RoomSnapshot
    | RoomUpdate
    | CordonedSfu
    | UncordonedSfu
    | SfuGone
    | RouterClosing
    | Failed
    | Pong
)

to_router: Reader[ToRouter] = Reader(ToRouter, direction="player-to-router")
to_player: Reader[ToPlayer] = Reader(ToPlayer, direction="router-to-player")
