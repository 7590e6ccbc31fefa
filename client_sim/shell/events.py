"""The bots' side of a conversation in JSON lines: events out on standard output, commands in on standard input."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable

import msgspec

from client_sim.core import commands
from shared.errors import BadMessage

MAX_LINE = 64 * 1024
"""Longest command [bytes]."""
_encoder = msgspec.json.Encoder()


class EventStream:
    """Writes events as they happen; without `live` it writes nothing.

    A thread hands the lines to the operating system, so that a slow reader does not hold up media.
    """

    def __init__(self, *, live: bool) -> None:
        self.live = live
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._writer: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to write."""
        if self.live:
            self._writer = asyncio.create_task(self._write())

    def emit(self, event: str, **facts: object) -> None:
        """`t` is monotonic seconds, the same clock for all processes of a host; facts that are None are left out."""
        if self.live:
            known = {name: value for name, value in facts.items() if value is not None}
            self._lines.put_nowait(_encoder.encode({"event": event, "t": round(time.monotonic(), 6), **known}) + b"\n")

    async def stop(self) -> None:
        """Write what is left."""
        if self._writer is not None:
            await self._lines.join()
            self._writer.cancel()

    async def _write(self) -> None:
        while True:
            lines = [await self._lines.get()]
            while not self._lines.empty():
                lines.append(self._lines.get_nowait())
            await asyncio.to_thread(_write_all, b"".join(lines))
            for _ in lines:
                self._lines.task_done()


def _write_all(data: bytes) -> None:
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(sys.stdout.fileno(), view) :]
    except OSError:
        return  # the reader is gone; the bots go on


async def read_commands(on_command: Callable[[commands.AnyCommand], None], on_bad: Callable[[str], None]) -> None:
    """Hand over commands from standard input until its end."""
    reader = asyncio.StreamReader(limit=MAX_LINE)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # longer than the limit; the reader has dropped it
            on_bad("a command is too long")
            continue
        if not line:
            return
        if line.strip():
            try:
                on_command(commands.read(line))
            except BadMessage as error:
                on_bad(error.sentence())
