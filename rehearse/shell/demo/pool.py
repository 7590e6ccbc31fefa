"""The demo fleet as a pool, so that the real autoscaler can work on it."""

from __future__ import annotations

import time

from control.core.pool import Listing, NodePhase, PoolNode
from rehearse.core.demo.fleet import DemoFleet
from shared.records import SfuStatus


class DemoPool:
    """Nodes are the simulated SFUs, by their ids. See `control.core.pool.Pool`."""

    name = "demo"

    def __init__(self, fleet: DemoFleet) -> None:
        self._fleet = fleet
        self._launched: dict[str, str] = {}
        """Request -> SFU."""

    async def list(self) -> Listing:
        """Every simulated SFU."""
        requests = {sfu: request for request, sfu in self._launched.items()}
        return Listing(
            nodes=tuple(
                PoolNode(
                    node=sfu.sfu,
                    sfu=sfu.sfu,
                    phase=NodePhase.ENDING if sfu.machine.status is SfuStatus.TERMINATING else NodePhase.RUNNING,
                    request=requests.get(sfu.sfu, ""),
                )
                for sfu in self._fleet.sfus.values()
            )
        )

    async def launch(self, request: str) -> PoolNode:
        """The SFU of this request, simulated from now on."""
        if request not in self._launched:
            self._launched[request] = self._fleet.launch(now=time.monotonic()).sfu
        sfu = self._launched[request]
        return PoolNode(node=sfu, sfu=sfu, phase=NodePhase.RUNNING, request=request)

    async def prefer_victim(self, node: str) -> None:
        """Nothing: nothing else takes nodes from here."""

    async def terminate(self, node: str) -> None:
        """End it."""
        self._fleet.end(node, now=time.monotonic())

    async def close(self) -> None:
        """Nothing is open."""
