"""What an SFU's HTTP side gives scripts: every field, whatever its value; and to whom."""

from __future__ import annotations

import random
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from sfu.config import SfuConfig
from sfu.shell.api import make_api
from sfu.shell.metrics import SfuMetrics
from sfu.shell.parts import SfuParts
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from sfu.shell.warm_up import WarmUp
from shared.records import Drain, SfuState
from shared.tokens import Claims, OperatorClaims, PlayerClaims, issue

SECRET = "s" * 32
FIELDS = set(SfuState.__struct_fields__) - {"extra"}
OLGA = OperatorClaims(operator="olga")


def bearer(claims: Claims, *, secret: str = SECRET) -> dict[str, str]:
    return {"Authorization": f"Bearer {issue(claims, secret=secret, now_at=time.time(), ttl_s=60.0)}"}


def client_of(state: SfuState) -> TestClient[Any, Any]:
    config, registry = SfuConfig(secret=SECRET, sfu="a"), CollectorRegistry()
    parts = SfuParts(config=config, metrics=SfuMetrics(registry, version="v"), rng=random.Random(1))
    app = make_api(
        parts,
        cast(Reporting, SimpleNamespace(state=state, healthy=True)),
        cast(RouterLinks, SimpleNamespace(urls=[])),
        cast(WarmUp, SimpleNamespace(reachable=None)),
        registry=registry,
    )
    return TestClient(TestServer(app))


async def state_given(state: SfuState) -> dict[str, Any]:
    async with client_of(state) as client:
        body: dict[str, Any] = await (await client.get("/api/state", headers=bearer(OLGA))).json()
        return body


async def test_what_is_false_or_not_known_is_given_as_well() -> None:
    body = await state_given(SfuState(address="ws://a", sfu="a"))
    assert set(body) == FIELDS
    assert (body["warmed_up"], body["drain"], body["players"]) == (False, None, None)
    assert body["load_parts"]["cpu"] is None


async def test_a_drain_is_given_with_all_its_fields() -> None:
    body = await state_given(SfuState(address="ws://a", drain=Drain(cause="sigterm")))
    assert (body["drain"]["asking"], body["drain"]["elapsed_s"], body["drain"]["grace_s"]) == (False, 0.0, None)


REFUSED: dict[str, tuple[dict[str, str], int, str]] = {
    "no token": ({}, 401, "token-missing"),
    "another scheme": ({"Authorization": "Basic b2xnYTo="}, 401, "token-missing"),
    "of another fleet": (bearer(OLGA, secret="t" * 32), 401, "token-forged"),
    "a player's": (bearer(PlayerClaims(room="r", identity="i", admin=True)), 403, "token-wrong-audience"),
    "through a proxy of this host": ({"X-Forwarded-For": "192.0.2.1"}, 401, "token-missing"),
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("path", ["/api/players", "/api/state"])
async def test_who_talks_where_is_for_operators(path: str, case: str) -> None:
    headers, status, error = REFUSED[case]
    async with client_of(SfuState(address="ws://a")) as client:
        refused = await client.get(path, headers=headers)
        body = await refused.json()
        assert (refused.status, body["error"], set(body)) == (status, error, {"error", "fix"})
        assert "Access-Control-Allow-Origin" not in refused.headers
        assert (await client.get(path, headers=bearer(OLGA))).status == 200
        assert 'kind="operator-token"' in await (await client.get("/metrics")).text()


async def test_health_and_metrics_are_for_all() -> None:
    async with client_of(SfuState(address="ws://a")) as client:
        for path in ("/healthz", "/readyz", "/metrics"):
            assert (await client.get(path)).status == 200, path
