"""A network of a test's own: a namespace, joined to this machine by a pair of interfaces; it is gone afterwards."""

from __future__ import annotations

import asyncio
import ctypes
import os
import shutil
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.fakes.needed import need_installed

CLONE_NEWNET = 0x4000_0000
"""Of linux/sched.h."""
_LIBC = ctypes.CDLL(None, use_errno=True)


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
        ready = shutil.which("ip") and os.geteuid() == 0
        need_installed(ready, "ip, and root for networks", "apt-get install iproute2, as root", also_in_ci=False)
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
            try:
                yield network
            finally:
                await _ip("link", "delete", here)  # at once; the namespace goes with the last process in it
        finally:
            await _ip("netns", "delete", network.name)

    def command(self, *command: str) -> tuple[str, ...]:
        """This command, run in the network."""
        return ("ip", "netns", "exec", self.name, *command)

    async def connected(self, port: int) -> socket.socket:
        """A TCP connection to this port of the network's own loopback."""
        sock: asyncio.Future[socket.socket] = asyncio.get_running_loop().create_future()

        def connect() -> None:  # in a thread of its own, which is in that network until it ends
            with Path("/run/netns", self.name).open() as namespace:
                if _LIBC.setns(namespace.fileno(), CLONE_NEWNET):
                    raise OSError(ctypes.get_errno(), f"setns {self.name}")
            found = socket.create_connection(("127.0.0.1", port))
            sock.get_loop().call_soon_threadsafe(sock.set_result, found)

        threading.Thread(target=connect, daemon=True).start()
        async with asyncio.timeout(10):
            return await sock

    async def change_address(self) -> None:
        """The device loses its address and gets another one, as in another Wi-Fi."""
        there = f"slt{os.getpid()}"[:15]
        await _ip("-n", self.name, "addr", "flush", "dev", there)
        self.last += 1
        self.theirs = f"{self.theirs.rsplit('.', 1)[0]}.{self.last}"
        await _ip("-n", self.name, "addr", "add", f"{self.theirs}/24", "dev", there)
        await _ip("-n", self.name, "route", "add", "default", "via", self.ours)
