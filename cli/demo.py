"""`sluice demo fleet`: a fleet of simulated SFUs to look at the fleet page with."""

from __future__ import annotations

import asyncio

from cyclopts import App

from cli.output import out, step
from cli.up import stop_signals
from rehearse.shell.demo.fleet import demo
from shared.errors import BadSetting
from shared.host.ports import check_port

MAX_SFUS = 2000
app = App(
    name="demo",
    help="""Look at things without a fleet of one's own.

    sluice demo fleet

    sluice demo fleet --sfus 300 --players 200
""",
)


@app.command
async def fleet(*, sfus: int = 300, players: int = 120, port: int = 7080, seed: int = 1) -> None:
    """Run simulated SFUs on a real router: loads that move, a rollout that drains, silent nodes, players who stay.

    The page, its API and its commands are the real ones; nothing carries media. Ctrl-C ends it.

    Parameters
    ----------
    sfus
        Simulated SFUs.
    players
        Players without media, who join rooms, leave, and say why they stay.
    port
        Port of the page; 0: any free one.
    seed
        Seed of everything that is drawn.
    """
    check_port(port)
    if not 1 <= sfus <= MAX_SFUS or players < 0:
        raise BadSetting(setting="demo fleet", detail=f"needs 1 to {MAX_SFUS} SFUs and no negative number of players")
    with stop_signals() as stop:
        async with demo(sfus=sfus, players=players, port=port, seed=seed, say=step) as running:
            out.print(f"page   [bold]{running.page}[/bold]\ntoken  {running.token}\nend    Ctrl-C", soft_wrap=True)
            stopped = asyncio.create_task(stop.wait())
            await asyncio.wait({stopped, running.task}, return_when=asyncio.FIRST_COMPLETED)
            stopped.cancel()
            if running.task.done():
                running.task.result()
