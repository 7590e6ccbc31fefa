"""Answers in JSON: readable by every parser, never kept, compressed for those who take it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from shared.http import COMPRESSED_FROM, ErrorAnswer, answer, make_app

Client = TestClient[web.Request, web.Application]


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async def small(_: web.Request) -> web.Response:
        return answer({"name": "küche", "load": float("nan"), "most": float("inf")})

    async def large(_: web.Request) -> web.Response:
        return answer(b"[" + b"1," * COMPRESSED_FROM + b"1]")

    async def refused(_: web.Request) -> web.Response:
        raise ErrorAnswer(429, {"error": "too-fast"}, headers={"Retry-After": "2"})

    app = make_app(ready=lambda: False, registry=CollectorRegistry())
    app.add_routes([web.get("/small", small), web.get("/large", large), web.get("/refused", refused)])
    async with TestClient(TestServer(app)) as running:
        yield running


async def test_what_is_no_finite_number_is_null(client: Client) -> None:
    got = await client.get("/small")
    assert (got.content_type, got.headers["Cache-Control"]) == ("application/json", "no-store")
    assert await got.json() == {"name": "küche", "load": None, "most": None}


@pytest.mark.parametrize(("takes", "encoding"), [("deflate", "deflate"), ("identity", None)])
async def test_a_large_answer_is_compressed_for_those_who_take_it(
    client: Client, takes: str, encoding: str | None
) -> None:
    got = await client.get("/large", headers={aiohttp.hdrs.ACCEPT_ENCODING: takes})
    assert got.headers.get("Content-Encoding") == encoding
    assert await got.json() == [1] * (COMPRESSED_FROM + 1)


async def test_a_refusal_is_json_as_well(client: Client) -> None:
    got = await client.get("/refused")
    assert (got.status, got.headers["Retry-After"], got.headers["Cache-Control"]) == (429, "2", "no-store")
    assert await got.json() == {"error": "too-fast"}


async def test_not_ready_is_503_and_alive_all_the_same(client: Client) -> None:
    not_ready = await client.get("/readyz")
    assert (not_ready.status, await not_ready.json()) == (503, {"ready": False, "pid": os.getpid()})
    assert await (await client.get("/healthz")).json() == {"alive": True}
