"""Between a player and an SFU. The player speaks first, with `enter`. Two peer connections: in `publish` the player
offers, in `subscribe` the SFU offers; the SFU is ICE-lite, so no candidates are sent by the player."""

from __future__ import annotations

from shared.messages.base import Message, Reader
from shared.messages.player import Failed, Ping, Pong
from shared.records import Int

# --- player -> sfu ---


class Enter(Message, frozen=True, kw_only=True):
    """Open the session with the token that the router issued for this SFU, or come back to it with the `reentry` of the
    last `entered`. Sent again on an open session, with another token of the same player and SFU, it replaces the
    grants: a subscribe-only visit becomes the player's home."""

    token: str = ""
    reentry: str = ""
    """Goes before `token`: opens the session that lives here on this websocket, with the grants that it has."""


class TrackOffer(Message, frozen=True, kw_only=True):
    """Which publication an m-line of an offer carries."""

    mid: str
    publication: str
    kind: str = ""
    generation: Int = 1


class PublishOffer(Message, frozen=True, kw_only=True):
    """The player's offer for its publish connection; a later one renegotiates. Answered by `publish-answer`."""

    sdp: str
    tracks: tuple[TrackOffer, ...] = ()
    negotiation: Int = 1


class Subscribe(Message, frozen=True, kw_only=True):
    """The whole set of publications the player wants from this SFU; replaces the last one. One that is not here yet is
    offered when it comes."""

    publications: tuple[str, ...] = ()


class SubscribeAnswer(Message, frozen=True, kw_only=True):
    """The player's answer to the `subscribe-offer` of the same negotiation."""

    sdp: str
    negotiation: Int


class StopPublishing(Message, frozen=True, kw_only=True):
    """End these publications on this SFU."""

    publications: tuple[str, ...]


class RequestKeyframe(Message, frozen=True, kw_only=True):
    """Ask for a key frame of a subscribed publication (throttled at its producer)."""

    publication: str


class RestartIce(Message, frozen=True, kw_only=True):
    """The player's network has changed: offer the subscribe connection with new ICE credentials (RFC 8445 section 9),
    so that the browser looks for ways again. Its publish connection a player restarts by an offer of its own."""


class LeaveSfu(Message, frozen=True, kw_only=True):
    """Close everything here; the player has no further use of this SFU."""


ToSfu = (
    Enter | PublishOffer | Subscribe | SubscribeAnswer | RestartIce | StopPublishing | RequestKeyframe | LeaveSfu | Ping
)

# --- sfu -> player ---


class Entered(Message, frozen=True, kw_only=True):
    """The session is open."""

    sfu: str
    incarnation: Int = 0
    revision: Int = 0
    status: str = "ONLINE"
    reentry: str = ""
    """Opens the session again on a new websocket while it lives; each `entered` brings another. Empty from an older
    SFU, where the token does so for its 60 s."""


class PublishAnswer(Message, frozen=True, kw_only=True):
    """The SFU's answer to a `publish-offer`."""

    sdp: str
    negotiation: Int


class SubscribeOffer(Message, frozen=True, kw_only=True):
    """The SFU's offer of what the player wants and what is here. Answer with `subscribe-answer`."""

    sdp: str
    negotiation: Int
    tracks: tuple[TrackOffer, ...] = ()


class PublicationFlowing(Message, frozen=True, kw_only=True):
    """To its publisher: the first packets of the publication have arrived here (video: a whole key frame has begun)."""

    publication: str
    generation: Int = 1


class Consumers(Message, frozen=True, kw_only=True):
    """To its publisher: how many subscribers its publication has here; after a move, zero says the old copy can go."""

    publication: str
    count: Int


class PublicationEnded(Message, frozen=True, kw_only=True):
    """To subscribers: the publication is no longer on this SFU."""

    publication: str


class PleaseMove(Message, frozen=True, kw_only=True):
    """The drain is past `drain_max` (D7): move, even if the rule says stay, at a moment that the player draws within
    `within_s`. Until its final sequence the SFU goes on carrying a player that does not move."""

    sfu: str
    incarnation: Int = 0
    revision: Int = 0
    within_s: float = 0.0


class Closing(Message, frozen=True, kw_only=True):
    """The SFU is running its final sequence; the websocket and the transports close next."""

    reason: str = "terminating"


ToMedia = (
    Entered
    | PublishAnswer
    | SubscribeOffer
    | PublicationFlowing
    | Consumers
    | PublicationEnded
    | PleaseMove
    | Closing
    | Failed
    | Pong
)

to_sfu: Reader[ToSfu] = Reader(ToSfu, direction="player-to-sfu")
from_sfu: Reader[ToMedia] = Reader(ToMedia, direction="sfu-to-player")
