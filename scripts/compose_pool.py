"""Tests on a real Docker engine what an autoscaler asks of a pool of containers: launch, list, end, clean up.

The routers are those of a composed fleet. Used by `scripts/test-compose.sh`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace

import aiohttp

from cli.output import step
from control.core.pool import NodePhase, PoolNode
from control.core.pool_settings import DockerPoolSettings
from control.errors import PoolError
from control.shell.pools.docker import DockerPool
from localfleet.errors import FleetFailed
from scripts.compose_drain import ROUTERS, docker
from shared.errors import SluiceError
from shared.http_client import get_json

WITHIN_S = 60.0


async def until(holds: Callable[[], Awaitable[bool]], what: str) -> None:
    """Raises `FleetFailed` when it does not happen in time."""
    give_up = time.monotonic() + WITHIN_S
    while not await holds():
        if time.monotonic() > give_up:
            raise FleetFailed(program="the Docker pool", detail=f"{what}: not within {WITHIN_S:.0f} s")
        await asyncio.sleep(0.2)
    step(what)


def demand(holds: bool, what: str) -> None:
    """Raises `FleetFailed` unless it holds."""
    if not holds:
        raise FleetFailed(program="the Docker pool", detail=f"not so: {what}")
    step(what)


async def run(project: str, image: str, secret: str) -> None:
    """The whole test; raises an error when something goes wrong."""
    settings = DockerPoolSettings(
        name="sfu",
        image=image,
        network=f"{project}_default",
        routers=("ws://router-1:7000", "ws://router-2:7000"),
        stop_grace_s=30.0,
    )
    environ = {**os.environ, "SLUICE_SECRET": secret}
    pool = DockerPool(settings, fleet=f"t{secrets.token_hex(4)}", environ=environ)
    async with aiohttp.ClientSession() as session:

        async def placeable(sfu: str) -> bool:
            answers = [await get_json(session, f"{url}/api/sfus") for url in ROUTERS.values()]
            return all(
                any(row["sfu"] == sfu and row["placeable"] for row in (answer or {}).get("sfus", []))
                for answer in answers
            )

        async def nodes() -> tuple[PoolNode, ...]:
            return (await pool.list()).nodes

        async def phase(name: str, wanted: NodePhase | None) -> bool:
            return next((each.phase for each in await nodes() if each.node == name), None) is wanted

        try:
            demand(await nodes() == (), "the pool is empty, whatever else Docker runs")
            first = await pool.launch("first")
            again = await pool.launch("first")
            demand(
                first.node == again.node and len(await nodes()) == 1, "a launch that is repeated makes no second node"
            )
            await until(lambda: placeable(first.sfu), f"{first.sfu} proved itself, and both routers place on it")
            await pool.terminate(first.node)
            await pool.terminate(first.node)
            await until(
                lambda: phase(first.node, None), "told to end, it drained, exited with status 0 and was removed"
            )

            crashed = await pool.launch("crashed")
            await until(lambda: phase(crashed.node, NodePhase.RUNNING), "another one runs")
            await docker("kill", "--signal", "KILL", await named(crashed.node))
            await until(lambda: phase(crashed.node, NodePhase.FAILED), "killed, it is listed as failed")
            await pool.terminate(crashed.node)
            await until(lambda: phase(crashed.node, None), "and gone when that is tidied up")
        finally:
            for left in await nodes():
                await docker("rm", "-f", await named(left.node))
            await pool.close()
    await refused(settings, environ)


async def named(node: str) -> str:
    """Id of a node's container."""
    return await docker("ps", "-aq", "--filter", f"label=io.sluice.node={node}")


async def refused(settings: DockerPoolSettings, environ: dict[str, str]) -> None:
    """Impossible requests are errors."""
    await fails(
        "an image that is not there",
        replace(settings, image="sluice:there-is-none"),
        environ,
        lambda it: it.launch("x"),
    )
    await fails(
        "an engine that is away", replace(settings, docker="unix:///nowhere.sock"), environ, lambda it: it.list()
    )


async def fails(
    what: str, settings: DockerPoolSettings, environ: dict[str, str], call: Callable[[DockerPool], Awaitable[object]]
) -> None:
    """Raises `FleetFailed` unless the call raises `PoolError`."""
    pool = DockerPool(settings, fleet="none", environ=environ)
    try:
        await call(pool)
    except PoolError as error:
        step(f"{what}: {error}")
    else:
        raise FleetFailed(program="the Docker pool", detail=f"{what} did not show")
    finally:
        await pool.close()


def main() -> int:
    """The script."""
    parser = argparse.ArgumentParser()
    for name in ("project", "image", "secret"):
        parser.add_argument(f"--{name}", required=True)
    given = parser.parse_args()
    try:
        asyncio.run(run(given.project, given.image, given.secret))
    except SluiceError as error:
        print(f"test-compose: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
