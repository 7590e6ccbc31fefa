"""Ports that speak TLS: seats are taken before the handshake, and a new certificate is used without a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
import uvloop
from aiohttp import web
from cryptography import x509
from cryptography.x509.oid import NameOID
from prometheus_client import CollectorRegistry

from shared import http
from shared.errors import BadSetting
from shared.front import tls
from shared.front.metrics import FrontMetrics
from shared.front.settings import FrontSettings
from shared.http import HttpPort, answer, make_app, serve
from tests.fakes.certificate import trusting, write_certificate


async def started(front: FrontSettings) -> tuple[HttpPort, CollectorRegistry]:
    registry = CollectorRegistry()
    app = make_app(ready=lambda: True, registry=registry)

    async def scheme(request: web.Request) -> web.Response:
        return answer({"scheme": request.scheme, "long": "x" * 100_000})

    app.add_routes([web.get("/", scheme)])
    metrics = FrontMetrics(registry, program="router")
    return await serve(app, host="127.0.0.1", port=0, metrics=metrics, front=front), registry


async def ask(port: int, path: str = "/") -> tuple[str, bytes]:
    """The name in the certificate, and the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trusting())
    der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    name = x509.load_der_x509_certificate(der).subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value
    writer.write(f"GET {path} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n".encode())
    said = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return str(name), said


def on(loop: str, story: object) -> None:
    """Run it on this event loop: the two start TLS differently."""
    runner = uvloop.run if loop == "uvloop" else asyncio.run
    runner(story)  # type: ignore[operator]


loops = pytest.mark.parametrize("loop", ["uvloop", "asyncio"])


@loops
def test_requests_are_answered_over_tls_and_a_new_certificate_is_used_without_a_restart(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tls, "LOOK_EVERY_S", 0.0)

    async def story() -> None:
        port, registry = await started(write_certificate(tmp_path, "first"))
        name, said = await ask(port.port)
        assert name == "first"
        assert said.startswith(b"HTTP/1.1 200 ")
        assert b'"scheme":"https"' in said
        assert len(said) > 100_000
        write_certificate(tmp_path, "second")
        assert (await ask(port.port))[0] == "second"
        (tmp_path / "key.pem").write_text("rubbish")
        assert (await ask(port.port))[0] == "second"
        await asyncio.gather(*(ask(port.port, "/healthz") for _ in range(50)))
        await asyncio.sleep(0.1)
        assert registry.get_sample_value("sluice_router_connections", {"port": "http"}) == 0
        await port.cleanup()

    on(loop, story())
    assert "the certificate before it stays" in caplog.text


@loops
def test_a_handshake_that_is_never_finished_holds_its_seat_for_seconds_only(
    loop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "HEADERS_WITHIN_S", 0.3)

    async def story() -> None:
        port, registry = await started(write_certificate(tmp_path, "first"))

        def seats() -> float:
            return registry.get_sample_value("sluice_router_connections", {"port": "http"}) or 0

        opened = [await asyncio.open_connection("127.0.0.1", port.port) for _ in range(3)]
        opened[1][1].write(b"GET / HTTP/1.1\r\n\r\n")
        opened[2][1].write(b"\x16\x03\x01\x02\x00\x01")
        opened.append(await asyncio.open_connection("127.0.0.1", port.port))
        opened.pop()[1].transport.abort()
        for reader, writer in opened:
            with_nothing = await asyncio.wait_for(reader.read(), 10)
            assert b"HTTP" not in with_nothing
            writer.close()
        async with asyncio.timeout(10):
            while seats():  # noqa: ASYNC110 - others' doing
                await asyncio.sleep(0.01)
        assert (await ask(port.port))[1].startswith(b"HTTP/1.1 200 ")
        await port.cleanup()

    on(loop, story())


def test_files_that_can_t_be_used_are_named_at_start(tmp_path: Path) -> None:
    good = write_certificate(tmp_path, "first")
    good.check()
    for bad in (
        FrontSettings(tls_cert=good.tls_cert),
        FrontSettings(tls_cert=good.tls_cert, tls_key=good.tls_cert),
        FrontSettings(tls_cert=str(tmp_path / "none"), tls_key=good.tls_key),
    ):
        with pytest.raises(BadSetting, match="tls_cert"):
            bad.check()


def test_a_certificate_that_kubernetes_swaps_behind_a_link_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It mounts a secret as links into a folder that is a link, and swaps that one."""
    monkeypatch.setattr(tls, "LOOK_EVERY_S", 0.0)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_certificate(tmp_path / folder, folder)
    (tmp_path / "data").symlink_to("one")
    held = tls.PortCertificate(str(tmp_path / "data" / "cert.pem"), str(tmp_path / "data" / "key.pem"))
    first = held.context()
    assert held.context() is first
    (tmp_path / "next").symlink_to("two")
    (tmp_path / "next").replace(tmp_path / "data")
    assert held.context() is not first
