"""`sluice control` as a program: a controller with its HTTP port, until SIGTERM."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from control.config import ControlConfig
from control.core.pool import Pool
from control.core.pool_settings import MadePool, read_pool
from control.core.scaling_settings import ScalingSettings, read_settings
from control.shell.controller import Controller
from control.shell.pools import make_pool
from shared.errors import BadSetting
from shared.http import make_app, serve
from shared.logs import fields
from shared.store.store import Store

MAX_SETTINGS = 256 * 1024
"""Longest settings file [bytes]."""
log = logging.getLogger("control")


def load_settings(path: Path) -> ScalingSettings:
    """The settings in a file. Raises `BadSetting`, which names file, line and key."""
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_SETTINGS + 1)
        if len(raw) > MAX_SETTINGS:
            raise BadSetting(setting=str(path), detail=f"is longer than {MAX_SETTINGS // 1024} KiB")
        return read_settings(raw.decode(), name=str(path))
    except OSError as error:
        raise BadSetting(setting=str(path), detail=f"can't be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise BadSetting(setting=str(path), detail=f"is not UTF-8 text: {error.reason}") from None


def open_pool(settings: ScalingSettings, *, fleet: str, environ: Mapping[str, str]) -> Pool:
    """The pool that the settings describe. Raises `BadSetting`; nothing is connected yet.

    Ceilings in the file are given to the nodes that are made as well, so that routers, pages and the controller mean
    the same by a node's load.
    """
    pool = read_pool(settings.pool)
    if isinstance(pool, MadePool):
        given = {name: getattr(settings, name) for name in ("egress_ceiling_mbps", "stream_ceiling", "cpu_guard")}
        ours = {f"SLUICE_{name.upper()}": str(value) for name, value in given.items() if value is not None}
        pool = replace(pool, env={**ours, **pool.env})
    return make_pool(pool, fleet=fleet, environ=environ)


async def run_control(config: ControlConfig, settings: ScalingSettings, pool: Pool, *, dry_run: bool = False) -> int:
    """Run until SIGTERM or SIGINT, give up the lease, and return the exit status. Raises `OSError` for a taken port."""
    store = Store(config.redis, fleet=config.fleet)
    controller = Controller(config.controller, settings, store=store, pool=pool, dry_run=dry_run)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    # Alive and ready whatever Redis does: ending a controller because Redis is away does not help (invariant 3).
    http = await serve(
        make_app(ready=lambda: True, registry=controller.metrics.registry),
        host=config.host,
        port=config.http_port,
        metrics=controller.metrics.front,
        front=config.front,
    )
    url = f"{config.front.scheme('http')}://{config.host}:{http.port}"
    print(json.dumps({"controller": config.controller, "http": url}), file=sys.stdout, flush=True)
    log.info("[scale] up %s", fields(controller=config.controller, pool=pool.name, http=url, dry_run=dry_run))
    try:
        async with asyncio.TaskGroup() as group:
            running = group.create_task(controller.run())
            await stop.wait()
            running.cancel()
    finally:
        await controller.stop()
        await http.cleanup()
    log.info("[scale] closed %s", fields(controller=config.controller))
    return 0
