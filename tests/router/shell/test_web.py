"""The HTTP side: health, API, pages, tokens for trying out."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from router.core.assignment import PlacementReason
from router.shell.pages import Pages
from router.shell.router import Router
from shared.front.settings import FrontSettings
from shared.messages import player
from shared.records import Presence, RoomPlacement
from shared.tokens import PlayerClaims, verify
from tests.fakes.store import FakeStore
from tests.router.actors import SECRET, Player, Sfu, until
from tests.router.conftest import config


@pytest.fixture
async def http(router: Router) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(router.state.announced_http) as session:
        yield session


async def test_health_and_readiness_say_the_same_with_a_cordon_and_without_redis(
    router: Router, http: aiohttp.ClientSession, sfu: Sfu, store: FakeStore
) -> None:
    async def answers() -> list[int]:
        return [(await http.get(path)).status for path in ("/healthz", "/readyz")]

    assert await answers() == [200, 200]
    await sfu.cordon()
    await until(lambda: router.state.directory.refusal("s1", now=router.state.mono()) == "cordoned")
    assert await answers() == [200, 200]
    store.down = True
    await until(lambda: router.state.directory.blind)
    assert await answers() == [200, 200]


async def test_placements_are_told_and_kept_while_redis_is_away_and_brought_to_it_afterwards(
    router: Router, http: aiohttp.ClientSession, sfu: Sfu, store: FakeStore
) -> None:
    async def told(query: str) -> list[tuple[str, str]]:
        rows = (await (await http.get(f"/api/placements?{query}")).json())["placements"]
        return [(row["room"], row["identity"]) for row in rows]

    before = await Player.join(router.state.announced_ws, "kitchen", "ann")
    await until(lambda: len(store.core.placements.history) == 1, what="the history gets it")
    store.down = True
    await until(lambda: router.state.directory.blind)
    during = await Player.join(router.state.announced_ws, "attic", "bob")
    assert await told("last=9") == [("attic", "bob"), ("kitchen", "ann")]
    assert await told("room=attic") == [("attic", "bob")]
    assert await told("player=ann") == [("kitchen", "ann")]
    assert router.state.assigner.standings.in_flight.joins >= 1, "counted on this router alone"
    store.down = False
    await until(lambda: len(store.core.placements.history) == 2, what="the history gets the other one as well")
    assert await told("last=9") == [("attic", "bob"), ("kitchen", "ann")]
    assert [each.room for each in store.core.placements.history] == ["attic", "kitchen"]
    for each in (before, during):
        await each.close()


async def test_a_room_that_stands_on_a_cordoned_sfu_in_redis_is_moved_though_this_router_knew_better(
    router: Router, sfu: Sfu, store: FakeStore
) -> None:
    """Redis lost the room, and a router that did not know of the cordon placed it again."""
    cordoned = await Sfu("s0", [router.state.announced_ws], load=0.0).start()
    await cordoned.cordon()
    await until(lambda: router.state.directory.refusal("s0", now=router.state.mono()) == "cordoned")
    ann = await Player.join(router.state.announced_ws, "room", "ann")
    room = router.state.rooms.get("room")
    assert room is not None
    room.place(RoomPlacement(sfu="s1", generation=5))
    store.core.rooms["room"].place = RoomPlacement(sfu="s0", generation=1)
    bob = await Player.join(router.state.announced_ws, "room", "bob")
    assert bob.sfu == "s1"
    for each in (ann, bob):
        await each.close()
    await cordoned.stop()


async def test_a_placement_is_explained(router: Router, http: aiohttp.ClientSession, sfu: Sfu) -> None:
    cordoned = await Sfu("s0", [router.state.announced_ws], load=0.0).start()
    await cordoned.cordon()
    await until(lambda: router.state.directory.refusal("s0", now=router.state.mono()) == "cordoned")
    peer = await Player.join(router.state.announced_ws, "room", "ann")
    await peer.say(player.SetPresence(presence=Presence(at_desk=False)))
    await peer.say(player.Decided(sfu="s1", move=False, reason="in a call"))
    await peer.hears(player.RoomUpdate, where=lambda m: any(p.stay for p in m.players))
    placement = (await (await http.get("/api/placements?last=1")).json())["placements"][0]
    assert (placement["sfu"], placement["reason"]) == ("s1", "chosen")
    assert [each["sfu"] for each in placement["candidates"]] == placement["eligible"] == ["s1"]
    assert placement["rejected"] == [{"sfu": "s0", "why": "cordoned"}]
    there = (await (await http.get("/api/sfus/s1/players")).json())["players"]
    assert [(p["identity"], p["decided"], p["move"], p["reason"]) for p in there] == [("ann", True, False, "in a call")]
    assert there[0]["presence"]["at_desk"] is False
    rooms = (await (await http.get("/api/rooms")).json())["rooms"]
    assert [(r["room"], r["sfu"], r["players"]) for r in rooms] == [("room", "s1", 1)]
    assert (await http.get("/api/rooms/nowhere")).status == 404
    assert (await http.get("/api/placements?last=many")).status == 400
    routers = (await (await http.get("/api/routers")).json())["routers"]
    assert routers[0]["ws"] == router.state.announced_ws
    await peer.close()
    await cordoned.stop()


async def test_any_origin_may_read_the_api_but_not_ask_for_tokens(router: Router, http: aiohttp.ClientSession) -> None:
    read = await http.get("/api/sfus")
    assert read.headers["Access-Control-Allow-Origin"] == "*"
    asked = await http.post("/api/dev-token", json={"room": "r", "identity": "i"})
    assert asked.status == 200
    assert "Access-Control-Allow-Origin" not in asked.headers
    claims = verify(PlayerClaims, (await asked.json())["token"], secret=SECRET, now_at=0.0)
    assert (claims.room, claims.identity) == ("r", "i")
    for bad in (b"{", b"[]", b'{"room":"","identity":""}', b'{"room":"' + b"x" * 200 + b'","identity":"i"}'):
        assert (await http.post("/api/dev-token", data=bad)).status == 400
    assert (await http.get("/metrics")).headers.get("Access-Control-Allow-Origin") is None


async def test_metrics_bear_no_names_of_players_rooms_or_sfus(
    router: Router, http: aiohttp.ClientSession, sfu: Sfu
) -> None:
    peer = await Player.join(router.state.announced_ws, "secret-room", "secret-ann")
    text = await (await http.get("/metrics")).text()
    assert 'sluice_router_players{state="connected"} 1.0' in text
    assert 'sluice_router_sfus{status="ONLINE"} 1.0' in text
    assert "secret" not in text
    assert '"s1"' not in text
    await peer.close()


async def test_what_alerts_watch_for_a_rise_is_there_before_it_rises(
    router: Router, http: aiohttp.ClientSession, sfu: Sfu
) -> None:
    text = await (await http.get("/metrics")).text()
    for reason in PlacementReason:
        assert f'sluice_router_placements_total{{reason="{reason.value}"}} 0.0' in text
    version = next(iter(router.state.directory.views(now=router.state.mono()))).state.version
    assert f'sluice_router_drain_evicted_total{{version="{version}"}} 0.0' in text
    assert "sluice_router_ice_failures_total 0.0" in text


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    root = tmp_path / "web"
    (root / "lib").mkdir(parents=True)
    (root / "index.html").write_text("<p>")
    (root / "lib" / "a.js").write_text("1")
    (root / "secret.py").write_text("x = 1")
    (root / ".env.html.bak").write_text("x")
    (tmp_path / "outside.html").write_text("x")
    (root / "leak.html").symlink_to(tmp_path / "outside.html")
    return Pages(root)


@pytest.mark.parametrize("path", ["index.html", "lib/a.js", "", "./lib/../index.html"])
def test_pages_of_the_package_are_served(pages: Pages, path: str) -> None:
    assert pages.find(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        *("../outside.html", "lib/../../outside.html", "../web/../outside.html", "%2e%2e/outside.html", ".."),
        *("/etc/passwd", "secret.py", ".env.html.bak", "leak.html", "a\0.html", "no.html", "lib", "x" * 600),
    ],
)
def test_nothing_else_is(pages: Pages, path: str) -> None:
    assert pages.find(path) is None


@pytest.mark.parametrize("listed", [(), ("https://app.example.org", "*", "null")])
async def test_no_page_may_put_ours_into_a_frame_but_those_of_a_listed_origin_and_the_fleet_page_never(
    store: FakeStore, listed: tuple[str, ...]
) -> None:
    router = Router(config(front=FrontSettings(allowed_origins=listed)), store, rng=random.Random(1))
    await router.start()
    async with aiohttp.ClientSession(router.state.announced_http) as http:
        call, fleet = (await http.get("/")).headers, (await http.get("/fleet.html")).headers
    assert fleet["X-Frame-Options"] == "DENY"
    assert fleet["Content-Security-Policy"].endswith("frame-ancestors 'none'")
    assert call.get("X-Frame-Options") == (None if listed else "DENY")
    allowed = "https://app.example.org" if listed else "'none'"
    assert call["Content-Security-Policy"].endswith(f"frame-ancestors {allowed}")
    await router.stop()


async def test_who_has_no_media_is_told_to_operators(router: Router, http: aiohttp.ClientSession, sfu: Sfu) -> None:
    ann = await Player.join(router.state.announced_ws, "room", "ann")
    await ann.say(player.MediaState(missing=("send", "receive")))
    await until(lambda: router.state.rooms.without_media == 1, what="it is noted")
    assert "sluice_router_players_without_media 1.0" in await (await http.get("/metrics")).text()

    async def row() -> dict[str, object]:
        return dict((await (await http.get("/api/fleet")).json())["routers"][0])

    deadline = router.state.mono() + 10.0
    while (await row()).get("without_media") != 1:
        assert router.state.mono() < deadline
        await asyncio.sleep(0.1)
    assert (await row())["who_without_media"] == [{"who": "Ann", "room": "room", "missing": ["send", "receive"]}]
    await ann.say(player.MediaState())
    await until(lambda: router.state.rooms.without_media == 0, what="it has media again")
    await ann.close()
