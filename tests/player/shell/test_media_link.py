"""A link's websocket and its two peer connections: what the failure of each one costs, without any of them."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from player.core.own_tracks import OwnTracks
from player.core.session_sdp import FarEnd, OwnEnd
from player.core.track import Numbers
from player.core.tracks import OpusTrack
from player.shell import downlink, media_link, uplink
from player.shell.media_link import MediaLink
from player.shell.publisher import TrackPublisher
from player.shell.sfu_socket import SocketCallbacks
from player.shell.transport import TransportFailed
from shared.messages import media as m
from shared.messages.base import Message
from shared.messages.codes import Refusal
from shared.messages.player import Failed
from shared.rtc import sdp

PRINT = sdp.Fingerprint("sha-256", ":".join(["AB"] * 32))


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 2
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.001)


class FakeTransport:
    """Reaches the SFU, or not, as the test says."""

    made: list[FakeTransport]
    reachable: bool

    def __init__(self, *, again: FakeTransport | None = None, on_closed: Callable[[str], None], **_: Any) -> None:
        self.own = again.own if again else OwnEnd(f"{len(self.made):08x}", "password", PRINT)
        self.again = again
        self.on_closed = on_closed
        self.connected = self.closed = False
        self.far: FarEnd | None = None
        self.made.append(self)

    async def connect(self, far: FarEnd) -> None:
        self.far = far
        await asyncio.sleep(0)
        if not FakeTransport.reachable:
            raise TransportFailed("ice-timeout")
        self.connected = True

    def fail(self) -> None:
        self.connected = False
        self.on_closed("ice-silent")

    async def close(self) -> None:
        self.connected, self.closed = False, True


class FakeSocket:
    """Keeps what is said."""

    def __init__(self, address: str, token: str, callbacks: SocketCallbacks, *, rng: random.Random) -> None:
        self.said: list[Message] = []
        self.tell = callbacks
        self.inside = self.over = self.needs_token = self.kept = False

    def send(self, message: Message) -> bool:
        self.said.append(message)
        return True

    def enter(self, *, complete: bool = True) -> None:
        self.inside = True
        self.tell.entered(complete)

    def keep_grants(self) -> None:
        self.kept = True

    def grant(self, address: str, token: str) -> None: ...

    def renew(self, address: str, token: str) -> None: ...

    async def close(self) -> None: ...


class Link:
    """A link, and what its owner hears."""

    def __init__(self, tracks: int = 1) -> None:
        FakeTransport.made, FakeTransport.reachable = [], True
        mine = [OpusTrack(publication="mic", mid="0", numbers=Numbers(1, 2, 3, 4, 5), at=0.0)][:tracks]
        self.publisher = TrackPublisher(OwnTracks(mine), cname="ann")
        self.heard: list[Any] = []
        self.link = MediaLink(
            sfu="a", address="ws://a", token="t", owner=self, publisher=self.publisher, rng=random.Random(1)
        )
        self.socket: FakeSocket = self.link._socket  # type: ignore[assignment]

    # the owner

    def link_entered(self, link: MediaLink, *, carrying: bool) -> None:
        self.heard.append("entered carrying" if carrying else "entered")

    def link_connected(self, link: MediaLink) -> None:
        self.heard.append("connected")

    def link_refused(self, link: MediaLink, number: int, code: str) -> None:
        self.heard.append(f"refused {number}: {code}")

    def link_message(self, link: MediaLink, message: m.ToMedia) -> None:
        self.heard.append(message)

    def link_away(self, link: MediaLink, reason: str) -> None:
        self.heard.append(f"away: {reason}")

    def link_unpublished(self, link: MediaLink, reason: str) -> None:
        self.heard.append(f"unpublished: {reason}")

    def link_down(self, link: MediaLink, reason: str) -> None:
        self.heard.append(f"down: {reason}")

    def link_unit(self, *_: object) -> None: ...

    # the SFU

    def say(self, message: m.ToMedia) -> None:
        self.socket.tell.message(message)

    def offers(self, ufrag: str = "firstdown", negotiation: int = 1) -> None:
        """A subscribe offer of an SFU's end with this name."""
        tracks = (m.TrackOffer(mid="0", publication="hers", kind="audio"),)
        self.say(m.SubscribeOffer(sdp=_text(ufrag, sdp.Direction.SENDONLY), tracks=tracks, negotiation=negotiation))

    def answers(self, ufrag: str = "firstup") -> None:
        """The answer to the last offer, by an SFU's end with this name."""
        number = self.last(m.PublishOffer).negotiation
        self.say(m.PublishAnswer(sdp=_text(ufrag, sdp.Direction.RECVONLY), negotiation=number))

    def last(self, kind: type[Any]) -> Any:
        return [message for message in self.socket.said if isinstance(message, kind)][-1]

    def count(self, kind: type[Any]) -> int:
        return sum(isinstance(message, kind) for message in self.socket.said)

    async def both(self) -> tuple[FakeTransport, FakeTransport]:
        """Publish and subscribe; the two connections."""
        self.link.carry(7, 1)
        self.socket.enter()
        self.answers()
        self.link.want(["hers"])
        await until(lambda: self.count(m.Subscribe) == 1)
        self.offers()
        up, down = FakeTransport.made
        await until(lambda: up.connected and down.connected)
        return up, down

    async def visits(self) -> FakeTransport:
        """Subscribe only."""
        self.socket.enter()
        self.link.want(["hers"])
        await until(lambda: self.count(m.Subscribe) == 1)
        self.offers()
        await until(lambda: FakeTransport.made[0].connected)
        return FakeTransport.made[0]


def _text(ufrag: str, direction: sdp.Direction) -> str:
    section = sdp.MediaSection(
        kind="audio", mid="0", direction=direction, ufrag=ufrag, pwd="p" * 24, fingerprints=(PRINT,), setup="actpass",
        codecs=(sdp.opus(111),), extensions=(sdp.Extension(id=1, uri=sdp.ExtensionUri.MID),),
        candidates=(sdp.host_candidate("127.0.0.1", 4000),), ssrcs=(sdp.Ssrc(ssrc=61),), rtcp_mux=True,
    )  # fmt: skip
    return sdp.write(sdp.describe([section], session_id="9", version=1, ice_lite=True))


@pytest.fixture(autouse=True)
def _fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(media_link, "SfuSocket", FakeSocket)
    monkeypatch.setattr(uplink, "MediaTransport", FakeTransport)
    monkeypatch.setattr(downlink, "MediaTransport", FakeTransport)
    monkeypatch.setattr(downlink, "full_jitter", lambda attempt, rng: 0.001)


# --- the subscribe connection ---


async def test_a_subscribe_connection_that_breaks_while_we_publish_is_opened_again() -> None:
    """Chaos, seed 3, round 16: it never was, and the player was deaf until it moved."""
    world = Link()
    up, down = await world.both()
    down.fail()
    await until(lambda: len(FakeTransport.made) == 3 and FakeTransport.made[2].connected)
    again = FakeTransport.made[2]
    assert (again.again, again.own, again.far) == (down, down.own, down.far), "to the SFU it is the same peer"
    assert world.link._down.receiver.transport is again  # type: ignore[union-attr]
    assert up.connected
    assert down.closed
    assert world.heard == ["entered carrying", "connected"]


async def test_one_that_can_not_be_opened_while_we_publish_is_tried_until_it_can() -> None:
    world = Link()
    _, down = await world.both()
    FakeTransport.reachable = False
    down.fail()
    await until(lambda: len(FakeTransport.made) > 5)
    FakeTransport.reachable = True
    await until(lambda: FakeTransport.made[-1].connected)
    assert all(transport.closed for transport in FakeTransport.made[1:-1])
    assert world.heard == ["entered carrying", "connected"]


async def test_without_publishing_its_failure_is_the_end_of_the_link() -> None:
    world = Link()
    down = await world.visits()
    down.fail()
    assert world.heard == ["entered", "down: ice-silent"]


async def test_an_sfu_that_has_lost_its_end_is_asked_for_another() -> None:
    """The SFU says so on the websocket; what it then offers is an end that we have not met."""
    world = Link()
    _, down = await world.both()
    world.say(Failed(code="consent-lost", request="subscribe"))
    await until(lambda: world.count(m.Subscribe) == 2)
    assert world.last(m.Subscribe).publications == ("hers",)
    assert down.closed
    world.offers("seconddown", negotiation=1)
    await until(lambda: FakeTransport.made[-1].connected)
    other = FakeTransport.made[-1]
    assert other.far is not None
    assert (other.far.ufrag, other.again) == ("seconddown", None)


async def test_an_offer_of_another_end_replaces_a_connection_that_only_we_take_for_alive() -> None:
    """An SFU that was restarted, or gave us up while our websocket was away."""
    world = Link()
    _, down = await world.both()
    world.offers("seconddown", negotiation=2)
    await until(lambda: FakeTransport.made[-1].connected and FakeTransport.made[-1] is not down)
    assert down.closed
    assert world.last(m.SubscribeAnswer).negotiation == 2


async def test_a_later_offer_of_the_same_end_leaves_the_connection_alone() -> None:
    world = Link()
    await world.both()
    world.offers(negotiation=2)
    await asyncio.sleep(0.01)
    assert len(FakeTransport.made) == 2


# --- the publish connection ---


async def test_a_publish_connection_that_breaks_leaves_what_we_hear() -> None:
    world = Link()
    up, down = await world.both()
    up.fail()
    assert world.heard[-1] == "unpublished: ice-silent"
    assert world.link.alive
    assert down.connected
    world.link.carry(8, 2)
    world.link.offer()
    assert FakeTransport.made[-1] is not up, "publishing there again takes another connection"


async def test_it_is_the_end_of_a_link_over_which_nothing_is_heard() -> None:
    world = Link()
    world.link.carry(7, 1)
    FakeTransport.reachable = False
    world.socket.enter()
    world.answers()
    await until(lambda: len(world.heard) > 1)
    assert world.heard == ["entered carrying", "down: ice-timeout"]


async def test_an_sfu_that_has_lost_its_end_of_publishing_is_believed() -> None:
    world = Link()
    up, _ = await world.both()
    world.say(Failed(code="consent-lost", request="publish-offer"))
    assert world.heard[-1] == "unpublished: consent-lost"
    assert not world.link._up.connected
    await until(lambda: up.closed)


async def test_a_word_about_an_end_that_we_are_replacing_is_no_news() -> None:
    world = Link()
    await world.both()
    world.link.offer()
    world.say(Failed(code="consent-lost", request="publish-offer"))
    world.answers("secondup")
    await until(lambda: FakeTransport.made[-1].connected)
    assert FakeTransport.made[-1].far is not None
    assert FakeTransport.made[-1].far.ufrag == "secondup"
    assert not [each for each in world.heard if each == "unpublished: consent-lost"]


# --- the websocket ---


async def test_what_was_said_on_the_last_websocket_is_said_again_on_the_next() -> None:
    world = Link()
    await world.both()
    world.socket.said.clear()
    world.socket.inside = False
    world.socket.enter()
    assert [type(message) for message in world.socket.said] == [m.Subscribe, m.PublishOffer]
    assert world.last(m.PublishOffer).tracks[0].generation == 1
    assert world.heard[-1] == "entered carrying"
    assert len(FakeTransport.made) == 2


async def test_a_goodbye_to_publishing_that_was_lost_is_said_again() -> None:
    world = Link()
    await world.both()
    world.socket.inside = False
    world.link.stop_publishing()
    world.socket.said.clear()
    world.socket.enter()
    assert [type(message) for message in world.socket.said] == [m.Subscribe, m.StopPublishing]


async def test_a_revival_offers_nothing_again_so_that_no_subscriber_loses_what_flows() -> None:
    world = Link()
    await world.both()
    world.link.revive(8, 5, address="ws://a", token="new")
    world.socket.said.clear()
    world.socket.enter()
    assert [type(message) for message in world.socket.said] == [m.Subscribe]
    world.link.offer()
    assert world.last(m.PublishOffer).tracks[0].generation == 1, "what flows keeps its generation at the SFU"


async def test_a_codec_that_we_lack_is_told_and_takes_no_right_away() -> None:
    world = Link(tracks=0)
    world.socket.enter()
    world.link.carry(7, 1, address="ws://a", token="more")
    lacking = Failed(code=Refusal.CODEC_REFUSED, publication="cam", request="subscribe-answer")
    left_out = Failed(code=Refusal.TOO_MANY, request="subscribe")
    world.say(lacking)
    world.say(left_out)
    assert (world.link.number, world.heard[1:]) == (7, [lacking, left_out])
    world.say(Failed(code=Refusal.SFU_CORDONED, request="enter"))
    assert (world.link.number, world.heard[-1]) == (None, "refused 7: sfu-cordoned")
    assert world.socket.kept


async def test_a_description_of_no_use_ends_a_visit_and_sends_a_player_elsewhere() -> None:
    visit = Link()
    visit.socket.enter()
    visit.say(m.SubscribeOffer(sdp="nonsense", negotiation=1))
    assert visit.heard == ["entered", "down: bad-sdp"]
    home = Link()
    home.link.carry(7, 1)
    home.socket.enter()
    home.say(m.PublishAnswer(sdp="nonsense", negotiation=1))
    assert home.heard == ["entered carrying", "away: bad-sdp"]


async def test_the_end_closes_all_once() -> None:
    world = Link()
    up, down = await world.both()
    await world.link.leave()
    assert up.closed
    assert down.closed
    world.socket.tell.ended("late")
    up.on_closed("late")
    assert world.heard == ["entered carrying", "connected"]
    assert world.last(m.LeaveSfu)
