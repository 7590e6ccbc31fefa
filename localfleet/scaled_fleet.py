"""A local fleet whose SFUs belong to a process pool: its first nodes, its controller, and the end of both."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from control.core.pool import NodePhase
from control.core.pool_settings import ProcessPoolSettings, read_pool
from control.core.scaling_settings import ScalingSettings
from control.shell.pools.process import ProcessPool
from control.shell.program import load_settings, open_pool
from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet
from localfleet.program import READY_WITHIN_S, ended_early
from shared.errors import BadSetting
from shared.host.child import Child, python

LOOK_EVERY_S = 0.1
LOOK_AT_POOL_EVERY_S = 1.0
"""It looks at all processes of the machine."""


def local_settings(path: Path) -> ScalingSettings:
    """The settings, which must be for a process pool: a local fleet has no other. Raises `BadSetting`."""
    settings = load_settings(path)
    if not isinstance(read_pool(settings.pool), ProcessPoolSettings):
        raise BadSetting(setting="--scaling", detail="a fleet on this machine needs a pool of kind 'process'")
    return settings


class ScaledFleet:
    """The pool and the controller of a running fleet without SFUs of its own; use it as an async context manager.

    Nodes outlive their controller, as in production, but not the fleet: they are killed when it ends, and those of an
    earlier run that could not do so before this one begins.
    """

    def __init__(self, fleet: Fleet, scaling: Path, *, nodes: int) -> None:
        self._fleet = fleet
        self._scaling = scaling.resolve()
        self._nodes = nodes
        self._env = {
            "SLUICE_ROUTERS": " ".join(fleet.router_urls()),
            "SLUICE_REDIS": fleet.redis_url,
            "SLUICE_FLEET": fleet.spec.fleet,
        }
        environ = {**fleet.environment(), **self._env}
        pool = open_pool(local_settings(self._scaling), fleet=fleet.spec.fleet, environ=environ)
        assert isinstance(pool, ProcessPool)
        self._pool = pool

    @property
    def pool(self) -> ProcessPool:
        """Where the nodes are."""
        return self._pool

    async def __aenter__(self) -> Self:
        await self._pool.end_all()
        try:
            await self._start()
        except BaseException:
            await self._pool.end_all()
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._fleet.others["control"].stop(within_s=5.0)
        await self._pool.end_all()

    async def _start(self) -> None:
        first = [await self._pool.launch(f"up-{number}") for number in range(self._nodes)]
        await self._placeable({node.sfu for node in first})
        self._fleet.say(f"{len(first)} SFUs of pool {self._pool.name} ready")
        command = python("cli", "control", "--scaling", str(self._scaling), "--http-port", "0")
        await _up(await self._fleet.start_other("control", command, env=self._env))
        self._fleet.say(f"scaling by {self._scaling}")

    async def _placeable(self, sfus: set[str]) -> None:
        """Wait until the first nodes take players. Raises `FleetFailed`."""
        deadline = time.monotonic() + READY_WITHIN_S
        look_at_pool = 0.0
        while True:
            if time.monotonic() > look_at_pool:
                await self._check_pool()
                look_at_pool = time.monotonic() + LOOK_AT_POOL_EVERY_S
            states = await self._fleet.sfu_states() or {}
            missing = {sfu for sfu in sfus if not states.get(sfu, {}).get("placeable", False)}
            if not missing:
                return
            if time.monotonic() > deadline:
                raise FleetFailed(program=", ".join(sorted(missing)), detail=f"not placeable in {READY_WITHIN_S:.0f} s")
            await asyncio.sleep(LOOK_EVERY_S)

    async def _check_pool(self) -> None:
        for node in (await self._pool.list()).nodes:
            if node.phase is NodePhase.FAILED:
                detail = f"{node.detail.partition(':')[0]} while starting: its own message is above"
                raise FleetFailed(program=node.node, detail=detail, log=self._pool.last_lines(node.node))


async def _up(control: Child) -> None:
    """Wait until the controller has said where it is. Raises `FleetFailed`."""
    deadline = time.monotonic() + READY_WITHIN_S
    while '"controller"' not in control.tail():
        if not control.running:
            raise ended_early(control)
        if time.monotonic() > deadline:
            raise FleetFailed(
                program=control.name, detail=f"is not up after {READY_WITHIN_S:.0f} s", log=control.tail()
            )
        await asyncio.sleep(LOOK_EVERY_S)
