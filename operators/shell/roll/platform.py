"""What starts and stops SFUs and routers for a roll: a local fleet's door, or commands."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from typing import Protocol

import aiohttp

from shared.errors import Refused
from shared.roll_records import RollRecord

HOOK_WITHIN_S = 900.0
"""An image may have to be pulled first."""
DOOR_WITHIN_S = 120.0
TAIL = 400
"""Characters of a failed command's output that the pause shows at most."""
TAIL_LINES = 3


class RollPlatform(Protocol):
    """Every method may be called twice for the same thing, and raises `Refused` with the reason."""

    async def start(self, sfu: str, version: str) -> None:
        """Start an SFU with this id and label, unless it runs."""

    async def stop(self, sfu: str) -> None:
        """Clear away what is left of an SFU that has ended."""

    async def restart(self, router: str, version: str) -> None:
        """End a router and start it again."""


class DoorPlatform:
    """The fleet that `sluice up` runs here, asked through its door."""

    def __init__(self, door: str) -> None:
        self._door = door

    async def start(self, sfu: str, version: str) -> None:
        await ask_door(self._door, "sfus", sfu=sfu, version=version)

    async def stop(self, sfu: str) -> None:
        """Its process has ended, and nothing is left of it."""

    async def restart(self, router: str, version: str) -> None:
        await ask_door(self._door, "routers", router=router)


class HookPlatform:
    """Commands of an operator's own."""

    def __init__(self, plan: RollRecord) -> None:
        self._plan = plan

    async def start(self, sfu: str, version: str) -> None:
        await run_hook(self._plan.start, {"SLUICE_ROLL_SFU": sfu, "SLUICE_ROLL_VERSION": version})

    async def stop(self, sfu: str) -> None:
        if self._plan.stop:
            await run_hook(self._plan.stop, {"SLUICE_ROLL_SFU": sfu, "SLUICE_ROLL_VERSION": self._plan.version})

    async def restart(self, router: str, version: str) -> None:
        await run_hook(self._plan.restart, {"SLUICE_ROLL_ROUTER": router, "SLUICE_ROLL_VERSION": version})


async def ask_door(door: str, what: str, **facts: str) -> dict[str, str]:
    """Ask a running `sluice up`. Raises `Refused` with its words, or when it does not answer."""
    limit = aiohttp.ClientTimeout(total=DOOR_WITHIN_S)
    try:
        async with (
            aiohttp.ClientSession(connector=aiohttp.UnixConnector(path=door), timeout=limit) as session,
            session.post(f"http://door/{what}", json=facts) as response,
        ):
            answer = await response.json()
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
        raise Refused("no-door", f"'sluice up' does not answer at {door}: {error}") from None
    if response.status != 200:
        raise Refused("door-refused", str(answer.get("error", response.status)))
    return {str(name): str(value) for name, value in answer.items()}


async def run_hook(command: str, facts: Mapping[str, str]) -> None:
    """Run a shell command with these variables. Raises `Refused` with the end of its output unless its status is 0."""
    process = await asyncio.create_subprocess_shell(
        command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **facts},
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(HOOK_WITHIN_S):
            said = await _tail(process)
            status = await process.wait()
    except TimeoutError:
        raise Refused("hook-slow", f"{command!r} still ran after {HOOK_WITHIN_S:.0f} s and was ended") from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    if status:
        last = " / ".join(said.strip().splitlines()[-TAIL_LINES:])
        raise Refused("hook-failed", f"{command!r} ended with status {status}: {last or 'it said nothing'}")


async def _tail(process: asyncio.subprocess.Process) -> str:
    """The end of what it says; it may say any amount."""
    assert process.stdout is not None
    kept = b""
    while chunk := await process.stdout.read(4096):
        kept = (kept + chunk)[-TAIL:]
    return kept.decode(errors="replace")
