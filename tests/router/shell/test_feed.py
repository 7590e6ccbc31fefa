"""The fleet page's feed: bounded, cheap for many pages, and honest about what is not known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from router.core.directory import MAX_SFUS
from router.shell.feed import MAX_ROWS
from router.shell.router import Router
from shared.http import COMPRESSED_FROM
from shared.records import Capacities, LoadParts, SfuState
from tests.router.actors import Player, Sfu, until


@pytest.fixture
async def http(router: Router) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(router.state.announced_http) as session:
        yield session


def know(router: Router, sfu: str, **fields: Any) -> None:
    """The router hears of an SFU, as if by its link."""
    state = SfuState(sfu=sfu, address=f"ws://{sfu}", incarnation=1, revision=1, **fields)
    router.state.directory.hear(state, now=router.state.mono())


async def fleet(router: Router, http: aiohttp.ClientSession) -> dict[str, Any]:
    """An answer that is not the cached one."""
    later = router.state.mono() + 1.0
    router.state.mono = lambda: later
    async with http.get("/api/fleet") as answer:
        body: dict[str, Any] = await answer.json()
    return body


async def test_each_sfu_says_which_part_binds(router: Router, http: aiohttp.ClientSession) -> None:
    parts = LoadParts(cpu=0.34, egress_bps=350e6, streams=300, rooms=7)
    know(router, "s1", load_parts=parts, capacities=Capacities(egress_mbps=700, streams=1200), players=40)
    row = (await fleet(router, http))["sfus"][0]
    assert (row["load"], row["binding"]) == (0.5, "egress")
    assert row["parts"] == {"egress": 0.5, "streams": 0.25, "cpu": 0.4}
    assert (row["rooms"], row["players"], row["refused"]) == (7, 40, None)


async def test_what_is_not_known_is_null_and_not_zero(router: Router, http: aiohttp.ClientSession) -> None:
    know(router, "s1", load_parts=LoadParts(streams=3))
    know(router, "s2", load_parts=LoadParts(cpu=float("inf"), egress_bps=-1.0, streams=3))
    for row in (await fleet(router, http))["sfus"]:
        assert (row["load"], row["binding"], row["players"]) == (None, None, None)
        assert row["parts"]["streams"] == 0.003
        assert row["parts"]["cpu"] is None


async def test_a_drain_is_told_with_all_its_fields(router: Router, http: aiohttp.ClientSession, sfu: Sfu) -> None:
    await sfu.cordon()
    await until(lambda: router.state.directory.refusal("s1", now=router.state.mono()) == "cordoned")
    row = (await fleet(router, http))["sfus"][0]
    assert (row["status"], row["refused"]) == ("CORDONED", "cordoned")
    drain = row["drain"]
    assert (drain["cause"], drain["elapsed_s"], drain["asking"], drain["grace_s"]) == ("sigterm", 0.0, False, 3600.0)


async def test_many_pages_cost_one_answer(router: Router, http: aiohttp.ClientSession) -> None:
    frozen = router.state.mono() + 10
    router.state.mono = lambda: frozen
    first = await (await http.get("/api/fleet")).read()
    know(router, "s1")
    assert await (await http.get("/api/fleet")).read() == first
    router.state.mono = lambda: frozen + 1
    assert await (await http.get("/api/fleet")).read() != first


async def test_a_huge_fleet_is_cut_and_said_to_be(router: Router, http: aiohttp.ClientSession) -> None:
    for n in range(MAX_ROWS + 5):
        know(router, f"s{n}")
    answer = await fleet(router, http)
    assert len(router.state.directory) == MAX_ROWS + 5 <= MAX_SFUS
    assert (len(answer["sfus"]), answer["left_out"]) == (MAX_ROWS, 5)
    async with http.get("/api/fleet") as raw:
        assert raw.headers["Content-Encoding"] == "deflate"
        assert int(raw.headers["Content-Length"]) < COMPRESSED_FROM * MAX_ROWS / 100


async def test_rooms_of_an_sfu(router: Router, http: aiohttp.ClientSession, sfu: Sfu) -> None:
    peer = await Player.join(router.state.announced_ws, "kitchen", "ann")
    await until(lambda: (room := router.state.rooms.get("kitchen")) and room.placement)
    answer = await (await http.get("/api/sfus/s1/rooms")).json()
    assert answer["rooms"] == [{"room": "kitchen", "sfu": "s1", "players": 1, "publications": 0}]
    assert (await (await http.get("/api/sfus/s9/rooms")).json())["count"] == 0
    await peer.close()


async def test_pages_run_code_from_here_only_and_the_fleet_page_stays_out_of_frames(
    router: Router, http: aiohttp.ClientSession
) -> None:
    for path in ("/", "/fleet.html"):
        policy = (await http.get(path)).headers["Content-Security-Policy"]
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
