"""A program of a local fleet is ready when it says so itself, not when something else answers on its port."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet, FleetSpec
from localfleet.program import Program
from shared.host.child import Child, start
from shared.host.ports import is_free
from shared.http import make_app, serve

SLEEPS = [sys.executable, "-c", "import time; time.sleep(600)"]
SERVER = """
import asyncio, sys
from prometheus_client import CollectorRegistry
from shared.http import make_app, serve
async def main():
    await serve(make_app(ready=lambda: True, registry=CollectorRegistry()), host="127.0.0.1", port=int(sys.argv[1]))
    await asyncio.Event().wait()
asyncio.run(main())
"""


@pytest.fixture
async def stranger() -> AsyncIterator[int]:
    """Another fleet's router, ready, on a port."""
    runner = await serve(make_app(ready=lambda: True, registry=CollectorRegistry()), host="127.0.0.1", port=0)
    yield runner.port
    await runner.cleanup()


def program(child: Child, port: int) -> Program:
    return Program(name=child.name, child=child, http=f"http://127.0.0.1:{port}", ws="", ports=(port,))


async def test_another_programs_answer_is_not_taken_for_its_own(stranger: int, tmp_path: Path) -> None:
    child = await start("router-1", SLEEPS, logs=tmp_path)
    async with aiohttp.ClientSession() as session:
        with pytest.raises(FleetFailed, match=f"another program answers at http://127.0.0.1:{stranger}"):
            await program(child, stranger).wait_ready(session, within_s=0.3)
    assert program(child, stranger).lost_ports() == []  # it runs: nothing says that it wanted to listen there
    await child.stop(within_s=0.0)
    assert program(child, stranger).lost_ports() == [stranger]


async def test_its_own_answer_counts(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    child = await start("router-1", [sys.executable, "-c", SERVER, str(port)], logs=tmp_path)
    async with aiohttp.ClientSession() as session:
        await program(child, port).wait_ready(session, within_s=30.0)
    await child.stop(within_s=0.0)
    assert program(child, port).lost_ports() == []


@pytest.mark.process
async def test_a_program_whose_port_was_taken_meanwhile_starts_on_another(
    stranger: int, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The look found the port free, as for two fleets that start at once."""
    said: list[str] = []
    fleet = Fleet(FleetSpec(routers=1, sfus=0, redis=redis_url, page_port=stranger), logs=tmp_path, say=said.append)
    looked = iter([True])
    monkeypatch.setattr("shared.host.ports.is_free", blind_once(looked, stranger))
    async with fleet:
        assert f"router-1: another program has taken port {stranger} meanwhile; starting it again on others" in said
        assert fleet.page != f"http://127.0.0.1:{stranger}/"
        assert fleet.routers["router-1"].child.running


def blind_once(looks: Iterator[bool], port: int) -> Callable[..., bool]:
    """`is_free`, which finds the port free at the first look."""
    return lambda wanted, *, host="127.0.0.1": (wanted == port and next(looks, False)) or is_free(wanted, host=host)
