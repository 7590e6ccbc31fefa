"""`sluice status`: the fleet as it is in Redis."""

from __future__ import annotations

import asyncio

from rich.live import Live

from cli.output import out, print_json
from cli.tables import fleet_table
from operators.config import HERE, Where
from operators.shell.operations import open_store, view
from operators.shell.target import find_target

REDRAW_S = 1.0


async def status(*, where: Where = HERE, json: bool = False, watch: bool = False) -> None:
    """Show SFUs with their status, load and drain, and routers with their players.

    To look once, or to keep looking:

        sluice status

        sluice status --watch

        sluice status --redis redis://10.0.0.5:6379/0 --json

    Parameters
    ----------
    json
        Print one JSON document; with `--watch` one per second.
    watch
        Go on until Ctrl-C.
    """
    target = find_target(where)
    async with open_store(target) as store:
        if not watch:
            now = await view(store, target.fleet)
            print_json(now) if json else out.print(fleet_table(now))
            return
        if json:
            while True:
                print_json(await view(store, target.fleet))
                await asyncio.sleep(REDRAW_S)
        with Live(console=out, auto_refresh=False) as live:
            while True:
                live.update(fleet_table(await view(store, target.fleet)), refresh=True)
                await asyncio.sleep(REDRAW_S)
