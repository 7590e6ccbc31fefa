"""Who may read the API: everybody in trials, operators in production; players' pages find routers either way."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import aiohttp
import pytest

from operators.shell.operations import players_on, reader_token
from router.config import RouterConfig
from router.shell.router import Router
from shared.tokens import OperatorClaims, PlayerClaims, issue
from tests.fakes.store import FakeStore
from tests.router.actors import SECRET, Player, Sfu, until
from tests.router.conftest import config

READ = [
    *("/api/fleet", "/api/sfus", "/api/sfus/s1/players", "/api/sfus/s1/rooms", "/api/rooms", "/api/rooms/kitchen"),
    *("/api/placements", "/api/scaling", "/api/drains", "/api/drains?last=1", "/api//fleet", "/api/nothing"),
]


@pytest.fixture
async def closed(store: FakeStore) -> AsyncIterator[Router]:
    """A router as in production."""
    running = Router(config(api_open=False), store, rng=random.Random(1))
    await running.start()
    yield running
    await running.stop()


@pytest.fixture
async def http(closed: Router) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(closed.state.announced_http) as session:
        yield session


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_without_a_word_about_it_the_api_is_for_operators() -> None:
    assert RouterConfig().api_open is False


@pytest.mark.parametrize("path", READ)
async def test_no_client_reads_without_an_operators_token(http: aiohttp.ClientSession, path: str) -> None:
    player = issue(PlayerClaims(room="r", identity="i", admin=True), secret=SECRET, now_at=0.0, ttl_s=9e9)
    forged = issue(OperatorClaims(operator="o"), secret="x" * 32, now_at=0.0, ttl_s=9e9)
    for headers, status in (({}, 401), (bearer(player), 403), (bearer(forged), 401)):
        for method in ("GET", "HEAD"):
            async with http.request(method, path, headers=headers) as answer:
                assert answer.status == status
                assert "Access-Control-Allow-Origin" not in answer.headers
    async with http.get(path, headers=bearer(reader_token(SECRET))) as answer:
        assert answer.status not in (401, 403)


async def test_players_pages_health_and_metrics_need_none(http: aiohttp.ClientSession) -> None:
    for path in ("/api/routers", "/healthz", "/readyz", "/metrics", "/"):
        assert (await http.get(path)).status == 200
    assert (await http.get("/api/routers")).headers["Access-Control-Allow-Origin"] == "*"
    assert (await http.post("/api/dev-token", json={"room": "r", "identity": "i"})).status == 200


async def test_a_fleet_page_at_another_router_may_ask_with_a_token_but_never_command(
    http: aiohttp.ClientSession,
) -> None:
    asked = {"Origin": "https://elsewhere.example", "Access-Control-Request-Headers": "authorization"}
    for path in ("/api/rooms", "/api/sfus/s1/players"):
        headers = {**asked, "Access-Control-Request-Method": "GET"}
        async with http.options(path, headers=headers) as answer:
            assert answer.status == 204
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            assert answer.headers["Access-Control-Allow-Headers"] == "authorization"
        async with http.get(path, headers={**bearer(reader_token(SECRET)), **asked}) as answer:
            assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, "*")
    for path in ("/api/sfus/s1/cordon", "/api/sfus/s1/drain", "/api/operator", "/api/dev-token"):
        async with http.options(path, headers={**asked, "Access-Control-Request-Method": "POST"}) as answer:
            assert "Access-Control-Allow-Origin" not in answer.headers


async def test_commands_ask_routers_with_the_fleets_secret(closed: Router, store: FakeStore) -> None:
    sfu = await Sfu("s1", [closed.state.announced_ws]).start()
    peer = await Player.join(closed.state.announced_ws, "kitchen", "ann")
    await until(lambda: closed.state.routers, what="Redis knows the router")
    async with aiohttp.ClientSession() as session:
        assert await players_on(store, session, "s1") is None  # type: ignore[arg-type]
        (ann,) = await players_on(store, session, "s1", secret=SECRET) or ()  # type: ignore[arg-type]
    assert ann["identity"] == "ann"
    await peer.close()
    await sfu.stop()
