"""The SFU side of a router, scripted: it takes links, remembers what it hears, and says what the test tells it to."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from websockets.asyncio.server import Server, ServerConnection, serve

from shared.messages.base import encode
from shared.messages.link import Drained, Hello, Linked, Registered, ToRouter, ToSfu, to_router, unpack_state
from shared.records import SfuState
from shared.tokens import LinkClaims, verify
from tests.fakes.sfu_process import SECRET, until

M = TypeVar("M")


class LinkRouter:
    """`await router.start()`, then read `heard`."""

    def __init__(self, name: str = "router-t", *, floor: int = 0, answers_goodbye: bool = True) -> None:
        self.name = name
        self.floor = floor
        self.answers_goodbye = answers_goodbye
        self.heard: list[ToRouter] = []
        self.links: list[ServerConnection] = []
        self.url = ""
        self._server: Server | None = None

    async def start(self) -> LinkRouter:
        self._server = await serve(self._link, "127.0.0.1", 0, compression=None)
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()

    async def _link(self, websocket: ServerConnection) -> None:
        assert websocket.request is not None
        assert websocket.request.path == "/sfu"
        hello = to_router.read(await websocket.recv())
        assert isinstance(hello, Hello)
        verify(LinkClaims, hello.token, secret=SECRET, now_at=0.0)
        self.heard.append(hello)
        await websocket.send(encode(Linked(router=self.name, incarnation_floor=self.floor)))
        self.links.append(websocket)
        try:
            async for frame in websocket:
                message = to_router.read(frame)
                self.heard.append(message)
                if isinstance(message, Drained) and self.answers_goodbye:
                    await websocket.send(encode(Registered()))
        finally:
            self.links.remove(websocket)

    async def say(self, message: ToSfu) -> None:
        """Say it on every link."""
        await until(lambda: bool(self.links))
        await asyncio.gather(*(link.send(encode(message)) for link in self.links))

    def of(self, kind: type[M]) -> list[M]:
        """What was heard of one kind."""
        return [message for message in self.heard if isinstance(message, kind)]

    async def wait(self, kind: type[M], *, within_s: float = 60.0) -> M:
        """The first message of a kind."""
        await until(lambda: bool(self.of(kind)), within_s=within_s)
        return self.of(kind)[0]

    def states(self) -> list[SfuState]:
        """Every state heard, in order."""
        return [unpack_state(message.state) for message in self.heard]
