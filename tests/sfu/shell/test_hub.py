"""Sessions on a media side without sockets: connections that restart, are replaced or lost; what is told to whom."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import pytest
from msgspec import structs
from prometheus_client import CollectorRegistry

from sfu.config import SfuConfig
from sfu.core.sdp.transport import LocalTransport, RemoteTransport
from sfu.plane.api import ConsumerFlowing, ProducerFlowing
from sfu.plane.reference import ReferencePlane
from sfu.shell.hub import Hub
from sfu.shell.metrics import SfuMetrics
from sfu.shell.parts import SfuParts
from sfu.shell.plane_news import PlaneNews
from sfu.shell.player import Player
from sfu.shell.publishing import Publishing
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from sfu.shell.subscribing import Subscriptions
from shared.errors import BadSdp, Refused
from shared.messages.base import Message
from shared.messages.codes import CloseCode, Refusal
from shared.messages.media import (
    Consumers,
    PublicationEnded,
    PublicationFlowing,
    PublishAnswer,
    PublishOffer,
    Subscribe,
    SubscribeAnswer,
    SubscribeOffer,
    TrackOffer,
)
from shared.messages.player import Failed
from shared.records import SfuState, SfuStatus
from shared.rtc import sdp
from shared.rtc.sdp import Direction, ExtensionUri, MediaSection
from shared.tokens import SfuClaims

OURS = sdp.Fingerprint("sha-256", ":".join(["AA"] * 32))


def theirs(number: int) -> sdp.Fingerprint:
    return sdp.Fingerprint("sha-256", ":".join([f"{number:02X}"] * 32))


class FakePeer:
    """A peer connection that goes nowhere."""

    def __init__(self, plane: ReferencePlane, number: int, on_lost: Callable[[str], None]) -> None:
        self.id = number
        self.on_lost = on_lost
        self.last_heard: float | None = None
        self.closed = False
        self.restarts = 0
        self._plane = plane
        plane.add_peer(number)

    @property
    def local(self) -> LocalTransport:
        candidate = sdp.host_candidate("127.0.0.1", 7101)
        return LocalTransport(
            ufrag=f"u{self.id}r{self.restarts}", pwd="o" * 24, fingerprint=OURS, candidates=(candidate,)
        )

    def connect(self, remote: RemoteTransport) -> None: ...

    def restart(self) -> None:
        self.restarts += 1

    async def close(self) -> None:
        self.closed = True
        self._plane.remove_peer(self.id)


class FakeMedia:
    """Peers that go nowhere, on a real plane."""

    def __init__(self) -> None:
        self.plane = ReferencePlane(send=lambda datagram, address: None, rng=random.Random(1))
        self.peers: list[FakePeer] = []

    def open(self, *, on_lost: Callable[[str], None]) -> FakePeer:
        self.peers.append(FakePeer(self.plane, len(self.peers) + 1, on_lost))
        return self.peers[-1]


class FakeOutbox:
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.sent: list[Message] = []
        self.code: int | None = None

    def send(self, message: Message) -> None:
        self.sent.append(message)

    def close(self, code: int, reason: str) -> None:
        self.code = code

    async def wait_closed(self, *, within_s: float) -> None: ...

    def of(self, kind: type[Message]) -> list[Message]:
        return [message for message in self.sent if isinstance(message, kind)]


class Told:
    """In place of reports and router links: what was reached, and how often routers heard of it."""

    def __init__(self) -> None:
        self.state = SfuState(address="ws://s")
        self.reached: list[dict[str, object]] = []
        self.sent: list[Message] = []

    def reach(self, milestone: str, **facts: object) -> bool:
        assert milestone == "first_packet_s"
        self.reached.append(facts)
        return len(self.reached) == 1

    def refresh(self) -> SfuState:
        return self.state

    def send(self, message: Message) -> None:
        self.sent.append(message)


class World:
    """A hub with a clock that the test moves."""

    def __init__(self, **settings: object) -> None:
        self.now = 100.0
        self.media = FakeMedia()
        self.left: list[str] = []
        config = SfuConfig(secret="x" * 32, sfu="s", **settings)  # type: ignore[arg-type]
        metrics = SfuMetrics(CollectorRegistry(), version="v")
        self.parts = SfuParts(config=config, metrics=metrics, rng=random.Random(2), clock=lambda: self.now)
        self.subscriptions = Subscriptions(self.parts, self.media)
        self.publishing = Publishing(self.parts, self.media, self.subscriptions)
        self.hub = Hub(
            self.parts, self.publishing, self.subscriptions, on_change=lambda: None, on_left=self.left.append
        )
        self.told = Told()
        self.news = PlaneNews(self.parts, cast(Reporting, self.told), cast(RouterLinks, self.told))

    def enter(self, name: str, *owned: str, **grants: bool) -> tuple[Player, FakeOutbox]:
        """`owned`: the publications that the router knows as the player's."""
        outbox = FakeOutbox()
        claims = SfuClaims(sfu="s", room="r", player=name, identity=name, publications=owned, **grants)
        return self.hub.enter(claims, f"token-{name}-{self.now}", outbox), outbox

    def publish(
        self,
        player: Player,
        *tracks: TrackOffer,
        fingerprint: int = 1,
        ufrag: str = "them",
        named: tuple[TrackOffer, ...] = (),
        video: sdp.Codec | None = None,
    ) -> None:
        offer = sdp.describe(
            [
                MediaSection(
                    kind=track.kind, mid=track.mid, direction=Direction.SENDONLY, ufrag=ufrag, pwd="t" * 24,
                    fingerprints=(theirs(fingerprint),), setup="actpass", rtcp_mux=True,
                    codecs=(sdp.opus(),) if track.kind == "audio" else (video or sdp.vp8(),),
                    extensions=(sdp.Extension(id=1, uri=ExtensionUri.MID),),
                )
                for track in tracks
            ],
            session_id="1", version=1,
        )  # fmt: skip
        self.publishing.offer(player, PublishOffer(sdp=sdp.write(offer), tracks=named or tracks), now=self.now)

    def answer(self, player: Player, outbox: FakeOutbox, *, without: str = "") -> None:
        """Take the last offer as a browser does that does not have the codec `without`."""
        message = outbox.of(SubscribeOffer)[-1]
        assert isinstance(message, SubscribeOffer)
        sections = [
            replace(
                section,
                direction=Direction.RECVONLY if section.direction is Direction.SENDONLY else Direction.INACTIVE,
                setup="active", fingerprints=(theirs(9),), ufrag="them", pwd="t" * 24, ssrcs=(), fid_groups=(),
                port=0 if section.named(without) else 9,
            )
            for section in sdp.parse(message.sdp).media
        ]  # fmt: skip
        text = sdp.write(sdp.describe(sections, session_id="1", version=1))
        self.subscriptions.answer(player, SubscribeAnswer(sdp=text, negotiation=message.negotiation), now=self.now)


MIC, CAM = TrackOffer(mid="0", publication="mic", kind="audio"), TrackOffer(mid="1", publication="cam", kind="video")


@pytest.fixture
async def world() -> World:
    return World()


def last_answer(outbox: FakeOutbox) -> sdp.SessionDescription:
    message = outbox.of(PublishAnswer)[-1]
    assert isinstance(message, PublishAnswer)
    return sdp.parse(message.sdp)


async def test_a_renegotiation_keeps_what_it_still_names_and_ends_the_rest(world: World) -> None:
    alice, outbox = world.enter("alice")
    world.publish(alice, MIC, CAM)
    producers = {name: present.producer for name, present in alice.publications.items()}
    world.publish(alice, MIC)
    assert {name: present.producer for name, present in alice.publications.items()} == {"mic": producers["mic"]}
    assert last_answer(outbox).version == 2
    assert len(world.media.peers) == 1


async def test_an_ice_restart_gets_new_credentials_on_the_same_connection(world: World) -> None:
    alice, outbox = world.enter("alice")
    world.publish(alice, MIC)
    world.publish(alice, MIC, ufrag="them")
    assert last_answer(outbox).media[0].ufrag == "u1r0"
    world.publish(alice, MIC, ufrag="anew")
    assert last_answer(outbox).media[0].ufrag == "u1r1"
    assert len(world.media.peers) == 1


def last_offer(outbox: FakeOutbox) -> tuple[int, sdp.SessionDescription]:
    message = outbox.of(SubscribeOffer)[-1]
    assert isinstance(message, SubscribeOffer)
    return message.negotiation, sdp.parse(message.sdp)


async def test_a_viewer_whose_network_changed_is_offered_new_credentials_on_the_same_connection(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.subscriptions.restart(bob, now=world.now)
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.answer(bob, to_bob)
    number, before = last_offer(to_bob)
    consumers = set(world.parts.consumers)

    world.subscriptions.restart(bob, now=world.now)

    again, offer = last_offer(to_bob)
    assert (again, offer.media[0].ufrag) == (number + 1, "u2r1")
    assert before.media[0].ufrag == "u2r0"
    assert offer.session_id == before.session_id
    assert offer.media[0].ssrcs == before.media[0].ssrcs
    world.answer(bob, to_bob)
    assert set(world.parts.consumers) == consumers
    assert len(world.media.peers) == 2


async def test_new_credentials_that_were_lost_with_the_websocket_are_told_again(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, first = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.answer(bob, first)
    world.subscriptions.restart(bob, now=world.now)
    world.hub.websocket_lost(bob, first)

    _, second = world.enter("bob")
    world.hub.say_again(bob)

    assert last_offer(second)[1].media[0].ufrag == "u2r1"
    world.answer(bob, second)
    world.hub.say_again(bob)
    assert len(second.of(SubscribeOffer)) == 1


async def test_a_new_connection_of_the_player_replaces_the_old_with_all_its_publications(world: World) -> None:
    alice, outbox = world.enter("alice")
    world.publish(alice, MIC, fingerprint=1)
    old = alice.publications["mic"].producer
    world.publish(alice, MIC, fingerprint=2)
    await asyncio.sleep(0)
    assert [peer.closed for peer in world.media.peers] == [True, False]
    assert alice.publications["mic"].producer != old
    assert last_answer(outbox).version == 1
    assert list(world.parts.producers) == [alice.publications["mic"].producer]


async def test_an_offer_that_cant_be_taken_changes_nothing_and_leaves_no_connection(world: World) -> None:
    alice, _ = world.enter("alice")
    world.publish(alice, MIC)
    before, side = dict(alice.publications), alice.publishing
    with pytest.raises(BadSdp):
        world.publish(alice, MIC, fingerprint=2, named=(TrackOffer(mid="7", publication="mic"),))
    await asyncio.sleep(0)
    assert (alice.publications, alice.publishing) == (before, side)
    assert [peer.closed for peer in world.media.peers] == [False]


async def test_an_ice_restart_in_an_offer_that_cant_be_taken_has_not_begun(world: World) -> None:
    alice, outbox = world.enter("alice")
    world.publish(alice, MIC)
    with pytest.raises(BadSdp):
        world.publish(alice, MIC, ufrag="again", named=(TrackOffer(mid="7", publication="mic"),))
    world.publish(alice, MIC, CAM)
    assert last_answer(outbox).media[0].ufrag == "u1r0", "the player asks for no restart, so it must not see one"


async def test_an_id_goes_to_the_session_that_the_router_knows_it_of(world: World) -> None:
    mallory, to_mallory = world.enter("mallory")
    bob, to_bob = world.enter("bob")
    world.publish(mallory, structs.replace(MIC, generation=10**9))
    squatted = mallory.publications["mic"].producer
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.answer(bob, to_bob)
    alice, to_alice = world.enter("alice", "mic")
    world.publish(alice, structs.replace(MIC, generation=2), fingerprint=2)
    assert (list(mallory.publications), list(alice.publications)) == ([], ["mic"])
    assert squatted not in world.parts.producers
    assert alice.room.carried["mic"].player == "alice"
    (told,) = to_mallory.of(Failed)
    assert (told.code, told.publication) == (Refusal.STALE, "mic")  # type: ignore[attr-defined]
    assert to_bob.of(PublicationEnded) == [PublicationEnded(publication="mic")]
    world.answer(bob, to_bob)  # that the squatter's has gone
    world.answer(bob, to_bob)
    assert [each.producer for each in world.media.plane.snapshot().consumers] == [alice.publications["mic"].producer]
    with pytest.raises(Refused, match="another player"):
        world.publish(mallory, structs.replace(MIC, generation=10**9 + 1))
    assert not to_alice.of(Failed)


async def test_an_id_that_no_token_names_stays_with_the_first(world: World) -> None:
    alice, _ = world.enter("alice")
    world.publish(alice, MIC)
    mallory, _ = world.enter("mallory")
    with pytest.raises(Refused, match="another player"):
        world.publish(mallory, MIC, fingerprint=2)


async def test_an_owner_whose_connection_is_lost_gets_its_id_back(world: World) -> None:
    alice, _ = world.enter("alice", "mic")
    mallory, _ = world.enter("mallory")
    world.publish(alice, MIC)
    world.media.peers[0].on_lost("consent-lost")
    world.publish(mallory, MIC, fingerprint=2)
    world.publish(alice, MIC, fingerprint=3)
    assert (list(mallory.publications), list(alice.publications)) == ([], ["mic"])


async def test_a_first_publisher_whose_connection_is_lost_gets_its_id_back_as_well(world: World) -> None:
    alice, _ = world.enter("alice")
    mallory, _ = world.enter("mallory")
    world.publish(alice, MIC, CAM)
    world.media.peers[0].on_lost("consent-lost")
    world.publish(mallory, MIC, fingerprint=2)
    world.publish(alice, MIC, fingerprint=3)
    assert (list(mallory.publications), list(alice.publications)) == ([], ["mic"])
    assert alice.room.owners == {"mic": "alice"}, "what it does not publish any more is kept for it no longer"
    world.hub.leave(alice)
    assert mallory.room.owners == {}


async def test_what_its_owner_has_ended_others_may_keep(world: World) -> None:
    """A room may have one id for its one screen, which players share in turn."""
    alice, _ = world.enter("alice", "mic", "cam")
    bob, _ = world.enter("bob")
    world.publish(alice, MIC, CAM)
    world.publishing.stop(alice, ("mic",), now=world.now)
    world.publish(alice, structs.replace(CAM, mid="0"))
    world.publish(alice, structs.replace(MIC, publication="other"))
    world.publish(bob, MIC, CAM, fingerprint=2)
    with pytest.raises(Refused, match="another player"):
        world.publish(alice, MIC)
    with pytest.raises(Refused, match="another player"):
        world.publish(alice, CAM)


async def test_the_newest_token_says_whose_an_id_is(world: World) -> None:
    alice, _ = world.enter("alice", "mic")
    world.publish(alice, MIC)
    bob, _ = world.enter("bob", "mic")
    world.publish(bob, MIC, fingerprint=2)
    with pytest.raises(Refused, match="another player"):
        world.publish(alice, MIC)
    world.now += 1
    world.enter("bob")
    world.now += 1
    world.enter("alice", "mic")
    world.publish(alice, MIC, fingerprint=3)
    assert (list(bob.publications), list(alice.publications)) == ([], ["mic"])


async def test_bounds_on_publications_and_subscriptions() -> None:
    world = World(max_publications=1, max_subscriptions=2)
    alice, _ = world.enter("alice")
    with pytest.raises(Refused, match=Refusal.TOO_MANY):
        world.publish(alice, MIC, CAM)
    with pytest.raises(Refused, match=Refusal.TOO_MANY):
        world.subscriptions.want(alice, Subscribe(publications=("a", "b", "c")), now=world.now)


async def test_a_publisher_hears_when_it_flows_and_how_many_get_it(world: World) -> None:
    alice, to_alice = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.answer(bob, to_bob)
    world.news.take([ProducerFlowing(alice.publications["mic"].producer), ProducerFlowing(999)])
    assert to_alice.sent[1:] == [Consumers(publication="mic", count=1), PublicationFlowing(publication="mic")]
    world.subscriptions.want(bob, Subscribe(), now=world.now)
    assert to_alice.sent[-1] == Consumers(publication="mic", count=0)
    assert len(world.parts.consumers) == 0


async def test_a_players_first_packet_shows_that_the_sfu_carries_calls_and_a_probes_does_not(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.answer(bob, to_bob)
    (consumer,) = world.parts.consumers
    world.news.take([ConsumerFlowing(consumer + 1)])
    assert world.told.reached == []
    world.news.take([ConsumerFlowing(consumer)])
    world.news.proved(("192.0.2.1", 7101))
    assert world.told.reached == [{"by": "player"}, {"by": "probe", "address": "192.0.2.1:7101"}]
    assert len(world.told.sent) == 1, "routers hear of the first at once, and of the second nothing new"


async def test_who_cant_decode_a_publication_is_told_which_and_gets_the_rest(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.publish(alice, MIC, CAM, video=sdp.h264(98, profile="640c1f"))
    world.subscriptions.want(bob, Subscribe(publications=("mic", "cam")), now=world.now)
    world.answer(bob, to_bob, without="H264")
    (failed,) = to_bob.of(Failed)
    assert isinstance(failed, Failed)
    assert (failed.code, failed.publication) == (Refusal.CODEC_REFUSED, "cam")
    assert "cam (H264 640c1f)" in failed.message
    assert len(world.parts.consumers) == 1


async def test_who_comes_back_hears_again_what_it_may_have_missed(world: World) -> None:
    alice, first = world.enter("alice")
    world.publish(alice, MIC)
    world.hub.websocket_lost(alice, first)
    world.news.take([ProducerFlowing(alice.publications["mic"].producer)])
    again, second = world.enter("alice")
    world.hub.say_again(again)
    assert again is alice
    assert second.sent == [PublicationFlowing(publication="mic"), Consumers(publication="mic", count=0)]


async def test_an_offer_that_was_lost_with_the_websocket_is_made_again(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, first = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.hub.websocket_lost(bob, first)
    _, second = world.enter("bob")
    world.hub.say_again(bob)
    (offer,) = second.of(SubscribeOffer)
    assert isinstance(offer, SubscribeOffer)
    assert offer.negotiation == 2
    world.answer(bob, second)
    assert len(world.parts.consumers) == 1


async def test_an_answer_that_does_not_come_is_asked_for_again(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, outbox = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.now += 11
    world.hub.sweep()
    assert len(outbox.of(SubscribeOffer)) == 2


async def test_what_came_while_a_bad_answer_was_under_way_is_offered_after_it(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic", "cam")), now=world.now)
    world.publish(alice, MIC, CAM)
    with pytest.raises(BadSdp):
        world.subscriptions.answer(bob, SubscribeAnswer(sdp="garbage", negotiation=1), now=world.now)
    assert len(to_bob.of(SubscribeOffer)) == 2
    world.answer(bob, to_bob)
    assert len(world.parts.consumers) == 2


async def test_a_lost_publish_connection_ends_its_publications_and_not_the_session(world: World) -> None:
    alice, to_alice = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.answer(bob, to_bob)
    world.media.peers[0].on_lost("consent-lost")
    assert to_alice.of(Failed)[-1].code == "consent-lost"  # type: ignore[attr-defined]
    assert to_bob.of(PublicationEnded) == [PublicationEnded(publication="mic")]
    assert len(world.parts.consumers) == 0
    assert set(world.parts.players) == {"alice", "bob"}
    world.publish(alice, MIC)
    assert world.parts.producers


async def test_a_lost_subscribe_connection_is_opened_again_by_the_next_wish(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.publish(alice, MIC)
    wish = Subscribe(publications=("mic",))
    world.subscriptions.want(bob, wish, now=world.now)
    world.answer(bob, to_bob)
    world.media.peers[1].on_lost("closed-by-peer")
    assert len(world.parts.consumers) == 0
    world.subscriptions.want(bob, wish, now=world.now)
    world.answer(bob, to_bob)
    assert len(world.parts.consumers) == 1
    assert len(world.media.peers) == 3


async def test_a_session_ends_with_everything_that_was_its_own(world: World) -> None:
    alice, _ = world.enter("alice")
    bob, to_bob = world.enter("bob")
    world.publish(alice, MIC)
    world.subscriptions.want(bob, Subscribe(publications=("mic",)), now=world.now)
    world.answer(bob, to_bob)
    world.hub.leave(bob)
    world.hub.leave(alice)
    world.hub.leave(alice)
    await asyncio.sleep(0)
    assert (world.parts.players, world.parts.rooms, world.parts.producers) == ({}, {}, {})
    assert all(peer.closed for peer in world.media.peers)
    snapshot = world.media.plane.snapshot()
    assert (snapshot.peers, snapshot.producers, snapshot.consumers) == ((), (), ())
    assert world.left == ["left", "left"]
    assert world.parts.emptied.is_set()


async def test_a_session_whose_websocket_is_away_for_minutes_keeps_its_media(world: World) -> None:
    """Its proxy is away; that says nothing of packets that flow."""
    alice, outbox = world.enter("alice")
    world.publish(alice, MIC)
    reentry = world.hub.new_reentry(alice)
    world.hub.websocket_lost(alice, outbox)
    for _ in range(600):
        world.now += 1
        world.media.peers[0].last_heard = world.now - 0.5
        world.hub.sweep()
    assert world.hub.coming_back(reentry) is alice
    assert not world.media.peers[0].closed
    world.now += 6
    world.hub.sweep()
    assert world.left == ["silent"]


async def test_a_newer_websocket_replaces_the_older(world: World) -> None:
    alice, first = world.enter("alice")
    _, second = world.enter("alice")
    assert first.code == CloseCode.REPLACED
    world.hub.websocket_lost(alice, first)
    assert alice.outbox is second, "the end of the old one says nothing of the new one"


def test_a_token_opens_one_session_once_even_while_that_session_lives() -> None:
    world = World()
    alice, outbox = world.enter("alice")
    (token,) = alice.tokens
    refused = world.hub.admit(alice.claims, token, status=SfuStatus.ONLINE)
    assert (refused.admitted, refused.reason) == (False, "the token has been used")
    world.hub.websocket_lost(alice, outbox)
    assert world.hub.admit(alice.claims, token, status=SfuStatus.ONLINE).admitted, "an older client has no other way"


def test_a_session_comes_back_with_its_reentry_token_and_ends_with_it() -> None:
    world = World()
    alice, _ = world.enter("alice")
    first = world.hub.new_reentry(alice)
    assert world.hub.coming_back(first) is alice
    second = world.hub.new_reentry(alice)
    world.hub.heard(alice)
    assert (world.hub.coming_back(first), world.hub.coming_back(second)) == (None, alice)
    world.hub.leave(alice)
    assert world.hub.coming_back(second) is None
