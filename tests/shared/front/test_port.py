"""An HTTP port under strangers: each kind of flood is bounded, told, and health is answered all the time."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import AsyncIterator, Callable

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, generate_latest

from shared import http
from shared.front import port as port_module
from shared.front.metrics import FrontMetrics
from shared.front.settings import FrontSettings
from shared.host.files import FileShares
from shared.http import HttpPort, answer, make_app, serve

NO_PROXY = FrontSettings(trusted_proxies=())
BIG = 8 * 1024 * 1024


class Served:
    """A port, with an address of its own for each stranger."""

    def __init__(self, port: HttpPort, registry: CollectorRegistry) -> None:
        self.port = port
        self.registry = registry

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port.port), timeout=10, source_address=(source, 0))

    async def ask(self, path: str, *, source: str = "127.0.0.1", headers: str = "") -> tuple[int, str]:
        """Status and body."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port.port, local_addr=(source, 0))
        writer.write(f"GET {path} HTTP/1.1\r\nHost: t\r\n{headers}Connection: close\r\n\r\n".encode())
        said = (await asyncio.wait_for(reader.read(), 10)).decode()
        writer.close()
        head, _, body = said.partition("\r\n\r\n")
        return int(head.split()[1]), body

    def refused(self, why: str) -> float:
        return (
            self.registry.get_sample_value("sluice_router_connections_refused_total", {"port": "http", "why": why}) or 0
        )


async def read_all(sock: socket.socket) -> bytes:
    """What comes until the other end closes."""
    sock.setblocking(False)
    loop, said = asyncio.get_running_loop(), b""
    try:
        async with asyncio.timeout(10):
            while data := await loop.sock_recv(sock, 65536):
                said += data
    except ConnectionResetError:
        pass
    return said


async def started(front: FrontSettings = NO_PROXY) -> Served:
    registry = CollectorRegistry()
    app = make_app(ready=lambda: True, registry=registry)

    async def page(_: web.Request) -> web.Response:
        return answer({"page": True})

    async def big(_: web.Request) -> web.Response:
        return web.Response(body=bytes(BIG))

    async def post(request: web.Request) -> web.Response:
        return answer({"length": len(await request.read())})

    app.add_routes([web.get("/", page), web.get("/big", big), web.post("/", post)])
    metrics = FrontMetrics(registry, program="router")
    return Served(await serve(app, host="127.0.0.1", port=0, metrics=metrics, front=front), registry)


@pytest.fixture
async def small(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    """A port of sixteen seats and four narrow ones."""
    monkeypatch.setattr(http, "file_shares", lambda: FileShares(players=16, http=16, media=1, narrow=4, limit=100))
    served = await started()
    yield served
    await served.port.cleanup()


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - others' doing
            await asyncio.sleep(0.01)


async def test_idle_connections_of_one_address_keep_no_other_out(small: Served) -> None:
    flood = [small.connect("127.0.0.2") for _ in range(60)]
    await asyncio.sleep(0.05)
    assert await small.ask("/") == (200, '{"page":true}')
    assert await small.ask("/healthz", source="127.0.0.2") == (200, '{"alive":true}')
    assert small.refused("address") >= 40
    for sock in flood:
        sock.close()
    await until(lambda: small.registry.get_sample_value("sluice_router_connections", {"port": "http"}) == 0)


async def test_health_and_metrics_are_answered_when_every_connection_is_taken_and_the_rest_hear_503(
    small: Served, caplog: pytest.LogCaptureFixture
) -> None:
    flood = [small.connect(f"127.0.0.{2 + n % 4}") for n in range(80)]
    for sock in flood:
        sock.send(b"GET / HTTP/1.1\r\n")
    await until(lambda: small.refused("full") + small.refused("address") > 0)
    await asyncio.sleep(2 * port_module.HALF_S)
    for path in ("/healthz", "/readyz", "/metrics"):
        status, _ = await small.ask(path, source="127.0.0.2")
        assert status == 200
    status, body = await small.ask("/", source="127.0.0.2")
    assert (status, json.loads(body)["error"]) == (503, "too-many-connections")
    told = [record.getMessage() for record in caplog.records if record.name == "front"]
    assert any("the http port is short of connections" in line and "raise the hard limit" in line for line in told)
    assert len(told) == len({line.split("]")[0] for line in told}), "once a minute for each kind"
    heard = [sock for sock in flood if b" 503 " in await _peek(sock)]
    assert len(heard) > 20, "those without a seat are told so"
    for sock in flood:
        sock.close()


async def _peek(sock: socket.socket) -> bytes:
    sock.setblocking(False)
    try:
        return sock.recv(4096)
    except OSError:
        return b""


async def test_a_request_that_is_never_finished_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEADERS_WITHIN_S", 0.2)
    served = await started()
    silent, half = served.connect(), served.connect()
    half.send(b"GET / HTTP/1.1\r\nHost: t\r\nX: ")
    trickle = asyncio.create_task(_trickle(half))
    assert await read_all(silent) == b""
    assert (await read_all(half)).startswith(b"HTTP/1.1 408 ")
    trickle.cancel()
    assert served.refused("slow") == 2
    await served.port.cleanup()


async def _trickle(sock: socket.socket) -> None:
    while True:
        await asyncio.sleep(0.02)
        try:
            sock.send(b"x")
        except OSError:
            return


async def test_a_further_request_of_a_connection_has_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "HEADERS_WITHIN_S", 0.2)
    served = await started()
    sock = served.connect()
    sock.send(b"GET / HTTP/1.1\r\nHost: t\r\n\r\n")
    await asyncio.sleep(0.4)
    sock.send(b"GET / HTTP/1.1\r\nHost:")
    said = await read_all(sock)
    assert said.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in said
    await served.port.cleanup()


async def test_a_body_that_stops_is_refused_and_one_that_is_too_long_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "BODY_WITHIN_S", 0.2)
    served = await started()
    stops, long = served.connect(), served.connect()
    stops.send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 9\r\n\r\nx")
    long.send(b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 99999\r\nConnection: close\r\n\r\n" + bytes(99999))
    said = await read_all(stops)
    assert said.startswith(b"HTTP/1.1 408 ")
    assert b"send the whole body within" in said
    assert (await read_all(long)).startswith(b"HTTP/1.1 413 ")
    whole = served.connect()
    whole.send(b"POST / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc")
    assert (await read_all(whole)).endswith(b'{"length":3}')
    await served.port.cleanup()


async def test_a_peer_that_does_not_read_its_answer_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(port_module, "STALLED_S", 0.2)
    served = await started()
    sock = served.connect()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.send(b"GET /big HTTP/1.1\r\nHost: t\r\n\r\n")
    gauge = {"port": "http"}
    await until(lambda: served.registry.get_sample_value("sluice_router_connections", gauge) == 1)
    await until(lambda: served.registry.get_sample_value("sluice_router_connections", gauge) == 0)
    sock.close()
    await served.port.cleanup()


async def test_people_behind_a_trusted_proxy_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "file_shares", lambda: FileShares(players=64, http=64, media=1, narrow=4, limit=100))
    served = await started(FrontSettings(trusted_proxies=("127.0.0.1",), max_per_address=8))
    kept = []
    for number in range(40):
        reader, writer = await asyncio.open_connection("127.0.0.1", served.port.port)
        writer.write(f"GET / HTTP/1.1\r\nHost: t\r\nX-Forwarded-For: 192.0.2.{number // 8}\r\n\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        kept.append(writer)
    status, _ = await served.ask("/", headers="X-Forwarded-For: 192.0.2.1\r\n")
    assert status == 503
    assert (await served.ask("/", headers="X-Forwarded-For: 192.0.2.99\r\n"))[0] == 200
    forged = "X-Forwarded-For: 192.0.2.99\r\n"
    assert (await served.ask("/", source="127.0.0.2", headers=forged))[0] == 200
    assert b"sluice_router_connections_refused_total" in generate_latest(served.registry)
    for writer in kept:
        writer.close()
    await served.port.cleanup()


def test_the_log_is_quiet_without_a_flood(caplog: pytest.LogCaptureFixture) -> None:
    async def visit() -> None:
        served = await started()
        assert (await served.ask("/"))[0] == 200
        await served.port.cleanup()

    with caplog.at_level(logging.INFO):
        asyncio.run(visit())
    assert [record for record in caplog.records if record.name == "front"] == []
