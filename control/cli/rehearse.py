"""`sluice rehearse drain|exit|roll`: a private fleet of bots goes through it, and what they felt is reported."""

from __future__ import annotations

from cyclopts import App

from control.cli.output import out, print_json, step
from control.cli.report import report_table
from control.cli.scale_report import scale_report
from control.config import SMALL, TWELVE, Crowd, FleetSize
from control.core.rehearsal import Kind
from control.shell.rehearsal import rehearse
from control.shell.scale_rehearsal import rehearse_scale

app = App(
    name="rehearse",
    help="""Start a private fleet, fill it with talking bots, end SFUs under them, and report what they felt.

The exit status is 1 when anybody was cut: evicted, never told, left behind, a failed connection, or silence or a frozen
picture beyond the bounds (40 ms of audio, two frame times of video).

    sluice rehearse drain

    sluice rehearse roll --bots 24 --rooms 6 --json

    sluice rehearse exit --server /usr/bin/redis-server
""",
)


@app.command
async def drain(*, size: FleetSize = SMALL, crowd: Crowd = TWELVE, json: bool = False) -> int:
    """SIGTERM to the SFU with the most players: everybody moves, and it ends.

    Parameters
    ----------
    json
        Print the report as JSON.
    """
    return await _run(Kind.DRAIN, size, crowd, json=json)


@app.command(name="exit")
async def exit_(*, size: FleetSize = SMALL, crowd: Crowd = TWELVE, json: bool = False) -> int:
    """A forced exit of a cordoned SFU whose players stay: they are told, and are back elsewhere within 5 s.

    Parameters
    ----------
    json
        Print the report as JSON.
    """
    return await _run(Kind.EXIT, size, crowd, json=json)


@app.command
async def roll(*, size: FleetSize = SMALL, crowd: Crowd = TWELVE, json: bool = False) -> int:
    """Replace every SFU, one after another, the replacement first.

    Parameters
    ----------
    json
        Print the report as JSON.
    """
    return await _run(Kind.ROLL, size, crowd, json=json)


@app.command
async def scale(*, size: FleetSize = SMALL, tick_s: float = 1.0, seed: int = 1, json: bool = False) -> int:
    """Let the load grow until a node is launched, and shrink until one is drained and ended.

    Parameters
    ----------
    tick_s
        Seconds of the autoscaler's tick, which is 30 s in earnest; cooldown and streaks are compressed with it.
    seed
        Seed of everything that is drawn.
    json
        Print the report as JSON.
    """
    report = await rehearse_scale(size=size, tick_s=tick_s, seed=seed, say=step)
    if json:
        print_json(report)
    else:
        out.print(scale_report(report))
    return 0 if report.passed else 1


async def _run(kind: Kind, size: FleetSize, crowd: Crowd, *, json: bool) -> int:
    report = await rehearse(kind, size=size, crowd=crowd, say=step)
    if json:
        print_json(report)
    else:
        out.print(report_table(report))
    return 0 if report.passed else 1
