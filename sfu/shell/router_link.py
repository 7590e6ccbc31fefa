"""The SFU's links to its routers: each reconnects when it breaks, and a slow or dead router never holds up another."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI, WebSocketException

from sfu.core.links import choose_router, link_url, retry_delay_s
from sfu.shell.metrics import SfuMetrics
from shared.errors import BadInput, UnknownMessage
from shared.logs import OncePerMinute, fields
from shared.messages.base import encode
from shared.messages.codes import CloseCode
from shared.messages.link import Hello, Linked, Registered, SfuReport, ToRouter, ToSfu, to_sfu
from shared.patience import PatientClient

OPEN_TIMEOUT_S = 5.0
SEND_TIMEOUT_S = 5.0
"""A router that takes nothing for this long is left, and tried again later."""
MAX_QUEUED = 64
"""Messages waiting for one router; reports replace each other, so only changes of status can pile up."""
MAX_FRAME = 64 * 1024
REFUSALS: dict[int, str] = {CloseCode.WRONG_PROTOCOL: "wrong-protocol", CloseCode.NAME_TAKEN: "name-taken"}
"""Close codes of a router that will not have this SFU, and how each is counted."""

log = logging.getLogger("sfu.link")


class LinkOwner(Protocol):
    """What a link needs from the program."""

    def hello(self) -> Hello:
        """The first message, with the state of this moment."""

    def linked(self, message: Linked) -> ToRouter | None:
        """A link is up; returns what to say next, if anything."""

    def ordered(self, message: ToSfu, *, router: str) -> None:
        """A router said something."""


class RouterLink:
    """One of the links. `run` never returns; cancel it."""

    def __init__(self, links: RouterLinks) -> None:
        self._links = links
        self._outbox: deque[ToRouter] = deque()
        self._wake = asyncio.Event()
        self.url = ""
        """The router it is on or tries now; empty while it waits."""
        self.up = False
        self.registered = asyncio.Event()

    def send(self, message: ToRouter) -> None:
        """Queue a message; nothing happens while the link is down, because `hello` will carry the state."""
        if not self.up:
            return
        if isinstance(message, SfuReport) and self._outbox and isinstance(self._outbox[-1], SfuReport):
            self._outbox.pop()
            self._links.metrics.link_dropped.inc()
        if len(self._outbox) >= MAX_QUEUED:
            self._outbox.popleft()
        self._outbox.append(message)
        self._wake.set()

    async def run(self, owner: LinkOwner) -> None:
        """Stay linked with some router, for this owner."""
        attempt = 0
        while True:
            url = self._links.choose()
            if url is not None:
                self.url = url
                started = time.monotonic()
                await self._visit(url, owner)
                self.url = ""
                attempt = 0 if time.monotonic() - started > 30 else attempt + 1
                self._links.failed_at[url] = time.monotonic()
            await asyncio.sleep(retry_delay_s(attempt, rng=self._links.rng))

    async def _visit(self, url: str, owner: LinkOwner) -> None:
        """One connection, from beginning to end. Failures are logged and end it."""
        try:
            websocket = await connect(
                link_url(url), open_timeout=OPEN_TIMEOUT_S, close_timeout=1.0, compression=None, max_size=MAX_FRAME,
                ping_interval=5.0, ping_timeout=10.0, proxy=None, create_connection=PatientClient,
            )  # fmt: skip
            try:
                await self._linked(websocket, url, owner)
            finally:
                await websocket.close()
        except ConnectionClosed as closed:
            self._closed(url, closed)
        except (OSError, TimeoutError, WebSocketException, InvalidHandshake, InvalidURI, BadInput) as error:
            self._links.once.warning(f"link {url}", f"router link broke: {str(error)[:200] or type(error).__name__}")
        finally:
            self.up = False
            self._links.changed()

    def _closed(self, url: str, closed: ConnectionClosed) -> None:
        end = closed.rcvd
        if end is not None and end.code in REFUSALS:
            if end.code == CloseCode.WRONG_PROTOCOL:
                self._links.refused_at[url] = time.monotonic()
            self._links.metrics.trouble.labels(REFUSALS[end.code]).inc()
            self._links.once.warning(f"link {url}", f"router refused this SFU: {end.reason}")
        else:
            self._links.once.warning(f"link {url}", f"router link broke: {str(closed)[:200]}")

    async def _linked(self, websocket: ClientConnection, url: str, owner: LinkOwner) -> None:
        await self._send(websocket, owner.hello())
        first = to_sfu.read(await asyncio.wait_for(websocket.recv(), OPEN_TIMEOUT_S))
        if not isinstance(first, Linked):
            raise BadAnswer
        self._outbox.clear()
        self.up = True
        self._links.changed()
        log.info("[link] up %s", fields(router=first.router, url=url))
        if (word := owner.linked(first)) is not None:
            self.send(word)
        writer = asyncio.create_task(self._write(websocket))
        try:
            async for frame in websocket:
                self._read(frame, first.router, owner)
        finally:
            writer.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await writer

    def _read(self, frame: str | bytes, router: str, owner: LinkOwner) -> None:
        try:
            message = to_sfu.read(frame)
        except UnknownMessage as error:
            self._links.metrics.trouble.labels(error.code).inc()
            return
        if isinstance(message, Registered):
            self.registered.set()
        else:
            owner.ordered(message, router=router)

    async def _write(self, websocket: ClientConnection) -> None:
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while self._outbox:
                    await self._send(websocket, self._outbox.popleft())
        except (TimeoutError, OSError, WebSocketException):
            # The reader learns of it by the end of the connection; abort, because a close handshake would wait as well.
            websocket.transport.abort()

    async def _send(self, websocket: ClientConnection, message: ToRouter) -> None:
        await asyncio.wait_for(websocket.send(encode(message)), SEND_TIMEOUT_S)
        self._links.metrics.sent_to_router(message)


class BadAnswer(BadInput):
    """A router answered `hello` with something else than `linked`."""

    code = "bad-link"

    def sentence(self) -> str:
        return "the router did not answer hello with linked"


class RouterLinks:
    """All links of this SFU."""

    def __init__(self, *, routers: Sequence[str], count: int, metrics: SfuMetrics, rng: random.Random) -> None:
        self.metrics = metrics
        self.rng = rng
        self.failed_at: dict[str, float] = {}
        self.refused_at: dict[str, float] = {}
        """When each router last said that it does not speak our version of the protocol."""
        self.once = OncePerMinute(log, clock=time.monotonic)
        self._routers = tuple(dict.fromkeys(routers))
        self._links = [RouterLink(self) for _ in range(min(count, len(self._routers)))]
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def up(self) -> int:
        """How many links are up."""
        return sum(link.up for link in self._links)

    @property
    def urls(self) -> list[str]:
        """The routers linked with now."""
        return [link.url for link in self._links if link.up]

    def start(self, owner: LinkOwner) -> None:
        """Begin to link; until then no link is up."""
        self._tasks = [asyncio.create_task(link.run(owner)) for link in self._links]

    def choose(self) -> str | None:
        """A router for a link that has none."""
        in_use = {link.url for link in self._links}
        return choose_router(
            self._routers,
            in_use=in_use,
            failed_at=self.failed_at,
            refused_at=self.refused_at,
            now=time.monotonic(),
            rng=self.rng,
        )

    def send(self, message: ToRouter) -> None:
        """Say it on every link that is up."""
        for link in self._links:
            link.send(message)

    async def say_goodbye(self, message: ToRouter, *, within_s: float) -> bool:
        """Say a last message on every link and wait for `registered`; False when a router has not answered in time."""
        waiting = [link for link in self._links if link.up]
        self.send(message)
        answered = asyncio.gather(*(link.registered.wait() for link in waiting))
        try:
            await asyncio.wait_for(answered, within_s)
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """Close every link."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def changed(self) -> None:
        """A link came up or went down."""
        self.metrics.links.set(self.up)
