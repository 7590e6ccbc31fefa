"""A fleet of local processes: started in order, watched, changed while it runs, and always ended with us."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import aiohttp

from localfleet.config import FleetSize
from localfleet.errors import FleetFailed
from localfleet.program import Program, flags
from localfleet.roads import DirectRoads, Roads
from shared.embedded import EmbeddedRedis
from shared.host.child import Child, python, start
from shared.host.ports import Ports
from shared.http_client import get_json
from shared.store.store import Store
from shared.store.there import find_redis

PAGE_PORT = 8080
"""Where the first router's page is looked for first; the next free port otherwise."""
ROUTER_ENDS_WITHIN_S = 15.0
"""It says goodbye to its players within seconds."""
PORT_TRIES = 5
"""Starts of a program whose ports others take between our look and its use; each try draws other ports."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FleetSpec(FleetSize):
    """What to start."""

    fleet: str = "sluice"
    """Prefix of its keys."""
    version: str = "local"
    """Version label of the SFUs."""
    links: int | None = None
    """Routers each SFU connects to; None: the SFU's own default."""
    page_port: int | None = None
    """Wanted port of the first router's page; None: any."""
    router_flags: tuple[str, ...] = ()
    sfu_flags: tuple[str, ...] = ()
    inherit: bool = False
    """Whether SLUICE_* of our own environment also sets the programs; a rehearsal must not depend on it."""


class Fleet:
    """A running local fleet; use it as an async context manager. `say` hears one line per step."""

    def __init__(
        self,
        spec: FleetSpec,
        *,
        logs: Path | None = None,
        say: Callable[[str], None] = lambda _: None,
        roads: Roads | None = None,
        clocks: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        """`clocks`: more environment variables of single routers and SFUs, by name."""
        self.spec = spec
        self._roads = roads or DirectRoads()
        self._clocks = clocks or {}
        self.say = say
        self.secret = secrets.token_hex(24)
        self.logs = logs or Path(tempfile.mkdtemp(prefix="sluice-"))
        self.keep_logs = logs is not None
        self.redis_url = spec.redis
        self.redis: EmbeddedRedis | None = None
        self.routers: dict[str, Program] = {}
        self.sfus: dict[str, Program] = {}
        self.others: dict[str, Child] = {}
        self._ports = Ports(host="127.0.0.1" if spec.host == "0.0.0.0" else spec.host)
        self._session: aiohttp.ClientSession | None = None
        self._made = 0
        self._starts: dict[str, Callable[[], Awaitable[Program]]] = {}

    async def __aenter__(self) -> Self:
        try:
            await self.start()
        except BaseException:
            self.keep_logs = True
            await self.stop()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.keep_logs = self.keep_logs or (kind is not None and kind is not asyncio.CancelledError)
        await self.stop()

    async def start(self) -> None:
        """Redis, then routers, then SFUs; returns when all are ready and each SFU takes players."""
        self.logs.mkdir(parents=True, exist_ok=True)
        self._session = aiohttp.ClientSession()
        await self._start_redis()
        for _ in range(self.spec.routers):
            await self.add_router(wait=False)
        await self._all_ready(self.routers, *self.routers)
        for _ in range(self.spec.sfus):
            await self.add_sfu(wait=False)
        await self._all_ready(self.sfus, *self.sfus)
        await asyncio.gather(*(self.wait_placeable(name) for name in self.sfus))

    async def stop(self) -> None:
        """End everything that still runs: bots first, so that their `leave` is heard, then SFUs, routers, Redis."""
        await _each(child.stop(within_s=5.0) for child in self.others.values())
        for program in self.sfus.values():
            # An SFU that is asked to end by SIGTERM would first drain; we have no time for that.
            program.child.kill_group()
        await _each(program.child.wait() for program in self.sfus.values())
        await _each(program.child.stop(within_s=3.0) for program in self.routers.values())
        if self.redis is not None:
            await self.redis.stop()
        if self._session is not None:
            await self._session.close()
        if not self.keep_logs:
            shutil.rmtree(self.logs, ignore_errors=True)

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP client for asking the fleet's programs."""
        assert self._session is not None, "the fleet is not started"
        return self._session

    @property
    def page(self) -> str:
        """Address of the web page."""
        return next(iter(self.routers.values())).http + "/"

    def router_urls(self) -> list[str]:
        """Websocket URLs of the routers, without a path."""
        return [program.ws for program in self.routers.values()]

    # --- changing it while it runs ---

    async def add_router(self, name: str | None = None, *, wait: bool = True) -> Program:
        """One more router."""
        name = name or f"router-{len(self.routers) + 1}"
        page_port = self.spec.page_port if not self.routers else None
        self._starts[name] = lambda: self._start_router(name, page_port)
        self.routers[name] = await self._starts[name]()
        if wait:
            await self._all_ready(self.routers, name)
        return self.routers[name]

    async def restart_router(self, name: str) -> Program:
        """End a router and start it again on its ports, which the others know. Raises `FleetFailed`."""
        old = self.routers[name]
        await old.child.stop(within_s=ROUTER_ENDS_WITHIN_S)
        self.routers[name] = await self._start_router(name, None, ports=old.ports)
        await self._all_ready(self.routers, name)
        return self.routers[name]

    async def _start_router(self, name: str, page_port: int | None, *, ports: Sequence[int] = ()) -> Program:
        host = self.spec.host
        ws_port, http_port = ports or (self._ports.take(), self._ports.take(page_port))
        told_port = await self._roads.to_router(name, ws_port)
        arguments = flags(
            router=name,
            host=host,
            ws_port=ws_port,
            http_port=http_port,
            announced_ws=f"ws://{host}:{told_port}",
            announced_http=f"http://{host}:{http_port}",
            redis=self.redis_url,
            fleet=self.spec.fleet,
            api_open=True,
        )
        command = python("router", *arguments, *self.spec.router_flags)
        return await self._start(name, command, ports=(ws_port, http_port), told_port=told_port)

    async def add_sfu(self, name: str | None = None, *, version: str | None = None, wait: bool = True) -> Program:
        """One more SFU; with `wait`, returns when the routers may give it players."""
        self._made += 1
        name = name or f"sfu-{self._made}"
        label = version or self.spec.version
        self._starts[name] = lambda: self._start_sfu(name, label)
        self.sfus[name] = await self._starts[name]()
        if wait:
            await self._all_ready(self.sfus, name)
            await self.wait_placeable(name)
        return self.sfus[name]

    async def _start_sfu(self, name: str, version: str) -> Program:
        host = self.spec.host
        ws_port, udp_port, http_port = self._ports.take(), self._ports.take(), self._ports.take()
        told_port, told_udp = await self._roads.to_sfu(name, ws_port), self._roads.media(name, udp_port)
        links = [await self._roads.link(name, router.name, router.ports[0]) for router in self.routers.values()]
        arguments = flags(
            sfu=name,
            host=host,
            ws_port=ws_port,
            udp_port=udp_port,
            http_port=http_port,
            announced_ip=host,
            announced_udp_port=None if told_udp == udp_port else told_udp,
            tcp=None if told_udp == udp_port else False,  # media goes by its road only
            announced_ws=f"ws://{host}:{told_port}",
            routers=[f"ws://{host}:{port}" for port in links],
            links=self.spec.links,
            version=version,
        )
        command = python("sfu", *arguments, *self.spec.sfu_flags)
        return await self._start(name, command, ports=(ws_port, udp_port, http_port), told_port=told_port)

    async def _start(self, name: str, command: list[str], *, ports: tuple[int, ...], told_port: int) -> Program:
        """Of `ports`, the first is for websockets and the last for HTTP; wait for readiness separately."""
        host = self.spec.host
        child = await start(name, command, logs=self.logs, env=self._env(name))
        http, ws = f"http://{host}:{ports[-1]}", f"ws://{host}:{told_port}"
        return Program(name=name, child=child, http=http, ws=ws, ports=ports, host=host)

    def environment(self) -> dict[str, str]:
        """The environment of this fleet's programs, its secret included."""
        return self._env()

    async def start_other(
        self, name: str, command: list[str], *, piped: bool = False, env: dict[str, str] | None = None
    ) -> Child:
        """A further program (bots) that ends with the fleet."""
        child = await start(name, command, logs=self.logs, env={**self._env(), **(env or {})}, piped=piped)
        self.others[name] = child
        return child

    def signal_sfu(self, name: str, number: int) -> float:
        """Send an SFU a signal; when, by the monotonic clock."""
        at = time.monotonic()
        self.sfus[name].child.send_signal(number)
        return at

    # --- looking at it ---

    async def sfu_states(self, router: str | None = None) -> dict[str, Any] | None:
        """`/api/sfus` as one router tells it, by SFU id; None when it does not answer."""
        program = self.routers[router] if router else next(r for r in self.routers.values() if r.child.running)
        answer = await get_json(self.session, f"{program.http}/api/sfus")
        if answer is None:
            return None
        return {entry["sfu"]: entry for entry in answer["sfus"]}

    async def wait_placeable(self, name: str, *, within_s: float = 30.0) -> None:
        """Wait until every running router would place players on this SFU. Raises `FleetFailed`."""
        deadline = time.monotonic() + within_s
        for router in [key for key, program in self.routers.items() if program.child.running]:
            while not ((await self.sfu_states(router)) or {}).get(name, {}).get("placeable", False):
                if time.monotonic() > deadline or not self.sfus[name].child.running:
                    detail = f"is not seen as placeable by {router} within {within_s:.0f} s"
                    raise FleetFailed(program=name, detail=detail, log=self.sfus[name].child.tail())
                await asyncio.sleep(0.05)

    def dead(self) -> list[Child]:
        """Programs that have ended."""
        programs = (program.child for program in (*self.routers.values(), *self.sfus.values()))
        return [child for child in (*programs, *self.others.values()) if not child.running]

    # --- inside ---

    async def _start_redis(self) -> None:
        if self.redis_url:
            store = Store(self.redis_url, fleet=self.spec.fleet)
            try:
                await find_redis(store)
            finally:
                await store.close()
            return
        place = self.logs / "redis"
        place.mkdir(exist_ok=True)
        self.redis = EmbeddedRedis(binary=self.spec.server or None, directory=place, private=True)
        await self.redis.start()
        self.redis_url = self.redis.url
        self.say(f"redis at {self.redis_url}")

    async def _all_ready(self, programs: dict[str, Program], *names: str) -> None:
        await asyncio.gather(*(self._ready(programs, name) for name in names))

    async def _ready(self, programs: dict[str, Program], name: str) -> None:
        """Wait for one; it is started again, on other ports, when another program has taken its ports meanwhile."""
        for tries_left in reversed(range(PORT_TRIES)):
            try:
                await programs[name].wait_ready(self.session)
                break
            except FleetFailed:
                lost = programs[name].lost_ports()
                if not lost or not tries_left:
                    raise
                self.say(f"{name}: another program has taken port {lost[0]} meanwhile; starting it again on others")
                programs[name] = await self._starts[name]()
        self.say(f"{name} ready at {programs[name].http}")

    def _env(self, name: str = "") -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if self.spec.inherit or not k.startswith("SLUICE_")}
        kept |= {"SLUICE_SECRET_FILE": "", "SLUICE_REDIS_FILE": ""}  # of another fleet
        return {**kept, "SLUICE_SECRET": self.secret, "PYTHONUNBUFFERED": "1", **self._clocks.get(name, {})}


async def _each(waits: Any) -> None:
    """Await all, even when some fail."""
    pending: list[Awaitable[Any]] = list(waits)
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.gather(*pending, return_exceptions=True)
