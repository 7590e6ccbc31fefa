"""A real SFU process with real players: publish to subscribe, sessions and grants, and what hostile input comes to."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

from shared.messages.codes import CloseCode, Refusal
from shared.messages.media import (
    Consumers,
    Enter,
    Entered,
    LeaveSfu,
    PublicationEnded,
    PublicationFlowing,
    PublishOffer,
    RequestKeyframe,
    StopPublishing,
    Subscribe,
    SubscribeAnswer,
    SubscribeOffer,
    TrackOffer,
)
from shared.messages.player import Failed, Ping, Pong
from shared.rtc import sdp
from tests.fakes.media_player import MediaPlayer, media_token
from tests.fakes.rtc_peer import RtcPeer
from tests.fakes.sfu_process import SfuProcess, until

pytestmark = pytest.mark.asyncio(loop_scope="module")
Join = Callable[..., MediaPlayer]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def sfu() -> AsyncIterator[SfuProcess]:
    process = await SfuProcess.start()
    yield process
    await process.kill()


@pytest_asyncio.fixture(loop_scope="module")
async def join(sfu: SfuProcess) -> AsyncIterator[Join]:
    """Makes players with names of their own; they leave at the end of the test, and then nothing of them is left."""
    players: list[MediaPlayer] = []

    def make(name: str = "p") -> MediaPlayer:
        players.append(MediaPlayer(sfu.address, f"{name}-{secrets.token_hex(4)}"))
        return players[-1]

    yield make
    for player in players:
        if player.websocket is not None and player.close_code is None:
            await player.say(LeaveSfu())
        await player.close()


async def here(sfu: SfuProcess) -> dict[str, dict[str, object]]:
    """`/api/players` by session."""
    _, body = await sfu.get("/api/players")
    return {entry["player"]: entry for entry in body["players"]}


async def until_here(sfu: SfuProcess, condition: Callable[[dict[str, dict[str, object]]], bool]) -> None:
    """Wait until `/api/players` is as the test wants it."""
    async with asyncio.timeout(60):
        while not condition(await here(sfu)):  # noqa: ASYNC110 - another process is watched
            await asyncio.sleep(0.02)


async def test_media_flows_from_publish_to_subscribe_and_ends_in_order(sfu: SfuProcess, join: Join) -> None:
    alice, bob = join("alice"), join("bob")
    entered = await alice.enter()
    assert (entered.sfu, entered.status) == ("sfu-t", "ONLINE")
    assert entered.incarnation > 0
    await bob.enter(publish=False)
    await bob.subscribe("cam", "mic")
    await alice.publish(video="cam", audio="mic")
    await alice.send_until(lambda: len(alice.of(PublicationFlowing)) == 1)
    assert alice.of(PublicationFlowing)[0] == PublicationFlowing(publication="cam", generation=1)
    await alice.send_until(lambda: len(alice.of(PublicationFlowing)) == 2, kind="audio", mid="1")
    await until(lambda: bob.tracks.keys() == {"cam", "mic"} and bob.receiving is not None)
    await until(lambda: Consumers(publication="cam", count=1) in alice.heard)
    await alice.send_until(lambda: bob.received >= 20)
    assert bob.receiving is not None
    offered = sdp.parse(bob.of(SubscribeOffer)[-1].sdp)
    video = offered.section(bob.tracks["cam"])
    assert video is not None
    assert {header.ssrc for header in bob.receiving.headers() if header.payload_type == 96} == {video.fid_groups[0][0]}
    state = await sfu.state()
    await until_here(sfu, lambda seen: bool(seen[alice.name]["publications"]))
    assert state["status"] == "ONLINE"
    await alice.say(StopPublishing(publications=("cam",)))
    assert await bob.wait(PublicationEnded) == PublicationEnded(publication="cam")
    await until(lambda: bob.tracks.keys() == {"mic"})


async def test_a_publisher_goes_on_from_a_new_port_and_over_a_new_connection(join: Join) -> None:
    """First its port changes, as behind NAT; then it connects again with the certificate that it has."""
    alice, bob = join("alice"), join("bob")
    await alice.enter()
    await bob.enter()
    await bob.subscribe("moving")
    answer = sdp.parse((await alice.publish(video="moving")).sdp)
    await alice.send_until(lambda: bob.received > 5)
    before = alice.sending
    assert before is not None
    assert before.transport is not None
    before.transport.close()
    alice.sending = moved = await RtcPeer.open(before.server)
    moved.session = before.session
    await moved.check(answer.media[0].ufrag, answer.media[0].pwd, nominate=False)
    seen = bob.received
    await asyncio.wait_for(alice.send_until(lambda: bob.received > seen + 5), 3.0)

    assert moved.transport is not None
    moved.transport.close()
    before.dtls.abandon()
    alice.sending = again = await RtcPeer.open(before.server)
    again.use_certificate(before.certificate)
    seen = bob.received
    await asyncio.wait_for(alice.publish(video="moving"), 5.0)
    await asyncio.wait_for(alice.send_until(lambda: bob.received > seen + 5), 5.0)
    assert not again.closed_by_sfu
    assert not alice.of(Failed)


async def test_a_publication_that_comes_later_is_offered_then(join: Join) -> None:
    alice, bob = join("alice"), join("bob")
    await alice.enter()
    await bob.enter()
    await bob.subscribe("late")
    assert await alice.publish(audio="late")
    await until(lambda: "late" in bob.tracks)
    await alice.send_until(lambda: bob.received > 3, kind="audio")


async def test_rooms_are_apart(sfu: SfuProcess, join: Join) -> None:
    alice, spy = join("alice"), join("spy")
    await alice.enter()
    await spy.enter(media_token(spy.name, room="another"))
    await spy.subscribe("secret")
    await alice.publish(audio="secret")
    await alice.send_until(lambda: bool(alice.of(PublicationFlowing)), kind="audio")
    await spy.say(Ping(n=1))
    await spy.wait(Pong)
    assert spy.of(SubscribeOffer) == []


async def test_a_lost_websocket_comes_back_to_the_same_session_while_media_goes_on(sfu: SfuProcess, join: Join) -> None:
    alice, bob = join("alice"), join("bob")
    await alice.enter()
    await bob.enter()
    await alice.publish(video="cam2")
    await bob.subscribe("cam2")
    await alice.send_until(lambda: bob.received > 3)
    await bob.drop_websocket()
    await until_here(sfu, lambda seen: not seen[bob.name]["connected"])
    before = bob.received
    await alice.send_until(lambda: bob.received > before + 20)
    await bob.enter()
    before, offers = bob.received, len(bob.of(SubscribeOffer))
    await alice.send_until(lambda: bob.received > before + 3)
    assert len(bob.of(SubscribeOffer)) == offers, "everything was answered; there is nothing to offer again"


async def test_a_session_comes_back_after_its_token_has_expired(join: Join) -> None:
    alice = join("alice")
    token = media_token(alice.name, ttl_s=2.0)
    entered = await alice.enter(token)
    assert entered.reentry
    await alice.publish(audio="late")
    await alice.send_until(lambda: bool(alice.of(PublicationFlowing)), kind="audio")
    over = asyncio.get_running_loop().time() + 3.0
    await alice.send_until(lambda: asyncio.get_running_loop().time() > over, kind="audio")
    await alice.drop_websocket()
    await alice.open()
    await alice.say(Enter(token=token, reentry=entered.reentry))
    await until(lambda: len(alice.of(Entered)) == 2 and len(alice.of(PublicationFlowing)) == 2)
    assert alice.of(Entered)[1].reentry not in ("", entered.reentry)


async def test_a_token_that_was_used_takes_no_living_session_over(join: Join) -> None:
    alice, thief = join("alice"), join("thief")
    token = media_token(alice.name)
    await alice.enter(token)
    await thief.open()
    await thief.say(Enter(token=token))
    assert await thief.wait_closed() == CloseCode.BAD_TOKEN
    await alice.say(Ping(n=9))
    assert (await alice.wait(Pong)).n == 9


async def test_a_session_without_websocket_and_media_ends(sfu: SfuProcess, join: Join) -> None:
    ghost = join("ghost")
    await ghost.enter()
    await ghost.drop_websocket()
    await until_here(sfu, lambda seen: ghost.name not in seen)


async def test_a_second_websocket_of_a_session_replaces_the_first(join: Join) -> None:
    alice = join("alice")
    await alice.enter()
    first = alice.websocket
    assert first is not None
    await alice.enter()
    await first.wait_closed()
    assert first.close_code == CloseCode.REPLACED
    await alice.say(Ping(n=7))
    assert (await alice.wait(Pong)).n == 7


async def test_a_second_enter_turns_a_visit_into_a_home_without_a_gap(join: Join) -> None:
    alice = join("alice")
    await alice.enter(publish=False)
    refused = PublishOffer(sdp="v=0", tracks=(TrackOffer(mid="0", publication="x"),))
    await alice.say(refused)
    assert (await alice.wait(Failed)).code == Refusal.NOT_ALLOWED
    await alice.say(Enter(token=media_token(alice.name)))
    await alice.wait(Entered, count=2)
    await alice.publish(audio="home")
    await alice.say(Enter(token=media_token("somebody-else")))
    await until(lambda: "bad-token" in [failed.code for failed in alice.of(Failed)])
    await alice.send_until(lambda: bool(alice.of(PublicationFlowing)), kind="audio")


async def test_a_token_opens_nothing_once_its_session_is_over(sfu: SfuProcess, join: Join) -> None:
    alice = join("alice")
    token = media_token(alice.name)
    await alice.enter(token)
    await alice.say(LeaveSfu())
    assert await alice.wait_closed() == 1000
    await alice.open()
    await alice.say(Enter(token=token))
    assert await alice.wait_closed() == CloseCode.BAD_TOKEN


async def test_grants_are_kept(join: Join) -> None:
    deaf = join("deaf")
    await deaf.enter(subscribe=False)
    await deaf.say(Subscribe(publications=("a",)))
    assert await deaf.wait(Failed) == Failed(
        code=Refusal.NOT_ALLOWED, message="the token has no subscribe grant", request="subscribe"
    )


async def test_another_player_cant_take_a_publication_id(join: Join) -> None:
    alice, mallory = join("alice"), join("mallory")
    await alice.enter()
    await mallory.enter()
    await alice.publish(audio="mine")
    await mallory.say(PublishOffer(sdp="v=0", tracks=(TrackOffer(mid="0", publication="mine"),)))
    assert (await mallory.wait(Failed)).code == Refusal.STALE


async def test_a_squatters_media_stops_when_the_owner_of_the_id_moves_here(join: Join) -> None:
    alice, bob, mallory = join("alice"), join("bob"), join("mallory")
    await mallory.enter()
    await bob.enter()
    await bob.subscribe("mine")
    await mallory.publish(video="mine")
    await mallory.send_until(lambda: bob.received > 5)
    await alice.enter(media_token("alice", "mine"))
    await alice.publish(video="mine")
    await alice.send_until(lambda: bool(alice.of(PublicationFlowing)))
    assert (await mallory.wait(Failed)).publication == "mine"
    seen = bob.received
    await alice.send_until(lambda: bob.received > seen + 20)
    seen = bob.received
    for _ in range(50):
        mallory.send()
        await asyncio.sleep(0.01)
    assert bob.received <= seen + 5, "what alice sent last may come late, and nothing of mallory's"


@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("garbage", CloseCode.BAD_TOKEN),
        (media_token("p", ttl_s=-1), CloseCode.BAD_TOKEN),
        (media_token("p", sfu="another-sfu"), CloseCode.BAD_TOKEN),
        (media_token("a b"), CloseCode.BAD_TOKEN),
        (media_token(""), CloseCode.BAD_TOKEN),
    ],
    ids=["garbage", "expired", "another-sfu", "spaces", "no-player"],
)
async def test_a_bad_token_is_refused(join: Join, token: str, code: CloseCode) -> None:
    player = join()
    await player.open()
    await player.say(Enter(token=token))
    assert await player.wait_closed() == code
    assert player.of(Failed)[0].code == "bad-token"


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ("{", CloseCode.BAD_MESSAGE),
        ("[]", CloseCode.BAD_MESSAGE),
        ('{"type":"subscribe","publications":7}', CloseCode.BAD_MESSAGE),
        ("[" * 100_000, CloseCode.BAD_MESSAGE),
        ("x" * 300_000, 1009),
    ],
    ids=["malformed", "no-message", "wrong-shape", "deep", "oversized"],
)
async def test_a_frame_that_is_no_message_ends_its_connection_only(
    join: Join, frame: str, code: CloseCode | int
) -> None:
    alice, fool = join("alice"), join("fool")
    await alice.enter()
    await fool.enter()
    assert fool.websocket is not None
    await fool.websocket.send(frame)
    assert await fool.wait_closed() == code
    await alice.say(Ping(n=1))
    await alice.wait(Pong)


async def test_an_unknown_message_is_skipped(join: Join) -> None:
    alice = join("alice")
    await alice.enter()
    assert alice.websocket is not None
    await alice.websocket.send('{"type":"from-the-future","x":1}')
    await alice.say(Ping(n=3))
    assert (await alice.wait(Pong)).n == 3


async def test_who_sends_too_fast_is_closed(join: Join) -> None:
    fast = join("fast")
    await fast.enter()
    for number in range(300):
        await fast.say(Ping(n=number))
    assert await fast.wait_closed() == CloseCode.TOO_FAST


async def test_the_first_message_must_be_enter(join: Join) -> None:
    player = join()
    await player.open()
    await player.say(Ping())
    assert await player.wait_closed() == CloseCode.NO_JOIN


@pytest.mark.parametrize("text", ["", "garbage", "v=0", "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\n"])
async def test_a_bad_description_gets_a_typed_error_and_the_session_goes_on(join: Join, text: str) -> None:
    alice = join("alice")
    await alice.enter()
    await alice.say(PublishOffer(sdp=text, tracks=(TrackOffer(mid="0", publication="a"),)))
    failed = await alice.wait(Failed)
    assert (failed.code, failed.request) == (Refusal.BAD_SDP, "publish-offer")
    await alice.publish(audio="a")
    await alice.say(SubscribeAnswer(sdp=text, negotiation=99))
    await alice.say(RequestKeyframe(publication="never-heard-of"))
    await until(lambda: alice.of(Failed)[-1].code == Refusal.NOT_IN_ROOM)


async def test_a_bad_answer_gets_a_typed_error_and_a_good_one_to_the_next_offer_is_taken(join: Join) -> None:
    alice, bob = join("alice"), join("bob")
    await alice.enter()
    await alice.publish(audio="one")
    await bob.enter()
    answers, bob._answer = bob._answer, _garbage_answer(bob)  # type: ignore[method-assign]
    await bob.subscribe("one")
    await until(lambda: [failed.code for failed in bob.of(Failed)] == [Refusal.BAD_SDP])
    bob._answer = answers  # type: ignore[method-assign]
    await bob.subscribe()
    await bob.subscribe("one")
    await alice.send_until(lambda: bob.received > 3, kind="audio")


def _garbage_answer(player: MediaPlayer) -> Callable[[SubscribeOffer], object]:
    async def answer(message: SubscribeOffer) -> None:
        await player.say(SubscribeAnswer(sdp="garbage", negotiation=message.negotiation))

    return answer


async def test_trouble_is_counted_with_bounded_labels(sfu: SfuProcess, join: Join) -> None:
    player = join()
    await player.open()
    await player.say(Enter(token="garbage"))
    await player.wait_closed()
    _, text = await sfu.get("/metrics")
    assert 'sluice_sfu_trouble_total{kind="bad-token-malformed"}' in text
    assert player.name not in text
    assert not re.search(r'(player|room|publication|identity)="', text)


async def test_an_sfu_on_all_addresses_serves_the_one_that_it_announces() -> None:
    """A player asks there and takes answers from there only, as its own probe call does."""
    sfu = await SfuProcess.start(**{"host": "0.0.0.0", "announced-ip": "127.0.0.2"})
    player = MediaPlayer(sfu.address, "second-address")
    try:
        await until(lambda: "by=probe" in sfu.log, within_s=30)
        await player.enter()
        await player.publish(audio="mic")
        await player.send_until(lambda: bool(player.of(PublicationFlowing)), kind="audio")
        assert player.sending is not None
        assert player.sending.server[0] == "127.0.0.2"
        assert player.sending.from_elsewhere == 0
        assert "UNREACHABLE" not in sfu.log
    finally:
        await player.close()
        await sfu.kill()
