"""What players may not do: each gets a typed answer or close, and the others do not notice."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
import time
from typing import Any

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from router.shell import players as players_module
from router.shell.router import Router
from shared.messages import player
from shared.messages.base import encode
from shared.tokens import PlayerClaims, ResumeClaims, SfuClaims, issue, verify
from tests.router.actors import SECRET, Player, Sfu, player_token, until

NOW = time.time()
A_RUN_S = 24 * 3600.0
"""These tokens are made when the module is read, which may be long before its tests run."""


def _token(secret: str = SECRET, ttl_s: float = A_RUN_S, **claims: Any) -> str:
    return issue(PlayerClaims(**({"room": "r", "identity": "i"} | claims)), secret=secret, now_at=NOW, ttl_s=ttl_s)


_RESUME = ResumeClaims(player="p", room="r", identity="i", epoch=1)
FIRST_FRAMES = {
    "no JSON": ("{", 4004),
    "not an object": ("[1]", 4004),
    "no text": (b"\xff\xfe", 4004),
    "wrong type of a field": ('{"type":"join","token":7}', 4004),
    "deeply nested": ("[" * 10_000, 4004),
    "another message first": (encode(player.Ping(n=1)), 4010),
    "expired token": (encode(player.Join(token=_token(ttl_s=-3600))), 4003),
    "forged token": (encode(player.Join(token=_token(secret="another-secret-of-at-least-32-bytes"))), 4003),
    "token of another audience": (
        encode(player.Join(token=issue(_RESUME, secret=SECRET, now_at=NOW, ttl_s=A_RUN_S))),
        4003,
    ),
    "no room": (encode(player.Join(token=_token(room=""))), 4003),
    "long room": (encode(player.Join(token=_token(room="x" * 129))), 4003),
    "rubbish for a token": (encode(player.Join(token="a.b.c")), 4003),
    "resume with a join token": (encode(player.Resume(resume_token=_token())), 4003),
    "resume of no session": (
        encode(player.Resume(resume_token=issue(_RESUME, secret=SECRET, now_at=NOW, ttl_s=A_RUN_S))),
        4009,
    ),
    "oversized frame": ("x" * (64 * 1024 + 1), 1009),
}


@pytest.mark.parametrize("case", FIRST_FRAMES)
async def test_a_bad_first_frame_is_closed_with_a_typed_code(router: Router, case: str) -> None:
    frame, code = FIRST_FRAMES[case]
    peer = await Player.open(router.state.announced_ws)
    await peer.connection.send(frame)
    assert await peer.ends() == code
    assert router.state.rooms.sessions == 0


async def test_a_websocket_that_says_nothing_is_closed(router: Router, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(players_module, "FIRST_MESSAGE_WITHIN_S", 0.05)
    peer = await Player.open(router.state.announced_ws)
    assert await peer.ends() == 4010


async def test_messages_of_a_newer_client_are_skipped(router: Router, sfu: Sfu) -> None:
    peer = await Player.join(router.state.announced_ws, "room", "ann")
    await peer.connection.send('{"type":"teleport","where":"moon"}')
    await peer.connection.send('{"type":"ping","n":4,"mood":"fine"}')
    assert (await peer.hears(player.Pong)).n == 4
    await peer.close()


async def test_a_second_join_on_one_websocket_is_refused(router: Router, sfu: Sfu) -> None:
    peer = await Player.join(router.state.announced_ws, "room", "ann")
    await peer.say(player.Join(token=player_token("room", "ann")))
    assert await peer.ends() == 4004


async def test_a_player_that_is_too_fast_is_closed_and_others_are_not(router: Router, sfu: Sfu) -> None:
    calm = await Player.join(router.state.announced_ws, "room", "calm")
    hasty = await Player.join(router.state.announced_ws, "room", "hasty")
    for n in range(200):
        await hasty.say(player.Ping(n=n))
    assert await hasty.ends() == 4005
    await calm.say(player.Ping(n=1))
    await calm.hears(player.Pong)
    await calm.close()


async def test_pings_at_websocket_level_count_against_the_limit_too(router: Router, sfu: Sfu) -> None:
    hasty = await Player.join(router.state.announced_ws, "room", "hasty")
    for _ in range(200):
        hasty.connection.protocol.send_ping(b"")
    hasty.connection.send_data()
    assert await hasty.ends() == 4005


@pytest.mark.process
async def test_a_slow_reader_is_closed_and_no_other_notices(router: Router, sfu: Sfu) -> None:
    ws, room = router.state.announced_ws, f"room-{secrets.token_hex(3)}"
    talkers = [await Player.join(ws, room, f"talker-{n}") for n in range(12)]
    small = socket.create_connection(("127.0.0.1", int(ws.rsplit(":", 1)[1])))
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow = await connect(f"{ws}/player", sock=small, compression=None, ping_interval=None)
    await slow.send(encode(player.Join(token=player_token(room, "slow"))))
    await asyncio.wait_for(slow.recv(), 20)
    slow.transport.pause_reading()
    metric = router.state.metrics.closed.labels("player", "4008")
    deadline, n = time.monotonic() + 30, 0
    while metric._value.get() == 0:
        assert time.monotonic() < deadline, "the slow reader was not closed"
        n += 1
        for talker in talkers:
            await talker.say(player.Decided(sfu="s1", move=False, reason=f"{n} " + "x" * 190))
        await asyncio.sleep(0.05)

    def newest(update: player.RoomUpdate) -> bool:
        return any(p.stay is not None and p.stay.reason.startswith(f"{n} ") for p in update.players)

    for talker in talkers:
        await talker.hears(player.RoomUpdate, where=newest)
        assert talker.closed is None
        await talker.close()
    slow.transport.abort()


async def test_a_full_router_says_503_and_unknown_paths_404(router: Router, sfu: Sfu) -> None:
    ws = router.state.announced_ws
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{ws}/elsewhere")
    assert refused.value.response.status_code == 404
    crowd = [await Player.join(ws, "room", f"p{n}") for n in range(router.state.config.max_players)]
    with pytest.raises(InvalidStatus) as refused:
        await connect(f"{ws}/player")
    assert refused.value.response.status_code == 503
    for each in crowd:
        await each.close()


TRACK = {"type": "publish", "publication": "x", "kind": "audio", "sfu": "s1"}
REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "a publication id that is none": (TRACK | {"publication": "a b"}, "bad-message"),
    "an unknown kind": (TRACK | {"kind": "smell"}, "bad-message"),
    "generation 0": (TRACK | {"generation": 0}, "bad-message"),
    "a long source": (TRACK | {"source": "x" * 65}, "bad-message"),
    "an SFU that no router knows": (TRACK | {"sfu": "s9"}, "unknown-sfu"),
    "an end of nothing": ({"type": "unpublish", "publication": "x"}, "not-in-room"),
    "access to an SFU of other rooms": ({"type": "request-access", "sfu": "s2"}, "not-in-room"),
    "a decision on another SFU": ({"type": "decided", "sfu": "s2", "move": True}, "not-in-room"),
    "a move to nowhere": ({"type": "moved", "sfu": "s9"}, "unknown-sfu"),
}


@pytest.mark.parametrize("case", REQUESTS)
async def test_a_bad_request_is_refused_and_the_session_goes_on(router: Router, sfu: Sfu, case: str) -> None:
    request, code = REQUESTS[case]
    other = await Sfu("s2", [router.state.announced_ws], load=0.9).start()
    peer = await Player.join(router.state.announced_ws, "room", "ann")
    await peer.connection.send(json.dumps(request))
    assert (await peer.hears(player.Failed)).code == code
    await peer.say(player.Ping(n=1))
    await peer.hears(player.Pong)
    await peer.close()
    await other.stop()


async def test_grants_and_ownership_are_checked(router: Router, sfu: Sfu) -> None:
    ws = router.state.announced_ws
    ann = await Player.join(ws, "room", "ann")
    await ann.say(player.Publish(publication="cam", kind="video", sfu="s1", generation=3))
    mute = await Player.open(ws)
    await mute.say(player.Join(token=player_token("room", "mute", publish=False, subscribe=False)))
    welcome = await mute.hears(player.Welcome)
    assert not welcome.can_publish
    await mute.say(player.Publish(publication="mine", kind="video", sfu="s1"))
    assert (await mute.hears(player.Failed)).code == "not-allowed"
    await mute.say(player.RequestAccess(sfu="s1", request="q"))
    assert (await mute.hears(player.Failed, where=lambda m: m.request == "q")).code == "not-allowed"
    bob = await Player.join(ws, "room", "bob")
    await bob.say(player.Publish(publication="cam", kind="video", sfu="s1", generation=4))
    assert (await bob.hears(player.Failed)).code == "not-allowed"
    await bob.say(player.Unpublish(publication="cam"))
    await bob.hears(player.Failed, where=lambda m: m.code == "not-in-room")
    await ann.say(player.Publish(publication="cam", kind="video", sfu="s1", generation=2))
    assert (await ann.hears(player.Failed)).code == "stale"
    for n in range(40):
        await ann.say(player.Publish(publication=f"t{n}", kind="audio", sfu="s1"))
    await ann.hears(player.Failed, where=lambda m: m.code == "too-many")
    for each in (ann, mute, bob):
        await each.close()


async def test_a_token_for_a_new_home_names_the_players_own_publications(router: Router, sfu: Sfu) -> None:
    ws = router.state.announced_ws
    other = await Sfu("s2", [ws], load=0.9).start()
    ann, bob = await Player.join(ws, "room", "ann"), await Player.join(ws, "room", "bob")
    await bob.say(player.Publish(publication="bobs", kind="audio", sfu="s1"))
    for name in ("mic", "cam"):
        await ann.say(player.Publish(publication=name, kind="audio", sfu="s1"))
    given = await ann.asks_to_leave(sfu.state)
    assert isinstance(given, player.AssignedSfu)
    named = verify(SfuClaims, given.token, secret=SECRET, now_at=time.time()).publications
    assert (given.sfu, named) == ("s2", ("cam", "mic"))
    await ann.say(player.RequestAccess(sfu="s1", request="visit"))
    visit = await ann.hears(player.SfuAccess)
    assert verify(SfuClaims, visit.token, secret=SECRET, now_at=time.time()).publications == ()
    for each in (ann, bob):
        await each.close()
    await other.stop()


async def test_a_person_who_comes_back_gets_the_ids_that_another_wants_meanwhile(router: Router, sfu: Sfu) -> None:
    ws = router.state.announced_ws
    ann, mallory = await Player.join(ws, "room", "ann"), await Player.join(ws, "room", "mallory")
    await ann.say(player.Publish(publication="mic", kind="audio", sfu="s1"))
    await mallory.hears(player.RoomUpdate, where=lambda m: any(p.publication == "mic" for p in m.publications))
    back = await Player.join(ws, "room", "ann")
    assert back.welcome.assignment is not None
    token = back.welcome.assignment.token
    assert verify(SfuClaims, token, secret=SECRET, now_at=time.time()).publications == ("mic",)
    await mallory.hears(player.RoomUpdate, where=lambda m: "mic" in m.ended)
    await mallory.say(player.Publish(publication="mic", kind="audio", sfu="s1"))
    assert (await mallory.hears(player.Failed)).code == "not-allowed"
    await back.say(player.Publish(publication="mic", kind="audio", sfu="s1", generation=2))
    await mallory.hears(player.RoomUpdate, where=lambda m: any(p.player == back.welcome.player for p in m.publications))
    for each in (mallory, back):
        await each.close()


async def test_a_player_is_not_believed_about_sfus_of_other_rooms(router: Router, sfu: Sfu) -> None:
    other = await Sfu("s2", [router.state.announced_ws], load=0.9).start()
    liar = await Player.join(router.state.announced_ws, "room", "liar")
    assert liar.sfu == "s1"
    await liar.asks_for_sfu(leave="s2", incarnation=other.state.incarnation + 5, revision=10**9, reason="cordoned")
    assert router.state.directory.refusal("s2", now=router.state.mono()) is None
    await liar.close()
    await other.stop()


async def test_a_publication_that_names_an_sfu_gives_no_say_over_it_for_other_rooms(router: Router, sfu: Sfu) -> None:
    ws = router.state.announced_ws
    other = await Sfu("s2", [ws], load=0.9).start()
    liar, ann = await Player.join(ws, "room", "liar"), await Player.join(ws, "another", "ann")
    for each in (sfu, other):
        await liar.say(player.Publish(publication=f"p-{each.state.sfu}", kind="audio", sfu=each.state.sfu))
        await liar.asks_to_leave(each.state, revision=each.state.revision + 20)
    assert isinstance(given := await ann.asks_for_sfu(leave="s1", reason="failed"), player.AssignedSfu)
    assert given.sfu == "s2"
    assert isinstance(given := await ann.asks_for_sfu(leave="s2", reason="failed"), player.AssignedSfu)
    assert given.sfu == "s1"
    for each in (liar, ann):
        await each.close()
    await other.stop()


async def test_with_no_sfu_the_player_is_welcome_and_told_to_ask_again(router: Router) -> None:
    peer = await Player.join(router.state.announced_ws, "room", "ann")
    assert peer.welcome.assignment is None
    failed = await peer.hears(player.Failed)
    assert (failed.code, failed.retry_after_s) == ("no-sfu", 1.0)
    late = await Sfu("s1", [router.state.announced_ws]).start()
    await until(lambda: "s1" in router.state.directory)
    assert isinstance(await peer.asks_for_sfu(), player.AssignedSfu)
    await peer.close()
    await late.stop()
