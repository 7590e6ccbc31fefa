"""A real SFU process for a test: started on free ports, watched through its log and its HTTP side."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import aiohttp

from shared.tokens import OperatorClaims, issue
from tests.fakes import rtc_peer

SECRET = "a-secret-of-the-tests, long enough for HS256"
_READY = re.compile(r"ready .*address=(\S+) udp=(\d+) http=(\d+)")


async def until(condition: Callable[[], bool], *, within_s: float = 60.0) -> None:
    """Wait for a condition; a busy machine takes a while to start processes and to shake hands."""
    await rtc_peer.until(condition, within_s=within_s)


class SfuProcess:
    """`await SfuProcess.start(...)`; the test ends it or `kill` does."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self.address = ""
        self.http = ""
        self._reader = asyncio.create_task(self._read())

    @classmethod
    async def start(
        cls, *, sfu: str = "sfu-t", routers: list[str] | None = None, before: Sequence[str] = (), **settings: object
    ) -> SfuProcess:
        """`before`: a program that starts it, such as `prlimit`."""
        flags = {"sfu": sfu, "ws-port": 0, "udp-port": 0, "http-port": 0, "announced-ip": "127.0.0.1", **settings}
        arguments = [part for name, value in flags.items() for part in (f"--{name.replace('_', '-')}", str(value))]
        for router in routers or ["ws://127.0.0.1:9"]:
            arguments += ["--routers", router]
        process = await asyncio.create_subprocess_exec(
            *before, sys.executable, "-m", "sfu", *arguments,
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "SLUICE_SECRET": SECRET},
        )  # fmt: skip
        sfu_process = cls(process)
        await until(lambda: sfu_process.http != "" or process.returncode is not None, within_s=60)
        assert process.returncode is None, "\n".join(sfu_process.lines)
        return sfu_process

    async def _read(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.lines.append(line.decode(errors="replace").rstrip())
            if match := _READY.search(self.lines[-1]):
                self.address, self.http = match[1], f"http://127.0.0.1:{match[3]}"

    @property
    def log(self) -> str:
        return "\n".join(self.lines)

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    async def exit_status(self, *, within_s: float = 60.0) -> int:
        """Wait for the end of the process."""
        status = await asyncio.wait_for(self.process.wait(), within_s)
        await self._reader
        return status

    async def kill(self) -> None:
        """End it if it still runs."""
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._reader

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and JSON (or text) of an HTTP GET, as an operator."""
        token = issue(OperatorClaims(operator="olga"), secret=SECRET, now_at=time.time(), ttl_s=60.0)
        headers = {"Authorization": f"Bearer {token}"}
        async with aiohttp.ClientSession() as session, session.get(self.http + path, headers=headers) as response:
            body = await response.json() if "json" in response.content_type else await response.text()
            return response.status, body

    async def state(self) -> dict[str, Any]:
        _, body = await self.get("/api/state")
        assert isinstance(body, dict)
        return body
