"""The publish connection of players: offers answered, publications begun and ended."""

from __future__ import annotations

from sfu.core.sdp.publish import PublishedLine, take_offer
from sfu.core.sdp.subscribe import Carried
from sfu.core.sdp.transport import RemoteTransport
from sfu.plane.api import EncodingSsrc, ProducerCodec, ProducerSpec
from sfu.shell.media import Media, MediaPeer
from sfu.shell.parts import SfuParts
from sfu.shell.player import Player, Publication, PublishSide
from sfu.shell.subscribing import Subscriptions
from shared.errors import Refused
from shared.messages.codes import Refusal
from shared.messages.media import PublicationEnded, PublishAnswer, PublishOffer
from shared.messages.player import Failed
from shared.rtc import h264
from shared.rtc.sdp import parse, write


class Publishing:
    """What players send. Raises `BadSdp` or `Refused` for offers that can't be taken; nothing has changed then."""

    def __init__(self, parts: SfuParts, media: Media, subscriptions: Subscriptions) -> None:
        self._parts = parts
        self._media = media
        self._subscriptions = subscriptions

    def offer(self, player: Player, message: PublishOffer, *, now: float) -> None:
        """Answer an offer. A cordoned SFU does so as well: players who are here go on as before."""
        if not player.claims.publish:
            raise Refused(Refusal.NOT_ALLOWED, "the token has no publish grant")
        if len(message.tracks) > self._parts.config.max_publications:
            raise Refused(Refusal.TOO_MANY, f"more than {self._parts.config.max_publications} publications")
        for track in message.tracks:
            reason = player.room.refuses(
                track.publication,
                player=player.id,
                generation=track.generation,
                identity=player.claims.identity,
            )
            if reason:
                raise Refused(Refusal.STALE, f"{track.publication[:64]}: {reason}")
        taken = take_offer(parse(message.sdp), message.tracks)  # from here on nothing is refused any more
        side = player.publishing = self._side(player, taken.remote)
        side.peer.connect(side.remote)
        self._apply(player, side.peer, taken.tracks, now=now)
        answer = taken.answer(side.peer.local, session_id=str(side.peer.id), version=side.version)
        player.tell(PublishAnswer(sdp=write(answer), negotiation=message.negotiation))

    def _side(self, player: Player, remote: RemoteTransport) -> PublishSide:
        """The connection that an offer is about: the present one, restarted if it asks so, or a new one instead."""
        side = player.publishing
        if side is not None and not _same_association(side.remote, remote):
            self.lost(player)
            side = None
        if side is None:
            return PublishSide(peer=self._open(player), remote=remote, version=1)
        if side.remote.ufrag != remote.ufrag:
            side.peer.restart()
        return PublishSide(peer=side.peer, remote=remote, version=side.version + 1)

    def stop(self, player: Player, publications: tuple[str, ...], *, now: float) -> None:
        """End these, as far as they are the player's."""
        for publication in publications:
            if publication in player.publications:
                player.room.stopped(player.id, publication)
                self.end(player, publication, now=now)

    def lost(self, player: Player) -> None:
        """The connection is gone, or about to be replaced: end all that came through it."""
        side, player.publishing = player.publishing, None
        for publication in list(player.publications):
            self.end(player, publication, now=self._parts.clock())
        if side is not None:
            self._parts.close_peer(side.peer)

    def end(self, player: Player, publication: str, *, now: float) -> None:
        """End one publication here, and tell those who want it."""
        producer = player.publications.pop(publication).producer
        self._media.plane.close_producer(producer)
        del self._parts.producers[producer]
        for other in sorted(player.room.end(publication, producer=producer)):
            wanting = self._parts.players[other]
            wanting.tell(PublicationEnded(publication=publication))
            self._subscriptions.refresh(wanting, now=now)

    def _connection_lost(self, player: Player, reason: str) -> None:
        """The publish connection has failed or was closed by the player."""
        self._parts.trouble(reason)
        self.lost(player)
        player.tell(Failed(code=reason, message="the publish connection is gone", request="publish-offer"))

    def _open(self, player: Player) -> MediaPeer:
        return self._media.open(on_lost=lambda reason: self._connection_lost(player, reason))

    def _apply(self, player: Player, peer: MediaPeer, tracks: tuple[PublishedLine, ...], *, now: float) -> None:
        """Bring the publications in step with an offer: one that is no longer in it has ended."""
        offered = {track.publication: track for track in tracks}
        for publication, present in list(player.publications.items()):
            if publication not in offered:
                player.room.stopped(player.id, publication)
            if offered.get(publication) != present.track:
                self.end(player, publication, now=now)
        player.room.offered(player.id, offered, named=player.claims.publications)
        for publication, track in offered.items():
            if publication not in player.publications:
                self._begin(player, peer, track, now=now)

    def _end_squatted(self, player: Player, publication: str, *, now: float) -> None:
        """End the copy of a session that has taken an id which is another's; it is told, for it may mean no harm."""
        squatter = player.room.squatter(publication, player=player.id, identity=player.claims.identity)
        if not squatter:
            return
        self._parts.trouble("squatted")
        loser = self._parts.players[squatter]
        self.end(loser, publication, now=now)
        detail = "the publication of this id is another session's, which has come with it; publish under another id"
        loser.tell(Failed(code=Refusal.STALE, message=detail, request="publish-offer", publication=publication))

    def _begin(self, player: Player, peer: MediaPeer, track: PublishedLine, *, now: float) -> None:
        self._end_squatted(player, track.publication, now=now)
        producer = self._parts.next_id()
        spec = producer_spec(
            track, producer=producer, peer=peer.id, cap_bps=self._parts.config.publisher_cap_kbps * 1000
        )
        if not self._media.plane.produce(spec, now=now):
            return  # the peer went away in the meantime; its owner is told of that separately
        player.publications[track.publication] = Publication(producer=producer, track=track)
        self._parts.producers[producer] = (player, track.publication)
        player.room.carry(
            Carried(
                publication=track.publication,
                generation=track.generation,
                player=player.id,
                format=track.format,
                producer=producer,
                identity=player.claims.identity,
            )
        )
        for other in sorted(player.room.wanting(track.publication)):
            self._subscriptions.refresh(self._parts.players[other], now=now)


def producer_spec(track: PublishedLine, *, producer: int, peer: int, cap_bps: int) -> ProducerSpec:
    """The plane's order for a published track."""
    return ProducerSpec(
        producer=producer,
        peer=peer,
        kind="audio" if track.format.kind == "audio" else "video",
        mid=track.mid,
        codecs=(
            ProducerCodec(
                payload_type=track.codec.pt,
                name=track.format.name,
                clock_rate=track.codec.clock,
                rtx_payload_type=track.rtx.pt if track.rtx else None,
            ),
        ),
        extensions={extension.id: extension.uri for extension in track.extensions},
        rids=track.rids,
        ssrcs=tuple(EncodingSsrc(ssrc=ssrc, rtx_ssrc=rtx_ssrc) for ssrc, rtx_ssrc in track.ssrcs),
        remb_bps=cap_bps,
        nack=track.nack,
        parameter_sets=h264.described_sets(track.format.parameter_sets),
    )


def _same_association(old: RemoteTransport, new: RemoteTransport) -> bool:
    """True when an offer goes on with the same DTLS association: certificates are made per connection (RFC 8842)."""
    return set(old.fingerprints) == set(new.fingerprints)
