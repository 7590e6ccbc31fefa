"""One player's session on this SFU: its grants, its websocket, its two connections and what goes through them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from sfu.core.room import SfuRoom
from sfu.core.sdp.publish import PublishedLine
from sfu.core.sdp.subscribe import SubscribeSession
from sfu.core.sdp.transport import RemoteTransport
from sfu.core.session import SessionLife
from sfu.shell.media import MediaPeer
from shared.messages.base import Message
from shared.messages.media import PublicationFlowing
from shared.tokens import SfuClaims


class Sender(Protocol):
    """The sending side of a websocket; `PlayerOutbox` is the real one."""

    def send(self, message: Message) -> None: ...

    def close(self, code: int, reason: str) -> None: ...

    async def wait_closed(self, *, within_s: float) -> None: ...


@dataclass(slots=True)
class Publication:
    """A publication of the player here."""

    producer: int
    track: PublishedLine
    flowing: bool = False


@dataclass(slots=True)
class PublishSide:
    """The connection on which the player sends."""

    peer: MediaPeer
    remote: RemoteTransport
    version: int = 0
    """The version number in the description of our last answer."""


@dataclass(slots=True)
class SubscribeSide:
    """The connection on which the player receives."""

    peer: MediaPeer
    negotiation: SubscribeSession
    consumers: dict[str, int] = field(default_factory=dict)
    """Publication -> its name as a consumer in the plane."""


@dataclass(slots=True)
class Player:
    """A session."""

    claims: SfuClaims
    room: SfuRoom
    entered: float
    """Monotonic seconds."""
    outbox: Sender | None = None
    """None while its websocket is gone."""
    life: SessionLife = field(default_factory=SessionLife)
    tokens: list[str] = field(default_factory=list)
    """The tokens that opened it."""
    publications: dict[str, Publication] = field(default_factory=dict)
    publishing: PublishSide | None = None
    subscribing: SubscribeSide | None = None

    @property
    def id(self) -> str:
        """The session id, which routers and the room know."""
        return self.claims.player

    def tell(self, message: Message) -> None:
        """Send a message if there is a websocket; what matters is said again on the next `enter`."""
        if self.outbox is not None:
            self.outbox.send(message)

    def tell_flowing(self, publication: str) -> None:
        """Say that a publication of its own has begun."""
        generation = self.publications[publication].track.generation
        self.tell(PublicationFlowing(publication=publication, generation=generation))

    @property
    def heard_at(self) -> float | None:
        """When media or a check last came from the player [monotonic s]."""
        sides = [side for side in (self.publishing, self.subscribing) if side is not None]
        return max((side.peer.last_heard for side in sides if side.peer.last_heard is not None), default=None)
