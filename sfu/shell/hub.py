"""All sessions of this SFU and the rooms they are in. Every method is one step of the event loop: nothing awaits."""

from __future__ import annotations

import secrets
from collections.abc import Callable

from sfu.core.admission import Admission, Door, admit
from sfu.core.reentry import Reentries
from sfu.core.room import SfuRoom
from sfu.core.spent import SpentTokens
from sfu.shell.parts import SfuParts
from sfu.shell.player import Player, Sender
from sfu.shell.publishing import Publishing
from sfu.shell.subscribing import Subscriptions
from shared.messages.codes import CloseCode
from shared.records import SfuStatus
from shared.tokens import SFU_TOKEN_TTL_S, SfuClaims


class Hub:
    """Players come and go here; what they send and get is with `publishing` and `subscriptions`."""

    def __init__(
        self,
        parts: SfuParts,
        publishing: Publishing,
        subscriptions: Subscriptions,
        *,
        on_change: Callable[[], None],
        on_left: Callable[[str], None],
    ) -> None:
        """`on_change` is called after each coming and going; `on_left(reason)` when a session ended."""
        self.publishing = publishing
        self.subscriptions = subscriptions
        self._parts = parts
        self._spent = SpentTokens(ttl_s=2 * SFU_TOKEN_TTL_S)  # the router's clock may be ahead of ours
        self._reentries = Reentries()
        self._on_change = on_change
        self._on_left = on_left

    # --- coming ---

    def admit(self, claims: SfuClaims, token: str, *, status: SfuStatus) -> Admission:
        """Would this token be let in? It opens one session once.

        A client that knows no `reentry` may show the token again, for the same session, when its websocket is gone.
        """
        known = self._parts.players.get(claims.player)
        room = self._parts.rooms.get(claims.room)
        door = Door(
            sfu=self._parts.config.sfu,
            status=status,
            players=len(self._parts.players),
            max_players=self._parts.config.max_players,
            carries_room=room is not None and not room.empty,
        )
        return admit(claims, door, known=known.claims if known else None, spent=self._is_spent(token, known))

    def _is_spent(self, token: str, known: Player | None) -> bool:
        lost = known is not None and known.outbox is None and token in known.tokens
        return token in self._spent and not lost

    def enter(self, claims: SfuClaims, token: str, outbox: Sender) -> Player:
        """Open a session, or give a known one new grants and this websocket; the older one is closed with `4001`."""
        player = self._parts.players.get(claims.player)
        if player is None:
            room = self._parts.rooms.setdefault(claims.room, SfuRoom(claims.room))
            room.players.add(claims.player)
            player = self._parts.players[claims.player] = Player(claims=claims, room=room, entered=self._parts.clock())
            self._parts.metrics.entered.inc()
            self._parts.emptied.clear()
        if token not in player.tokens:
            player.room.granted(player.id, claims.publications)
            player.tokens = [*player.tokens[-7:], token]
        self._spent.spend(token, now=self._parts.clock())
        player.claims = claims
        self.take(player, outbox)
        return player

    def take(self, player: Player, outbox: Sender) -> None:
        """Give a session this websocket; the older one is closed with `4001`."""
        if player.outbox is not None and player.outbox is not outbox:
            player.outbox.close(CloseCode.REPLACED, "another websocket of this session")
        player.outbox = outbox
        player.life.websocket_lost_at = None
        self._on_change()

    def new_reentry(self, player: Player) -> str:
        """A token for `entered`."""
        token = secrets.token_urlsafe(24)
        self._reentries.renew(player.id, token)
        return token

    def heard(self, player: Player) -> None:
        """The player has spoken: it has its last `entered`, so the re-entry token before that is over."""
        self._reentries.confirm(player.id)

    def coming_back(self, reentry: str) -> Player | None:
        """The session that a re-entry token opens."""
        return self._parts.players.get(self._reentries.session(reentry) or "")

    def say_again(self, player: Player) -> None:
        """What a player may have missed while it had no websocket. Call it after `entered` was sent."""
        for publication, present in player.publications.items():
            if present.flowing:
                player.tell_flowing(publication)
            self.subscriptions.tell_count(player, publication, len(player.room.gets.get(publication, ())))
        self.subscriptions.speak_again(player, now=self._parts.clock())

    # --- going ---

    def websocket_lost(self, player: Player, outbox: Sender) -> None:
        """A websocket has ended; the session waits some seconds for another."""
        if player.outbox is outbox:
            player.outbox = None
            player.life.websocket_lost_at = self._parts.clock()

    def leave(self, player: Player) -> None:
        """The player has no further use of this SFU."""
        player.life.left = True
        self._end(player, "left")

    def sweep(self) -> None:
        """End the sessions that are over and chase answers that are overdue. Call it once a second or so."""
        now = self._parts.clock()
        for player in list(self._parts.players.values()):
            reason = player.life.over(now=now, media_heard_at=player.heard_at)
            if reason:
                self._end(player, reason)
            else:
                self.subscriptions.chase(player, now=now)

    def _end(self, player: Player, reason: str) -> None:
        if self._parts.players.get(player.id) is not player:
            return
        self.subscriptions.lost(player)
        self.publishing.lost(player)
        del self._parts.players[player.id]
        player.room.leave(player.id)
        if player.room.empty:
            self._parts.rooms.pop(player.room.name, None)
        self._reentries.end(player.id)
        for token in player.tokens:
            self._spent.spend(token, now=self._parts.clock())
        self._parts.metrics.ended.labels(reason).inc()
        if not self._parts.players:
            self._parts.emptied.set()
        self._on_left(reason)
        self._on_change()
