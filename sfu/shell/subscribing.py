"""The subscribe connection of players: what they want is offered, what they answer is forwarded."""

from __future__ import annotations

from sfu.core.sdp.subscribe import Accepted, SubscribeSession
from sfu.plane.api import ConsumerSpec
from sfu.shell.media import Media
from sfu.shell.parts import SfuParts
from sfu.shell.player import Player, SubscribeSide
from shared.errors import BadSdp, Refused
from shared.messages.codes import Refusal
from shared.messages.media import Consumers, RequestKeyframe, Subscribe, SubscribeAnswer, SubscribeOffer
from shared.messages.player import Failed
from shared.rtc.sdp import parse, write


class Subscriptions:
    """What players receive."""

    def __init__(self, parts: SfuParts, media: Media) -> None:
        self._parts = parts
        self._media = media

    def want(self, player: Player, message: Subscribe, *, now: float) -> None:
        """The player says all that it wants from here. Raises `Refused`."""
        if not player.claims.subscribe:
            raise Refused(Refusal.NOT_ALLOWED, "the token has no subscribe grant")
        if len(message.publications) > self._parts.config.max_subscriptions:
            raise Refused(Refusal.TOO_MANY, f"more than {self._parts.config.max_subscriptions} subscriptions")
        player.room.wants[player.id] = tuple(dict.fromkeys(message.publications))
        self.refresh(player, now=now)

    def refresh(self, player: Player, *, now: float) -> None:
        """Bring the player's connection in step with what it wants and what is here."""
        wanted = player.room.wanted_by(player.id)
        side = player.subscribing
        if side is None:
            if not wanted or player.outbox is None:
                return
            side = player.subscribing = self._open(player)
        for publication in side.negotiation.release(wanted):
            self._stop(player, side, publication)
        if player.outbox is None:
            return
        offer = side.negotiation.next_offer(wanted.values(), now=now)
        if offer is None:
            return
        player.tell(SubscribeOffer(sdp=write(offer.description), negotiation=offer.negotiation, tracks=offer.tracks))
        if side.negotiation.left_out:
            self._parts.trouble(Refusal.TOO_MANY)
            detail = f"{side.negotiation.left_out} publications are left out: no m-line is free"
            player.tell(Failed(code=Refusal.TOO_MANY, message=detail, request="subscribe"))

    def answer(self, player: Player, message: SubscribeAnswer, *, now: float) -> None:
        """The player's answer. Raises `BadSdp`; what was offered waits for the next change then."""
        side = player.subscribing
        if side is None:
            return
        try:
            answered = side.negotiation.answer(message.negotiation, parse(message.sdp))
        except BadSdp:
            if message.negotiation == side.negotiation.negotiation:
                side.negotiation.abandon()
            self.refresh(player, now=now)  # for what has changed meanwhile; the same is not offered again
            raise
        if answered is None:
            return
        if answered.remote is not None:
            side.peer.connect(answered.remote)
        for accepted in answered.accepted:
            self._start(player, side, accepted, now=now)
        for publication in answered.refused:
            self._tell_refused(player, publication)
        self.refresh(player, now=now)

    def _tell_refused(self, player: Player, publication: str) -> None:
        """Its publisher goes on in the one codec that it was answered, so the player does not get it at all."""
        self._parts.trouble(Refusal.CODEC_REFUSED)
        carried = player.room.carried.get(publication)
        what = f"{publication} ({carried.format.label})" if carried else publication
        detail = f"the answer does not take {what}; most often there is no decoder for it"
        failed = Failed(code=Refusal.CODEC_REFUSED, message=detail, request="subscribe-answer", publication=publication)
        player.tell(failed)

    def restart(self, player: Player, *, now: float) -> None:
        """The player's network has changed: offer again with new ICE credentials. Without a connection there is nothing
        to do."""
        side = player.subscribing
        if side is not None:
            side.peer.restart()
            side.negotiation.restart(side.peer.local)
            self.refresh(player, now=now)

    def speak_again(self, player: Player, *, now: float) -> None:
        """A new websocket: whatever was said on the old one may have been lost."""
        if player.subscribing is not None:
            player.subscribing.negotiation.offer_again()
        self.refresh(player, now=now)

    def chase(self, player: Player, *, now: float) -> None:
        """Offer again when an answer is overdue."""
        side = player.subscribing
        if side is not None and side.negotiation.overdue(now=now):
            self._parts.trouble("answer-overdue")
            self.speak_again(player, now=now)

    def request_keyframe(self, player: Player, message: RequestKeyframe, *, now: float) -> None:
        """Ask for a key frame of what the player gets. Raises `Refused` for what it does not get."""
        side, carried = player.subscribing, player.room.carried.get(message.publication)
        if side is None or carried is None or message.publication not in side.consumers:
            raise Refused(Refusal.NOT_IN_ROOM, "you do not get that publication here")
        self._media.plane.request_keyframe(carried.producer, now=now)

    def lost(self, player: Player) -> None:
        """The connection is gone: stop all that went through it. A later `subscribe` opens another."""
        side, player.subscribing = player.subscribing, None
        if side is None:
            return
        for publication in list(side.consumers):
            self._stop(player, side, publication)
        self._parts.close_peer(side.peer)

    def _connection_lost(self, player: Player, reason: str) -> None:
        """The subscribe connection has failed or was closed by the player."""
        self._parts.trouble(reason)
        self.lost(player)
        player.tell(Failed(code=reason, message="the subscribe connection is gone", request="subscribe"))

    def tell_count(self, player: Player, publication: str, count: int) -> None:
        """Tell a publisher how many get its publication here."""
        player.tell(Consumers(publication=publication, count=count))

    def _open(self, player: Player) -> SubscribeSide:
        peer = self._media.open(on_lost=lambda reason: self._connection_lost(player, reason))
        return SubscribeSide(peer=peer, negotiation=SubscribeSession(local=peer.local, rng=self._parts.rng))

    def _start(self, player: Player, side: SubscribeSide, accepted: Accepted, *, now: float) -> None:
        consumer = self._parts.next_id()
        spec = consumer_spec(accepted, consumer=consumer, peer=side.peer.id)
        if not self._media.plane.consume(spec, now=now):
            return  # the peer went away in the meantime; its owner is told of that separately
        side.consumers[accepted.carried.publication] = consumer
        self._parts.consumers.add(consumer)
        self._count(player, accepted.carried.publication, gets=True)

    def _stop(self, player: Player, side: SubscribeSide, publication: str) -> None:
        consumer = side.consumers.pop(publication, None)
        if consumer is not None:
            self._media.plane.close_consumer(consumer)
            self._parts.consumers.discard(consumer)
            self._count(player, publication, gets=False)

    def _count(self, player: Player, publication: str, *, gets: bool) -> None:
        count = player.room.getting(publication, player.id, gets)
        carried = player.room.carried.get(publication)
        publisher = self._parts.players.get(carried.player) if carried else None
        if count is not None and publisher is not None:
            self.tell_count(publisher, publication, count)


def consumer_spec(accepted: Accepted, *, consumer: int, peer: int) -> ConsumerSpec:
    """The plane's order for an accepted track."""
    return ConsumerSpec(
        consumer=consumer,
        peer=peer,
        producer=accepted.carried.producer,
        ssrc=accepted.ssrc,
        payload_type=accepted.codec.pt,
        codec=accepted.carried.format.name,
        rtx_ssrc=accepted.rtx_ssrc,
        rtx_payload_type=accepted.rtx_pt,
        extensions=accepted.extensions,
        cname=accepted.carried.player,
    )
