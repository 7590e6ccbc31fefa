"""Real WebRTC stacks as programs of their own: what is installed of them, and how one tells them what to do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Self

HERE = Path(__file__).parent
PEERS = Path(os.environ.get("SLUICE_PEERS") or HERE.parents[1] / ".peers")
"""Where `scripts/install-peers.sh` puts npm's packages."""

SYSTEM_PYTHON = "/usr/bin/python3"
"""The one that Debian's bindings of GStreamer are for."""

LINE_LIMIT = 1 << 20
ANSWER_WITHIN_S = 30.0


@dataclass(frozen=True)
class Stack:
    """A WebRTC implementation: `command` runs its peer program."""

    name: str
    command: tuple[str, ...]


WRTC = Stack("wrtc", ("node", str(HERE / "wrtc_peer.mjs")))
GSTREAMER = Stack("gstreamer", (SYSTEM_PYTHON, str(HERE / "gst_peer.py")))


@cache
def lacking(stack: Stack) -> str:
    """What is not installed of a stack; empty when it can run."""
    if shutil.which(stack.command[0]) is None:
        return stack.command[0]
    if stack is WRTC:
        return "" if (PEERS / "node_modules/@roamhq/wrtc").is_dir() else "@roamhq/wrtc"
    probe = subprocess.run([*stack.command, "--probe"], capture_output=True, text=True, check=False, timeout=60)
    return "" if probe.returncode == 0 else f"a usable GStreamer ({probe.stderr.strip().splitlines()[-1:]})"


class PeerProcess:
    """A running peer program: `await PeerProcess.start(stack)`, then `ask`."""

    def __init__(self, stack: Stack, process: asyncio.subprocess.Process) -> None:
        self.stack = stack
        self._process = process

    @classmethod
    async def start(cls, stack: Stack) -> Self:
        process = await asyncio.create_subprocess_exec(
            *stack.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "SLUICE_PEERS": str(PEERS.resolve())},
            limit=LINE_LIMIT,
        )
        return cls(stack, process)

    async def ask(self, cmd: str, **facts: object) -> dict[str, Any]:
        """The program's answer to one command; `AssertionError` when it fails at it or ends."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"cmd": cmd, **facts}).encode() + b"\n")
        async with asyncio.timeout(ANSWER_WITHIN_S):
            line = await self._process.stdout.readline()
        assert line, f"{self.stack.name} ended at {cmd} with status {await self._process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        assert "error" not in answer, f"{self.stack.name} at {cmd}: {answer['error']}"
        return answer

    async def close(self) -> None:
        """End it, by force when it does not end when asked."""
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            try:
                await asyncio.wait_for(self._process.wait(), 5.0)
            except TimeoutError:
                self._process.kill()
        await self._process.wait()
