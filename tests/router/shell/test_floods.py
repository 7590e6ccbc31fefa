"""Connections that show no token: few of one address, gone in time, and never in the way of one that brings a token."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from router.shell.router import Router
from router.shell.session_starter import SessionStarter
from shared.front import seats as seats_module
from shared.front import websocket
from shared.front.settings import FrontSettings
from shared.messages import player
from shared.messages.codes import CloseCode
from tests.fakes.certificate import trusting, write_certificate
from tests.fakes.store import FakeStore
from tests.router.actors import Player, Sfu, player_token, until
from tests.router.conftest import config

NO_PROXY = FrontSettings(trusted_proxies=(), max_per_address=30)


@pytest.fixture
async def bounded(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Router]:
    """A router that trusts no proxy, with few seats for those that wait."""
    monkeypatch.setattr(websocket, "WAITING", 40)
    monkeypatch.setattr(websocket, "WAITING_AN_ADDRESS", 20)
    running = Router(config(front=NO_PROXY, max_players=100), store, rng=random.Random(1))
    await running.start()
    yield running
    await running.stop()


def flood(router: Router, number: int, *, source: str) -> list[socket.socket]:
    """Connections that say nothing."""
    port = int(router.state.announced_ws.rpartition(":")[2])
    return [socket.create_connection(("127.0.0.1", port), source_address=(source, 0)) for _ in range(number)]


def refused(router: Router, why: str) -> float:
    labels = {"port": "players", "why": why}
    return router.state.metrics.registry.get_sample_value("sluice_router_connections_refused_total", labels) or 0.0


async def test_idle_connections_of_one_address_keep_no_other_out(
    bounded: Router, caplog: pytest.LogCaptureFixture
) -> None:
    idle = flood(bounded, 100, source="127.0.0.2")
    await until(lambda: refused(bounded, "address-waiting") >= 80)
    player = await Player.join(bounded.state.announced_ws, "room", "ann")
    told = [record.getMessage() for record in caplog.records if record.name == "front"]
    assert sum("of 127.0.0.2 is refused" in line for line in told) == 1
    assert "trusted_proxies" in told[0]
    await player.close()
    for sock in idle:
        sock.close()


async def test_one_more_idle_connection_makes_room_for_a_player_of_the_same_address(
    bounded: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = bounded.state.announced_ws
    opened = [await Player.open(ws) for _ in range(20)]
    with pytest.raises(InvalidStatus) as no:
        await connect(f"{ws}/player")
    assert (no.value.response.status_code, no.value.response.headers["Retry-After"]) == (503, "2")
    monkeypatch.setattr(seats_module, "SETTLED_S", 0.0)
    player = await Player.join(ws, "room", "ann")
    assert await opened[0].ends() == CloseCode.NO_JOIN
    assert "another connection needs the seat" in opened[0].reason
    assert opened[1].closed is None
    await player.close()


async def test_players_with_a_token_keep_their_seats_and_are_bounded_per_address(
    bounded: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seats_module, "SETTLED_S", 0.0)
    ws = bounded.state.announced_ws
    players = [await Player.join(ws, f"room-{n % 3}", f"p{n}") for n in range(30)]
    with pytest.raises(InvalidStatus) as no:
        await connect(f"{ws}/player")
    assert no.value.response.status_code == 503
    assert refused(bounded, "address") == 1
    assert all(each.closed is None for each in players)
    await players.pop().close()
    await until(
        lambda: bounded.state.metrics.registry.get_sample_value("sluice_router_connections", {"port": "players"}) == 29
    )
    players.append(await Player.join(ws, "room-0", "late"))
    for each in players:
        await each.close()


async def test_people_behind_a_proxy_that_is_trusted_are_bounded_apart(store: FakeStore) -> None:
    front = FrontSettings(max_per_address=8)
    router = Router(config(front=front), store, rng=random.Random(1))
    await router.start()
    url = f"{router.state.announced_ws}/player"
    kept = [
        await connect(url, additional_headers={"X-Forwarded-For": f"192.0.2.{n // 8}"}, compression=None)
        for n in range(24)
    ]
    with pytest.raises(InvalidStatus) as no:
        await connect(url, additional_headers={"X-Forwarded-For": "192.0.2.1"})
    assert no.value.response.status_code == 503
    kept.append(await connect(url, additional_headers={"X-Forwarded-For": "198.51.100.1, 192.0.2.77"}))
    kept.append(await connect(url))
    for each in kept:
        await each.close()
    await router.stop()


async def test_an_sfu_gets_its_link_while_strangers_flood(bounded: Router) -> None:
    idle = flood(bounded, 60, source="127.0.0.2")
    sfu = await Sfu("s1", [bounded.state.announced_ws]).start()
    await until(lambda: bounded.links.ids == ("s1",))
    await asyncio.sleep(0)
    await sfu.stop()
    for sock in idle:
        sock.close()


async def test_players_come_over_tls_and_silent_connections_are_bounded_before_their_handshake(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(websocket, "WAITING_AN_ADDRESS", 20)
    router = Router(config(front=write_certificate(tmp_path, "router")), store, rng=random.Random(1))
    await router.start()
    ws, http = router.state.announced_ws, router.state.announced_http
    assert (ws.partition(":")[0], http.partition(":")[0]) == ("wss", "https")
    idle = flood(router, 60, source="127.0.0.2")
    await until(lambda: refused(router, "address-waiting") >= 40)
    peer = Player(await connect(f"{ws}/player", ssl=trusting(), compression=None), player.to_player)
    await peer.say(player.Join(token=player_token("room", "ann")))
    await peer.hears(player.Welcome)
    async with aiohttp.ClientSession() as session, session.get(f"{http}/healthz", ssl=trusting()) as answer:
        assert answer.status == 200
    await peer.close()
    for sock in idle:
        sock.close()
    await router.stop()


async def test_a_crowd_that_has_shown_its_tokens_waits_for_its_turn_and_keeps_its_seats(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store is slow: more than wait at it wait for it."""
    gate, ready = asyncio.Event(), SessionStarter._enter

    async def slow(self: SessionStarter, *args: Any) -> Any:
        await gate.wait()
        return await ready(self, *args)

    monkeypatch.setattr(SessionStarter, "_enter", slow)
    monkeypatch.setattr(websocket, "WAITING_AN_ADDRESS", 8)
    monkeypatch.setattr(seats_module, "SETTLED_S", 0.0)
    router = Router(config(front=NO_PROXY, max_players=100), store, rng=random.Random(1))
    await router.start()
    crowd = []
    for number in range(28):
        crowd.append(await Player.open(router.state.announced_ws))
        await crowd[-1].say(player.Join(token=player_token(f"room-{number % 3}", f"p{number}")))
    assert refused(router, "address-waiting") == 0
    gate.set()
    for each in crowd:
        await each.hears(player.Welcome)
        await each.close()
    await router.stop()
