"""All sessions of this SFU and the rooms they are in. Every method is one step of the event loop: nothing awaits."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection

from sfu.config import SfuConfig
from sfu.core.admission import Admission, Door, admit
from sfu.core.room import Room
from sfu.core.spent import SpentTokens
from sfu.plane.api import Event, ProducerFlowing
from sfu.shell.media import Media, MediaPeer
from sfu.shell.metrics import SfuMetrics
from sfu.shell.player import Player, Sender
from sfu.shell.publishing import Publishing
from sfu.shell.subscribing import Subscribing
from shared.messages.base import Message
from shared.messages.codes import CloseCode
from shared.messages.player import Failed
from shared.records import SfuStatus
from shared.tokens import SFU_TOKEN_TTL_S, SfuClaims


class Hub:
    """The owner of players, rooms, producers and consumers. `on_change` is called after each coming and going;
    `on_left(reason)` when a session ended."""

    def __init__(
        self,
        config: SfuConfig,
        media: Media,
        metrics: SfuMetrics,
        *,
        rng: random.Random,
        on_change: Callable[[], None],
        on_left: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.config = config
        self.media = media
        self.metrics = metrics
        self.rng = rng
        self.clock = clock
        self.players: dict[str, Player] = {}
        self.rooms: dict[str, Room] = {}
        self.producers: dict[int, tuple[Player, str]] = {}
        """Producer -> its player and publication."""
        self.emptied = asyncio.Event()
        """Set while nobody is here."""
        self.emptied.set()
        self.publishing = Publishing(self)
        self.subscribing = Subscribing(self)
        self._spent = SpentTokens(ttl_s=SFU_TOKEN_TTL_S)
        self._on_change = on_change
        self._on_left = on_left
        self._ids = 0
        self._closing: set[asyncio.Task[None]] = set()

    @property
    def consumers(self) -> int:
        """Forwarded outbound streams."""
        return sum(len(player.subscribing.consumers) for player in self.players.values() if player.subscribing)

    def next_id(self) -> int:
        """A name for a producer or consumer in the plane."""
        self._ids += 1
        return self._ids

    # --- coming ---

    def admit(self, claims: SfuClaims, token: str, *, status: SfuStatus) -> Admission:
        """Would this token be let in?"""
        known = self.players.get(claims.player)
        room = self.rooms.get(claims.room)
        door = Door(
            sfu=self.config.sfu,
            status=status,
            players=len(self.players),
            max_players=self.config.max_players,
            carries_room=room is not None and not room.empty,
        )
        return admit(claims, door, known=known.claims if known else None, spent=token in self._spent)

    def enter(self, claims: SfuClaims, token: str, outbox: Sender) -> Player:
        """Open a session, or give a known one new grants and this websocket; the older one is closed with `4001`."""
        player = self.players.get(claims.player)
        if player is None:
            room = self.rooms.setdefault(claims.room, Room(claims.room))
            room.players.add(claims.player)
            player = self.players[claims.player] = Player(claims=claims, room=room, entered=self.clock())
            self.metrics.entered.inc()
            self.emptied.clear()
        if token not in player.tokens:
            player.tokens = [*player.tokens[-7:], token]
        player.claims = claims
        if player.outbox is not None and player.outbox is not outbox:
            player.outbox.close(CloseCode.REPLACED, "another websocket of this session")
        player.outbox = outbox
        player.life.websocket_lost_at = None
        self._on_change()
        return player

    def say_again(self, player: Player) -> None:
        """What a player may have missed while it had no websocket. Call it after `entered` was sent."""
        for publication, present in player.publications.items():
            if present.flowing:
                self.publishing.tell_flowing(player, publication)
            self.subscribing.tell_count(player, publication, len(player.room.gets.get(publication, ())))
        self.subscribing.speak_again(player, now=self.clock())

    # --- going ---

    def websocket_lost(self, player: Player, outbox: Sender) -> None:
        """A websocket has ended; the session waits for another for a while."""
        if player.outbox is outbox:
            player.outbox = None
            player.life.websocket_lost_at = self.clock()

    def leave(self, player: Player) -> None:
        """The player has no further use of this SFU."""
        player.life.left = True
        self._end(player, "left")

    def sweep(self) -> None:
        """End the sessions that are over and chase answers that are overdue. Call it once a second or so."""
        now = self.clock()
        for player in list(self.players.values()):
            reason = player.life.over(now=now, media_heard_at=player.heard_at)
            if reason:
                self._end(player, reason)
            else:
                self.subscribing.chase(player, now=now)

    def _end(self, player: Player, reason: str) -> None:
        if self.players.get(player.id) is not player:
            return
        self.subscribing.lost(player)
        self.publishing.lost(player)
        del self.players[player.id]
        player.room.leave(player.id)
        if player.room.empty:
            self.rooms.pop(player.room.name, None)
        for token in player.tokens:
            self._spent.spend(token, now=self.clock())
        self.metrics.ended.labels(reason).inc()
        if not self.players:
            self.emptied.set()
        self._on_left(reason)
        self._on_change()

    # --- media ---

    def plane_events(self, events: Collection[Event]) -> None:
        """Facts from the plane. Silence and BYE end nothing: a muted or paused track is still published."""
        for event in events:
            if isinstance(event, ProducerFlowing):
                self.publishing.flowing(event.producer)

    def publish_lost(self, player: Player, reason: str) -> None:
        """The publish connection has failed or was closed by the player."""
        self._lost(reason)
        self.publishing.lost(player)
        player.tell(Failed(code=reason, message="the publish connection is gone", request="publish-offer"))

    def subscribe_lost(self, player: Player, reason: str) -> None:
        """The subscribe connection has failed or was closed by the player."""
        self._lost(reason)
        self.subscribing.lost(player)
        player.tell(Failed(code=reason, message="the subscribe connection is gone", request="subscribe"))

    def _lost(self, reason: str) -> None:
        self.metrics.trouble.labels(reason).inc()

    def close_peer(self, peer: MediaPeer) -> None:
        """Close a connection beside the event loop's step."""
        task = asyncio.get_running_loop().create_task(peer.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    # --- the drain ---

    def tell(self, players: Collection[str], message: Message) -> None:
        """Send to these players, as far as they are still here."""
        for name in players:
            player = self.players.get(name)
            if player is not None:
                player.tell(message)

    async def close_all(self, *, within_s: float) -> None:
        """Close all transports, then all websockets with `4012`; what hangs is left behind when the time is over."""
        sides = [side for p in self.players.values() for side in (p.publishing, p.subscribing) if side]
        closing = [asyncio.create_task(side.peer.close()) for side in sides] + list(self._closing)
        if closing:
            await asyncio.wait(closing, timeout=within_s / 2)
        outboxes = [player.outbox for player in self.players.values() if player.outbox]
        for outbox in outboxes:
            outbox.close(CloseCode.TERMINATING, "terminating")
        if outboxes:
            await asyncio.wait(
                [asyncio.create_task(outbox.wait_closed(within_s=within_s / 2)) for outbox in outboxes],
                timeout=within_s / 2,
            )
