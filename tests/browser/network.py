"""A network of a test's own: a namespace, joined to this machine by a pair of interfaces; it is gone afterwards."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass


async def _ip(*arguments: str) -> None:
    process = await asyncio.create_subprocess_exec("ip", *arguments, stderr=asyncio.subprocess.PIPE)
    _, said = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {said.decode().strip()}")


@dataclass(slots=True)
class Network:
    """Its name as a namespace, our address on it, and the device's, which may change."""

    name: str
    ours: str
    theirs: str
    last: int = 2

    @classmethod
    @asynccontextmanager
    async def made(cls) -> AsyncIterator[Network]:
        """A /24 out of the range for benchmarks (RFC 2544), by our process id so that two runs may meet."""
        part = os.getpid() % 250
        network = cls(f"sluice-{os.getpid()}", f"198.18.{part}.1", f"198.18.{part}.2")
        here, there = f"slh{os.getpid()}"[:15], f"slt{os.getpid()}"[:15]
        await _ip("netns", "add", network.name)
        try:
            await _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", network.name)
            await _ip("addr", "add", f"{network.ours}/24", "dev", here)
            await _ip("link", "set", here, "up")
            await _ip("-n", network.name, "link", "set", "lo", "up")
            await _ip("-n", network.name, "link", "set", there, "up")
            await _ip("-n", network.name, "addr", "add", f"{network.theirs}/24", "dev", there)
            await _ip("-n", network.name, "route", "add", "default", "via", network.ours)
            yield network
        finally:
            await _ip("netns", "delete", network.name)  # its end of the pair goes with it, and ours with that

    async def change_address(self) -> None:
        """The device loses its address and gets another one, as in another Wi-Fi."""
        there = f"slt{os.getpid()}"[:15]
        await _ip("-n", self.name, "addr", "flush", "dev", there)
        self.last += 1
        self.theirs = f"{self.theirs.rsplit('.', 1)[0]}.{self.last}"
        await _ip("-n", self.name, "addr", "add", f"{self.theirs}/24", "dev", there)
        await _ip("-n", self.name, "route", "add", "default", "via", self.ours)
