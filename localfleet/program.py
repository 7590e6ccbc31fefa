"""One program of ours as a child: how it is started, and how we know that it is ready."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import aiohttp

from localfleet.errors import FleetFailed
from shared.host.child import Child
from shared.host.ports import is_free
from shared.http_client import get_json

MISUSED = 2
"""Exit status of all programs of ours when a setting can't be used."""
READY_WITHIN_S = 60.0
"""From start to `/readyz`. Importing aiortc alone takes seconds on a busy two-core machine."""


@dataclass(slots=True)
class Program:
    """A running router or SFU and the addresses it was given."""

    name: str
    child: Child
    http: str
    ws: str
    """The address that others are told."""
    ports: tuple[int, ...] = ()
    """All ports that it was told to listen on, that of its websockets first."""
    host: str = "127.0.0.1"
    """The address of these."""

    async def wait_ready(self, session: aiohttp.ClientSession, *, within_s: float = READY_WITHIN_S) -> None:
        """Wait for 200 from its own `/readyz`. Raises `FleetFailed`, with the log's end, when it ends or time is over.

        Another program's answer does not count: its port may have been free when it was chosen and taken since.
        """
        deadline = time.monotonic() + within_s
        while True:
            if not self.child.running:
                raise ended_early(self.child)
            answer = await get_json(session, f"{self.http}/readyz")
            if isinstance(answer, dict) and answer.get("pid") == self.child.pid:
                return
            stranger = "" if answer is None else f"; another program answers at {self.http}"
            if time.monotonic() > deadline:
                detail = f"is not ready after {within_s:.0f} s{stranger}"
                raise FleetFailed(program=self.name, detail=detail, log=self.child.tail())
            await asyncio.sleep(0.05)

    def lost_ports(self) -> list[int]:
        """The ports that another program holds now that this one has ended; empty while it runs."""
        return [] if self.child.running else [port for port in self.ports if not is_free(port, host=self.host)]


def ended_early(child: Child) -> FleetFailed:
    """The error about a program that did not come up; its log says why."""
    detail = f"ended with status {child.exit_code} while starting"
    if child.exit_code == MISUSED:
        detail += ", a setting that can't be used: its own message is above; is there a SLUICE_… for it?"
    return FleetFailed(program=child.name, detail=detail, log=child.tail())


def flags(**values: object) -> list[str]:
    """`ws_port=1` as `--ws-port 1`; True as a bare flag, False as its `--no-` form, None left out."""
    parts: list[str] = []
    for name, value in values.items():
        flag = name.replace("_", "-")
        if value is None:
            continue
        if isinstance(value, bool):
            parts.append(f"--{flag}" if value else f"--no-{flag}")
        elif isinstance(value, list | tuple):
            parts += [part for each in value for part in (f"--{flag}", str(each))]
        else:
            parts += [f"--{flag}", str(value)]
    return parts
