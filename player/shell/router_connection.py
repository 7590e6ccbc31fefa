"""A player's connection to some router: joins, and after a loss resumes on any router with full jitter."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from player.core.websocket_end import STEADY_S
from player.shell.wire import Closed, MessageSocket
from shared.jitter import full_jitter
from shared.messages import player as p
from shared.messages.base import Message
from shared.messages.codes import CloseCode

FINAL = {CloseCode.REPLACED: "replaced", CloseCode.BAD_TOKEN: "bad-token"}
"""Codes after which coming back would be wrong."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What the connection asks and tells its owner."""

    join: Callable[[], Message]
    resume: Callable[[str], Message]
    """The `resume` message with this token."""
    message: Callable[[p.ToPlayer], None]
    lost: Callable[[Closed], None]


class RouterConnection:
    """Run it as a task until the player leaves. It ends, with a word in `ended`, when it must not come back."""

    def __init__(self, urls: Sequence[str], callbacks: Callbacks, *, rng: random.Random) -> None:
        self.ended = ""
        self.resumes = 0
        self.closed: Closed | None = None
        """How the last websocket ended."""
        self._urls = [player_url(url) for url in urls]
        self._callbacks = callbacks
        self._rng = rng
        self._wire: MessageSocket[p.ToPlayer] | None = None
        self._resume_token = ""
        self._lost_at = 0.0
        self._window_s = 25.0
        self._avoid = ""
        self._leaving = False

    @property
    def url(self) -> str:
        """The router we are connected to; empty when to none."""
        return self._wire.url if self._wire is not None else ""

    def send(self, message: Message) -> bool:
        """Send, if a router is there."""
        return self._wire is not None and self._wire.send(message)

    async def leave(self) -> None:
        """End the session; `run` returns soon after."""
        self._leaving = True
        if self._wire is not None:
            self._wire.send(p.Leave())
            await self._wire.close()

    async def run(self) -> None:
        """Be connected, again and again."""
        attempt = 0
        while not self._leaving:
            began = time.monotonic()
            closed, welcomed = await self._once()
            if self._leaving or self._is_final(closed):
                return
            attempt = 0 if welcomed and time.monotonic() - began >= STEADY_S else attempt + 1
            if closed.code == CloseCode.NOT_RESUMABLE:
                self._resume_token = ""
            await asyncio.sleep(full_jitter(attempt, self._rng))

    async def _once(self) -> tuple[Closed, bool]:
        url = self._choose()
        wire = self._wire = MessageSocket(url, p.to_player)
        welcomed = False

        def on_message(message: p.ToPlayer) -> None:
            nonlocal welcomed
            if isinstance(message, p.Welcome):
                welcomed = True
                self._resume_token = message.resume_token
                self._window_s = message.resume_window_s
                self.resumes += message.resumed
            elif isinstance(message, p.RouterClosing):
                self._expect_closing(wire, message.after_s)
            self._callbacks.message(message)

        self.closed = closed = await wire.run(self._first, on_message)
        self._wire = None
        if closed.code != CloseCode.NOT_RESUMABLE:  # that one is well, and will have us join
            self._avoid = url
        if welcomed:
            self._lost_at = time.monotonic()
            self._callbacks.lost(closed)
        return closed, welcomed

    def _first(self) -> Message:
        if self._resume_token and time.monotonic() - self._lost_at < self._window_s:
            return self._callbacks.resume(self._resume_token)
        return self._callbacks.join()

    def _choose(self) -> str:
        """Any router but the one just lost, while there is another."""
        others = [url for url in self._urls if url != self._avoid]
        return self._rng.choice(others or self._urls)

    def _is_final(self, closed: Closed) -> bool:
        with contextlib.suppress(ValueError):
            self.ended = FINAL.get(CloseCode(closed.code), "")
        return bool(self.ended)

    def _expect_closing(self, wire: MessageSocket[p.ToPlayer], after_s: float) -> None:
        """The router is about to go: leave it at the moment it gave us and resume elsewhere."""
        loop = asyncio.get_running_loop()
        loop.call_later(max(0.0, min(after_s, 60.0)), lambda: loop.create_task(wire.close()))


def player_url(url: str) -> str:
    """`ws://HOST:PORT` as the address of the players' endpoint."""
    return url if url.rstrip("/").endswith("/player") else f"{url.rstrip('/')}/player"
