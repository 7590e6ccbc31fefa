"""`sluice router`: reads the settings, opens the store, runs the router."""

from __future__ import annotations

import random

import uvloop
from cyclopts import App
from cyclopts.config import Env

from router.config import RouterConfig
from router.shell.router import run_router
from shared.errors import BadSetting, SluiceError
from shared.host.files import allow_open_files
from shared.host.secret_files import with_files_read
from shared.logs import setup
from shared.store.store import Store

_DEFAULT = RouterConfig()


def router_command(config: RouterConfig = _DEFAULT) -> None:
    """Hold players and SFU links, decide who uses which SFU, keep SFU state in step through Redis.

    Runs until SIGTERM or SIGINT, then asks its players to reconnect elsewhere and ends with status 0.
    """
    log = setup("router", level=config.log_level)
    try:
        config = with_files_read(config)
        allow_open_files(log, tag="router", most=config.max_players)
        status = uvloop.run(_run(config.check()))
    except (SluiceError, OSError) as error:
        log.error("[router] %s", error)
        raise SystemExit(2 if isinstance(error, BadSetting) else 1) from None
    raise SystemExit(status)


app = App(name="router", help="A router of a Sluice fleet.", version_flags=(), config=Env("SLUICE_", command=False))
app.default(router_command)


async def _run(config: RouterConfig) -> int:
    return await run_router(config, Store(config.redis, fleet=config.fleet), rng=random.Random())
