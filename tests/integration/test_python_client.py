"""The Python client library on a real fleet: what one player sends is what another gets, wherever they are moved."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable

import pytest
import pytest_asyncio

import player
from localfleet.fleet import Fleet, FleetSpec
from player.core import mover, opus
from player.core.tracks import BLACK
from player.shell.participant import Participant
from shared.rtc import rtp
from shared.tokens import PlayerClaims, issue

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.timeout(120)]
WITHIN_S = 40.0
SOUND = bytes([31 << 3])
"""First byte of an Opus packet of 20 ms."""
KEY_EVERY = 10


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def fleet() -> AsyncIterator[Fleet]:
    async with Fleet(FleetSpec(routers=2, sfus=2)) as running:
        yield running


async def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        await asyncio.sleep(0.02)


def token(fleet: Fleet, identity: str, room: str, *, publish: bool = True, ttl_s: float = 600.0) -> str:
    claims = PlayerClaims(room=room, identity=identity, publish=publish)
    return issue(claims, secret=fleet.secret, now_at=time.time(), ttl_s=ttl_s)


@contextlib.asynccontextmanager
async def feeding(track: player.LocalTrack, unit_s: float, unit: Callable[[int], bytes]) -> AsyncIterator[None]:
    """Send numbered units in real time for as long as the context lasts."""

    async def feed() -> None:
        began, number = time.monotonic(), 0
        while True:
            track.send(unit(number), media_s=number * unit_s)
            number += 1
            await asyncio.sleep(max(0.0, began + number * unit_s - time.monotonic()))

    task = asyncio.create_task(feed())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def sound(number: int) -> bytes:
    return SOUND + b"a sound of some length %06d" % number


def picture(number: int) -> bytes:
    """A frame in several packets when it is a key frame; its first bit says whether it is one."""
    key = number % KEY_EVERY == 0
    return bytes([0 if key else 1]) + bytes(3000 if key else 200) + b"%06d" % number


def number_of(frame: player.MediaFrame) -> int:
    return int(frame.data[-6:])


async def test_frames_are_one_stream_while_both_players_move(fleet: Fleet) -> None:
    events: list[player.PlayerEvent] = []
    async with (
        player.join(fleet.router_urls(), token(fleet, "ann", "moves"), spread_s=0.2) as ann,
        player.join(fleet.router_urls(), token(fleet, "bob", "moves"), spread_s=0.2, on_event=events.append) as bob,
    ):
        frames: dict[str, list[player.MediaFrame]] = {"audio": [], "video": []}
        bob.on_frame(lambda frame: frames[frame.publication.kind].append(frame))
        microphone, camera = await ann.publish("audio", source="microphone"), await ann.publish("video")
        async with feeding(microphone, 0.02, sound), feeding(camera, 0.05, picture):
            await until(lambda: len(frames["audio"]) > 50 and len(frames["video"]) > 20)
            assert {record.source for record in bob.publications.values()} == {"microphone", ""}
            old = ann.sfu
            assert old == bob.sfu
            fleet.signal_sfu(old, signal.SIGTERM)
            await until(lambda: ann.sfu != old and bob.sfu != old)
            await until(lambda: any(isinstance(event, player.Relocated) for event in events))
            after = len(frames["audio"])
            await until(lambda: len(frames["audio"]) > after + 100)
        for kind, ticks in (("audio", 960), ("video", 4500)):
            numbers = [number_of(frame) for frame in frames[kind] if len(frame.data) > 100 or kind == "audio"]
            assert numbers == sorted(set(numbers)), f"{kind}: each once and in order"
            missing = numbers[-1] - numbers[0] + 1 - len(numbers)
            assert missing <= 5, f"{kind}: all but what a busy machine's old SFU sends after the new one"
            first, last = frames[kind][0], frames[kind][-1]
            assert last.ticks - first.ticks == (number_of(last) - number_of(first)) * ticks, kind
        assert all(frame.key == (number_of(frame) % KEY_EVERY == 0) for frame in frames["video"])
        assert frames["audio"][0].ticks == 0
        steps = [event.step for event in events if isinstance(event, player.StepTaken)]
        assert [step for step in steps if step in ("cordoned", "move-started", "switched")][-3:] == [
            "cordoned", "move-started", "switched",
        ]  # fmt: skip
        assert not [event for event in events if isinstance(event, player.LinkFailed)]
    assert isinstance(events[-1], player.SessionEnded)
    await fleet.add_sfu()
    await asyncio.wait_for(fleet.sfus[old].child.wait(), WITHIN_S)
    del fleet.sfus[old]


async def test_a_pause_is_heard_as_silence_and_a_camera_that_has_not_begun_as_black(fleet: Fleet) -> None:
    """A player whose sources say nothing is on an SFU all the same, and can move."""
    async with (
        player.join(fleet.router_urls(), token(fleet, "ann", "pause")) as ann,
        player.join(fleet.router_urls(), token(fleet, "bob", "pause", publish=False)) as bob,
    ):
        got: Counter[bytes] = Counter()
        bob.on_frame(lambda frame: got.update([frame.data]))
        await ann.publish("audio")
        await ann.publish("video")
        await ann.settled(timeout_s=WITHIN_S)
        await until(lambda: got[opus.SILENCE] > 1 and got[BLACK] > 0)


async def test_a_player_that_sends_nothing_is_at_home_once_its_media_can_pass(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the silence that fills pauses: the mover is told that the connection is up."""
    monkeypatch.setattr(Participant, "_fill", lambda self: None)
    monkeypatch.setattr(mover, "FLOW_TIMEOUT_S", 0.7)
    async with player.join(fleet.router_urls(), token(fleet, "ann", "mute")) as ann:
        await ann.publish("audio")
        await ann.settled(timeout_s=WITHIN_S)
        steps = [event.step for event in await early(ann) if isinstance(event, player.StepTaken)]
        assert "failed" not in steps


async def early(me: player.Me) -> list[player.PlayerEvent]:
    """What has happened so far."""
    events = me.events()
    await me.leave()
    return [event async for event in events]


async def test_tracks_come_and_go_while_the_player_is_there(fleet: Fleet) -> None:
    async with (
        player.join(fleet.router_urls(), token(fleet, "ann", "door")) as ann,
        player.join(fleet.router_urls(), token(fleet, "bob", "door")) as bob,
    ):
        await ann.settled(timeout_s=WITHIN_S)
        events = bob.events()
        first = await ann.publish("audio", source="first")
        await until(lambda: len(bob.publications) == 1)
        second = await ann.publish("audio", source="second")
        await until(lambda: len(bob.publications) == 2)
        first.end()
        await until(lambda: [record.source for record in bob.publications.values()] == ["second"])
        frames = bob.frames()
        async with feeding(second, 0.02, sound):
            async for frame in frames:
                if frame.data.startswith(SOUND + b"a sound"):
                    break
        first.send(sound(1))
        await bob.leave()
        kinds = [type(event) async for event in events]
    assert kinds.count(player.TrackPublished) == 2
    assert kinds.count(player.TrackEnded) == 1
    assert kinds[-1] is player.SessionEnded


async def test_a_track_that_has_ended_holds_no_move_up(fleet: Fleet) -> None:
    async with (
        player.join(fleet.router_urls(), token(fleet, "ann", "ended"), spread_s=0.2) as ann,
        player.join(fleet.router_urls(), token(fleet, "bob", "ended"), spread_s=0.2) as bob,
    ):
        heard: set[str] = set()
        bob.on_frame(lambda frame: heard.add(frame.publication.publication))
        await ann.publish("audio")
        second = await ann.publish("audio")
        await until(lambda: len(heard) == 2)
        second.end()
        await until(lambda: len(bob.publications) == 1)
        events, old = ann.events(), ann.sfu
        fleet.signal_sfu(old, signal.SIGTERM)
        async for event in events:
            if isinstance(event, player.Relocated):
                break
        assert (event.left, ann.sfu != old) == (old, True)
        assert event.took_ms < 10_000, "an old link is closed after 30 s at the latest, and this one at once"
    await fleet.add_sfu()
    await asyncio.wait_for(fleet.sfus[old].child.wait(), WITHIN_S)
    del fleet.sfus[old]


async def test_packets_come_raw_and_whole(fleet: Fleet) -> None:
    """A listener that publishes nothing records RTP as it is."""
    async with (
        player.join(fleet.router_urls(), token(fleet, "ann", "raw")) as ann,
        player.join(fleet.router_urls(), token(fleet, "recorder", "raw", publish=False)) as recorder,
    ):
        with pytest.raises(player.Refused, match="not-allowed"):
            await recorder.publish("audio")
        packets = recorder.packets(limit=50)
        microphone = await ann.publish("audio")
        got: list[player.RtpPacket] = []
        async with feeding(microphone, 0.02, sound):
            async for packet in packets:
                if rtp.parse(packet.data).payload_end - rtp.parse(packet.data).payload_start > 10:
                    got.append(packet)
                if len(got) == 40:
                    break
        headers = [rtp.parse(packet.data) for packet in got]
        payloads = [packet.data[h.payload_start : h.payload_end] for packet, h in zip(got, headers, strict=True)]
        first = int(payloads[0][-6:])
        assert payloads == [sound(number) for number in range(first, first + 40)]
        assert len({(packet.sfu, header.ssrc) for packet, header in zip(got, headers, strict=True)}) == 1
        assert got[0].publication.publication == microphone.publication
        assert packets.missed == 0


async def test_players_know_of_each_other_and_of_their_presence(fleet: Fleet) -> None:
    async with (
        player.join(fleet.router_urls(), token(fleet, "ann", "who")) as ann,
        player.join(fleet.router_urls(), token(fleet, "bob", "who"), presence=player.Presence(at_desk=False)) as bob,
    ):
        assert (bob.identity, bob.room) == ("bob", "who")
        await until(lambda: [record.identity for record in ann.players.values()] == ["bob"])
        assert [record.presence.at_desk for record in ann.players.values()] == [False]
        await bob.set_presence(in_conversation=True)
        await until(lambda: ann.players[bob.session].presence.in_conversation)
        assert not ann.players[bob.session].presence.at_desk
        assert ann.session in bob.players
        events = ann.events()
        await bob.leave()
        await until(lambda: not ann.players)
        with pytest.raises(player.SessionOver, match="left"):
            await bob.set_presence(at_desk=True)
        seen: list[type[player.PlayerEvent]] = []
        async for event in events:
            seen.append(type(event))
            if isinstance(event, player.PlayerWent):
                break
        assert player.PlayerCame in seen
        assert player.PlayerChanged in seen


async def test_a_rule_of_the_applications_own_decides(fleet: Fleet) -> None:
    asked: list[player.PlayerFacts] = []

    def stay(facts: player.PlayerFacts) -> player.RuleAnswer:
        asked.append(facts)
        return player.RuleAnswer(False, "on-air")

    async with player.join(
        fleet.router_urls(),
        token(fleet, "ann", "rule"),
        rule=stay,
        presence=player.Presence(in_conversation=True),
    ) as ann:
        await ann.settled(timeout_s=WITHIN_S)
        events, old = ann.events(), ann.sfu
        fleet.signal_sfu(old, signal.SIGTERM)
        async for event in events:
            if isinstance(event, player.MoveDecided):
                break
        assert (event.move, event.reason, ann.sfu) == (False, "on-air", old)
        assert (asked[0].identity, asked[0].room, asked[0].sfu) == ("ann", "rule", old)
        await fleet.add_sfu()
    await asyncio.wait_for(fleet.sfus[old].child.wait(), WITHIN_S)
    del fleet.sfus[old]


async def test_what_goes_wrong_at_the_join_is_a_typed_error(fleet: Fleet) -> None:
    url = fleet.router_urls()[0]
    with pytest.raises(player.BadToken):
        async with player.join(url, "no token"):
            pass
    with pytest.raises(player.BadSetting):
        async with player.join("http://127.0.0.1", token(fleet, "ann", "no")):
            pass
    with pytest.raises(player.JoinFailed, match="bad-token"):
        async with player.join(url, token(fleet, "ann", "no", ttl_s=-10.0)):
            pass
    with pytest.raises(player.JoinFailed, match="no-router"):
        async with player.join("ws://127.0.0.1:9", token(fleet, "ann", "no"), timeout_s=0.5):
            pass


async def test_a_session_that_is_replaced_ends_the_loops(fleet: Fleet) -> None:
    async with player.join(fleet.router_urls(), token(fleet, "ann", "twice")) as ann:
        frames = ann.frames()
        async with player.join(fleet.router_urls(), token(fleet, "ann", "twice")):
            assert [frame async for frame in frames] == []
            with pytest.raises(player.SessionOver, match="replaced"):
                await ann.publish("audio")
