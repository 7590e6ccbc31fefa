"""Where a running local fleet takes orders from other commands: a socket that only its user can open."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web

from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet
from shared.errors import Refused, SluiceError
from shared.logs import visible

MOST_BYTES = 4096
MOST_NAME = 100
NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.")
log = logging.getLogger("localfleet")


class WantedSfu(msgspec.Struct, frozen=True, kw_only=True):
    """An SFU that is to run."""

    sfu: str = ""
    """Its id; empty: the next number."""
    version: str = ""
    """Its label; empty: that of the fleet."""


class WantedRouter(msgspec.Struct, frozen=True, kw_only=True):
    """A router that is to start again."""

    router: str


class FleetDoor:
    """Use it as an async context manager. Orders are followed one after another; each may be given twice."""

    def __init__(self, fleet: Fleet, *, pool: str = "") -> None:
        """`pool`: whose the SFUs are, if not the fleet's own."""
        self._fleet = fleet
        self._pool = pool
        self._place = Path(tempfile.mkdtemp(prefix="sluice-door-"))  # short: a socket's path has 107 characters at most
        self._one = asyncio.Lock()
        app = web.Application(client_max_size=MOST_BYTES)
        app.router.add_post("/sfus", self._answer(self._sfu))
        app.router.add_post("/routers", self._answer(self._router))
        self._runner = web.AppRunner(app, access_log=None)

    @property
    def path(self) -> str:
        """Of the socket."""
        return str(self._place / "door")

    async def __aenter__(self) -> Self:
        await self._runner.setup()
        await web.UnixSite(self._runner, self.path).start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._runner.cleanup()
        shutil.rmtree(self._place, ignore_errors=True)

    def _answer(
        self, follow: Callable[[bytes], Awaitable[dict[str, str]]]
    ) -> Callable[[web.Request], Awaitable[web.Response]]:
        async def handle(request: web.Request) -> web.Response:
            try:
                body = await request.read()
                async with self._one:
                    return web.json_response(await follow(body))
            except msgspec.DecodeError as error:
                return web.json_response({"error": f"not an order: {error}"}, status=400)
            except FleetFailed as error:
                last = error.log.strip().rpartition("\n")[2]
                said = f"{error.sentence()}; its log ends with: {visible(last)[:200]}" if last else error.sentence()
                return web.json_response({"error": said}, status=500)
            except SluiceError as error:
                return web.json_response({"error": error.sentence()}, status=409)

        return handle

    async def _sfu(self, body: bytes) -> dict[str, str]:
        wanted, fleet = msgspec.json.decode(body, type=WantedSfu), self._fleet
        if self._pool:
            raise Refused("pool-owned", f"the SFUs of this fleet belong to pool {self._pool!r}, which scales it")
        if len(wanted.sfu) > MOST_NAME or not NAME.issuperset(wanted.sfu) or wanted.sfu.startswith("."):
            raise Refused("bad-name", "an SFU's id here has at most 100 letters, digits, '-', '_' and '.'")
        running = fleet.sfus.get(wanted.sfu)
        if running is None or not running.child.running:
            running = await fleet.add_sfu(wanted.sfu or None, version=wanted.version or None)
            log.info("[roll] started %s", running.name)
        return {"sfu": running.name}

    async def _router(self, body: bytes) -> dict[str, str]:
        name = msgspec.json.decode(body, type=WantedRouter).router
        if name not in self._fleet.routers:
            raise Refused("unknown-router", f"no router {visible(name)[:100]!r} runs here")
        await self._fleet.restart_router(name)
        return {"router": name}
