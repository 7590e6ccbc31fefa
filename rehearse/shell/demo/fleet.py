"""The demo fleet's shell: a real router on a real Redis server with simulated SFUs, for looking at the fleet page.

The page, the API, the commands and the placements are the real ones; only the SFUs and their load are made up.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from control.core.scaling_settings import ScalingSettings
from control.shell.controller import Controller
from rehearse.core.demo.fleet import DemoFleet, DemoStep
from rehearse.shell.demo.players import DemoPlayers
from rehearse.shell.demo.pool import DemoPool
from router.config import RouterConfig
from router.shell.router import Router
from shared.embedded import EmbeddedRedis
from shared.errors import BadSetting, StoreUnavailable
from shared.records import SfuState
from shared.store.store import Store
from shared.tokens import OperatorClaims, issue

STEP_S = 2.0
"""Between two reports of an SFU; real ones report each second, and routers wait for five."""
AT_ONCE = 8
"""Writes to Redis under way at the same time."""
TOKEN_TTL_S = 86_400.0
FLEET = "demo"
TICK_S, COOLDOWN_S = 3.0, 30.0
"""The autoscaler's, a tenth of the defaults, so that a viewer sees it change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A demo fleet that runs."""

    page: str
    token: str
    """An operator's token for the page."""
    redis: str
    name: str
    """Where its records are: URL of the Redis server, and the fleet's name there."""
    fleet: DemoFleet
    router: Router
    task: asyncio.Task[None]
    """Ends only when something breaks."""


@asynccontextmanager
async def demo(
    *, sfus: int, players: int, port: int, seed: int, api_open: bool = True, say: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Demo]:
    """A demo fleet, ended with everything it started. Raises `EmbeddedFailed`, or `BadSetting` for a taken port."""
    secret = secrets.token_hex(32)
    rng = random.Random(seed)
    server = EmbeddedRedis()
    await server.start()
    try:
        say(f"Redis on port {server.port}")
        config = RouterConfig(
            router="router-1", ws_port=0, http_port=port, redis=server.url, fleet=FLEET, secret=secret, version="demo",
            api_open=api_open,
        ).check()  # fmt: skip
        store = Store(server.url, fleet=FLEET)
        fleet = DemoFleet(sfus=sfus, rng=rng, now=time.monotonic(), epoch=int(time.time()))
        router = Router(config, Store(server.url, fleet=FLEET), rng=rng)
        await _start(router, port=port)
        crowd = DemoPlayers(ws=router.state.announced_ws, secret=secret, players=players, rng=rng)
        controller = Controller(
            "control-1", _settings(sfus), store=Store(server.url, fleet=FLEET), pool=DemoPool(fleet)
        )
        task = asyncio.create_task(_live(fleet, store, router, crowd, controller))
        token = issue(OperatorClaims(operator="demo"), secret=secret, now_at=time.time(), ttl_s=TOKEN_TTL_S)
        page = f"{router.state.announced_http}/fleet.html"
        try:
            yield Demo(page=page, token=token, redis=server.url, name=FLEET, fleet=fleet, router=router, task=task)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await controller.stop()
            await router.stop()
            await store.close()
    finally:
        await server.stop()


async def _start(router: Router, *, port: int) -> None:
    try:
        await router.start()
    except OSError as error:
        await router.stop()
        if error.errno not in (errno.EADDRINUSE, errno.EACCES):
            raise
        why = "is taken" if error.errno == errno.EADDRINUSE else "is for the system's own programs"
        raise BadSetting(setting="--port", detail=f"{port} {why}; give another one, or 0 for any free one") from None


def _settings(sfus: int) -> ScalingSettings:
    return ScalingSettings(
        tick_s=TICK_S, cooldown_s=COOLDOWN_S, min_nodes=max(1, sfus - sfus // 20), max_nodes=sfus + max(2, sfus // 20)
    )


async def _live(fleet: DemoFleet, store: Store, router: Router, crowd: DemoPlayers, controller: Controller) -> None:
    async with asyncio.TaskGroup() as group:
        group.create_task(crowd.run())
        group.create_task(controller.run())
        while True:
            began = time.monotonic()
            try:
                commands = await store.read_commands(list(fleet.sfus))
                await _write(store, fleet.step(now=time.monotonic(), commands=commands, occupied=_homes(router)))
            except StoreUnavailable:
                pass  # the page says so, which is worth looking at too
            await asyncio.sleep(max(0.1, began + STEP_S - time.monotonic()))


def _homes(router: Router) -> set[str]:
    """SFUs that a session of the router lives on."""
    return {record.sfu for room in router.state.rooms for record in room.players.values() if record.sfu}


async def _write(store: Store, step: DemoStep) -> None:
    gate = asyncio.Semaphore(AT_ONCE)

    async def put(state: SfuState) -> None:
        async with gate:
            with contextlib.suppress(StoreUnavailable):  # one report lost, as on any network
                await store.put_sfu(state)

    await asyncio.gather(*(put(state) for state in step.states))
    for sfu in step.gone:
        await store.remove_sfu(sfu.sfu, sfu.incarnation)
        if sfu.report is not None:
            await store.push_drain_report(sfu.report)
