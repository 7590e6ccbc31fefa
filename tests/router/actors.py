"""Scripted players and SFU links that speak the protocol over real websockets, and routers as real processes."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from shared.messages import link, player
from shared.messages.base import Message, encode
from shared.records import Drain, DrainReport, SfuState, SfuStatus
from shared.tokens import LinkClaims, PlayerClaims, issue

SECRET = "a-secret-for-tests-only-of-32-bytes"
WITHIN_S = 20.0
"""Deadline of everything that should happen at once; the machine may be busy."""
M = TypeVar("M", bound=Message)
_incarnations = itertools.count(1)
"""Each scripted SFU is a later start of its id, so that tests can use the same ids on the same routers."""


async def until(condition: Callable[[], Any], *, within_s: float = WITHIN_S, what: str = "") -> Any:
    """Wait until `condition()` is true; its value."""
    deadline = time.monotonic() + within_s
    while True:
        if value := condition():
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"did not come about within {within_s:g} s: {what}")
        await asyncio.sleep(0.01)


def player_token(room: str, identity: str, **grants: Any) -> str:
    """What the app would give the player."""
    claims = PlayerClaims(room=room, identity=identity, **grants)
    return issue(claims, secret=SECRET, now_at=time.time(), ttl_s=86_400)


class Peer:
    """A websocket whose messages are gathered as they come."""

    def __init__(self, connection: ClientConnection, reader: Any) -> None:
        self.connection = connection
        self.heard: list[Any] = []
        self.closed: int | None = None
        self.reason = ""
        self._reader = reader
        self._task = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        try:
            async for frame in self.connection:
                self.heard.append(self._reader.read(frame))
        except ConnectionClosed:
            pass
        self.closed = self.connection.close_code
        self.reason = self.connection.close_reason or ""

    async def say(self, message: Message) -> None:
        await self.connection.send(encode(message))

    async def hears(
        self, kind: type[M], *, where: Callable[[M], bool] = lambda _: True, within_s: float = WITHIN_S
    ) -> M:
        """The first message of that kind that fits, heard already or not."""

        def find() -> M | None:
            assert self.closed is None or any(isinstance(m, kind) for m in self.heard), f"closed with {self.closed}"
            return next((m for m in self.heard if isinstance(m, kind) and where(m)), None)

        found: M = await until(find, within_s=within_s, what=f"{kind.__name__} among {self.heard[-5:]}")
        return found

    def count(self, kind: type[Message]) -> int:
        return sum(isinstance(message, kind) for message in self.heard)

    async def ends(self) -> int:
        """The code with which the other side closes."""
        await until(lambda: self._task.done(), what="a close")
        assert self.closed is not None
        return self.closed

    async def vanish(self) -> None:
        """The connection breaks without a close."""
        self.connection.transport.abort()
        await self._task

    async def close(self) -> None:
        await self.connection.close()
        await self._task


class Player(Peer):
    """A player."""

    welcome: player.Welcome

    @classmethod
    async def open(cls, ws: str) -> Player:
        return cls(await connect(f"{ws}/player", compression=None, ping_interval=None), player.to_player)

    @classmethod
    async def join(cls, ws: str, room: str, identity: str, **message: Any) -> Player:
        it = await cls.open(ws)
        await it.say(player.Join(token=player_token(room, identity, name=identity.title()), **message))
        it.welcome = await it.hears(player.Welcome)
        return it

    @classmethod
    async def resume(cls, ws: str, old: Player, **message: Any) -> Player:
        it = await cls.open(ws)
        await it.say(player.Resume(resume_token=old.welcome.resume_token, **message))
        it.welcome = await it.hears(player.Welcome)
        return it

    @property
    def sfu(self) -> str:
        assert self.welcome.assignment is not None
        return self.welcome.assignment.sfu

    async def asks_for_sfu(self, **message: Any) -> player.AssignedSfu | player.Failed:
        request = secrets.token_hex(4)
        await self.say(player.RequestSfu(request=request, **message))
        found: player.AssignedSfu | player.Failed = await until(
            lambda: next((m for m in self.heard if getattr(m, "request", "") == request), None), what="an answer"
        )
        return found

    async def asks_to_leave(
        self, state: SfuState, *, revision: int = 0, reason: str = "cordoned"
    ) -> player.AssignedSfu | player.Failed:
        """Ask for another SFU than that one, naming what it was told of it."""
        return await self.asks_for_sfu(
            leave=state.sfu, incarnation=state.incarnation, revision=revision or state.revision, reason=reason
        )


class ScriptedLink(Peer):
    """An SFU's link to one router, as told what to report."""

    state: SfuState

    @classmethod
    async def open(cls, ws: str, state: SfuState, *, boot: str = "boot-1") -> ScriptedLink:
        it = cls(await connect(f"{ws}/sfu", compression=None, ping_interval=None), link.to_sfu)
        it.state = state
        token = issue(LinkClaims(sfu=state.sfu), secret=SECRET, now_at=time.time(), ttl_s=60)
        await it.say(link.Hello(token=token, boot=boot, state=link.pack_state(state)))
        await it.hears(link.Linked)
        return it


class Sfu:
    """A scripted SFU that reports to all its routers every 200 ms, until it is stopped."""

    def __init__(self, sfu: str, routers: list[str], **fields: Any) -> None:
        fields = {"incarnation": next(_incarnations), "revision": 1, "load": 0.1, "version": "v1"} | fields
        self.state = SfuState(sfu=sfu, address=f"ws://127.0.0.1:1/{sfu}", **fields)
        self.routers = routers
        self.links: list[ScriptedLink] = []
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> Sfu:
        self.links = [await ScriptedLink.open(ws, self.state) for ws in self.routers]
        self._task = asyncio.create_task(self._report())
        return self

    async def _report(self) -> None:
        while True:
            await asyncio.sleep(0.2)
            await self.report()

    async def report(self, message: Any = link.SfuReport, **changes: Any) -> None:
        """Tell every router the next revision of the state."""
        self.state = msgspec.structs.replace(self.state, **({"revision": self.state.revision + 1} | changes))
        for each in self.links:
            try:
                await each.say(message(state=link.pack_state(self.state)))
            except ConnectionClosed:
                continue

    async def cordon(self) -> None:
        drain = Drain(cause="sigterm", drain_max_s=1800.0, grace_s=3600.0)
        await self.report(link.CordonReport, status=SfuStatus.CORDONED.value, drain=drain)

    async def uncordon(self) -> None:
        await self.report(link.UncordonReport, status=SfuStatus.ONLINE.value, drain=None)

    async def die(self) -> None:
        """As after SIGKILL: every connection breaks."""
        await self.be_quiet()
        for each in self.links:
            await each.vanish()

    async def stop(self) -> None:
        """Say goodbye on each link that is left."""
        await self.be_quiet()
        for each in self.links:
            if each.closed is None:
                await each.say(link.Drained(report=DrainReport(sfu=self.state.sfu), state=link.pack_state(self.state)))
                await each.hears(link.Registered)
            await each.close()

    async def be_quiet(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


class RouterProcess:
    """`python -m router` as a real process on free ports."""

    def __init__(
        self, router: str, *, redis: str, fleet: str, before: Sequence[str] = (), stderr: Any = None, **settings: Any
    ) -> None:
        """Start it; `wait_up` before using it, so that several start at the same time. `before`: as `prlimit`."""
        values = {"router": router, "redis": redis, "fleet": fleet, "ws_port": 0, "http_port": 0, "secret": SECRET}
        flags = []
        for name, value in (
            values | {"sync_interval_s": 0.2, "closing_spread_s": 0.5, "api_open": True} | settings
        ).items():
            flag = "--" + name.replace("_", "-")
            flags += [flag] if value is True else [flag, str(value)]
        environment = {key: value for key, value in os.environ.items() if not key.startswith("SLUICE_")}
        command = [*before, sys.executable, "-m", "router", *flags]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, stderr=stderr)
        self.ws = self.http = ""

    def wait_up(self) -> RouterProcess:
        """Itself, once it listens."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the router ended at once"
        addresses = json.loads(line)
        self.ws, self.http = addresses["ws"], addresses["http"]
        return self

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    async def terminate(self) -> int:
        """SIGTERM; the exit status."""
        self.process.terminate()
        await until(lambda: self.process.poll() is not None, what="the router's end")
        return self.process.returncode
