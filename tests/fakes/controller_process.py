"""A controller as a process, on a pool of files: `python -m tests.fakes.controller_process DIR REDIS FLEET ID`.

The pool's nodes are files in DIR/nodes; whatever it does is a line in DIR/journal, so that anything done twice is seen.
A call waits while DIR/hold-CALL-ID exists, and says so by DIR/held-CALL-ID: there a test can stop the process.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

from control.config import ControlConfig
from control.core.pool import Listing, NodePhase, PoolNode
from control.shell.program import load_settings, run_control
from shared.logs import setup


class FilePool:
    """Nodes are files named after them that hold the launch request."""

    name = "files"

    def __init__(self, place: Path, controller: str) -> None:
        self._place = place
        self._controller = controller

    async def list(self) -> Listing:
        await self._gate("list")
        files = sorted((self._place / "nodes").iterdir())
        nodes = [
            PoolNode(node=file.name, sfu=file.name, phase=NodePhase.RUNNING, request=file.read_text()) for file in files
        ]
        return Listing(nodes=tuple(nodes))

    async def launch(self, request: str) -> PoolNode:
        await self._gate("launch")
        name = f"sfu-{request}"
        file = self._place / "nodes" / name
        if not file.exists():
            file.write_text(request)
            self._write("launch", name)
        return PoolNode(node=name, sfu=name, phase=NodePhase.RUNNING, request=request)

    async def prefer_victim(self, node: str) -> None:
        await self._gate("prefer_victim")

    async def terminate(self, node: str) -> None:
        await self._gate("terminate")
        file = self._place / "nodes" / node
        if file.exists():
            file.unlink()
            self._write("terminate", node)

    async def close(self) -> None:
        return None

    async def _gate(self, call: str) -> None:
        hold = self._place / f"hold-{call}-{self._controller}"
        if hold.exists():
            (self._place / f"held-{call}-{self._controller}").touch()
        while hold.exists():  # noqa: ASYNC110 - another process can't set an event here
            await asyncio.sleep(0.02)

    def _write(self, what: str, node: str) -> None:
        with (self._place / "journal").open("a") as journal:
            journal.write(json.dumps({"what": what, "node": node, "by": self._controller}) + "\n")


def main() -> None:
    place, redis, fleet, controller = Path(sys.argv[1]), *sys.argv[2:5]
    setup("control", level="INFO")
    config = ControlConfig(controller=controller, http_port=0, redis=redis, fleet=fleet).check()
    settings = load_settings(place / "scaling.toml")
    raise SystemExit(asyncio.run(run_control(config, settings, FilePool(place, controller))))


if __name__ == "__main__":
    main()
