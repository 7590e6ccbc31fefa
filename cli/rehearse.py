"""`sluice rehearse`: a private fleet of bots goes through drains, exits, rolls, scaling or chaos, and reports it."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from bench.plot import check_plot, draw
from cli.chaos_report import chaos_report
from cli.output import AsJson, out, print_json, step
from cli.report import report_table
from cli.scale_plot import plot_scale
from cli.scale_report import scale_report
from cli.sigterm import ended_by_sigterm
from localfleet.config import SMALL, FleetSize
from rehearse.config import EIGHT, TEN_MINUTES, TWELVE, UNDISTURBED, ChaosCrowd, ChaosTime, CrowdSize, RollRehearsed
from rehearse.core.rehearsal import RehearsalKind, advice
from rehearse.shell.chaos.rehearsal import rehearse_chaos
from rehearse.shell.rehearsal import rehearse
from rehearse.shell.scale.rehearsal import rehearse_scale

INTERRUPTED = 130
"""As a shell says it of a program that SIGINT ended."""

app = App(
    name="rehearse",
    help="""Start a private fleet, fill it with talking bots, end SFUs under them, and report what they saw and heard.

The exit status is 1 when a bot was cut: evicted, never told, left behind, a failed connection, or silence or a frozen
picture beyond the bounds (40 ms of audio, two frame times of video).

    sluice rehearse drain

    sluice rehearse roll --bots 24 --rooms 6 --json

    sluice rehearse exit --server /usr/bin/redis-server

`scale` lets an autoscaler add an SFU and take one out, and checks every step. `chaos` kills, pauses and cuts off
whatever there is, for minutes or hours, and checks that no bot hears what it need not hear.
""",
)


@app.command
async def drain(*, size: FleetSize = SMALL, crowd: CrowdSize = TWELVE, json: AsJson = False) -> int:
    """SIGTERM to the SFU with the most players: all of them move, and it ends."""
    return await _run(RehearsalKind.DRAIN, size, crowd, json=json)


@app.command(name="exit")
async def exit_(*, size: FleetSize = SMALL, crowd: CrowdSize = TWELVE, json: AsJson = False) -> int:
    """A forced exit of a cordoned SFU whose players stay: they are told, and are back elsewhere within 5 s."""
    return await _run(RehearsalKind.EXIT, size, crowd, json=json)


@app.command
async def roll(
    *,
    size: FleetSize = SMALL,
    crowd: CrowdSize = TWELVE,
    settings: RollRehearsed = UNDISTURBED,
    json: AsJson = False,
) -> int:
    """Let `sluice roll` replace every SFU and start every router again, and check that nobody is cut.

    No player may move more than twice. With `--kills` the command is killed in the middle and given again:

        sluice rehearse roll --sfus 5 --bots 30 --rooms 8 --kills 2
    """
    return await _run(RehearsalKind.ROLL, size, crowd, json=json, roll=settings)


@app.command
async def scale(
    *,
    size: FleetSize = SMALL,
    tick_s: float = 1.0,
    seed: int = 1,
    plot: Path | None = None,
    json: AsJson = False,
) -> int:
    """Let the load grow until a node is launched, and shrink until one is drained and ended. Takes about a minute.

    A private fleet of `--sfus` SFUs in a pool of processes, scaled by a controller with its usual rules (hot in 4 of 5
    ticks, quiet in 20), but with ticks of a second and a ceiling of 16 forwarded streams per node:

    1. A pair of bots opens a room on each node: a quarter of its ceiling.

    2. A third one joins each room: three quarters, which is hot. After 4 hot ticks a node is launched; it comes up,
       proves itself, becomes capacity and gets its first room.

    3. The third bots leave. After 20 quiet ticks the node with the fewest streams is cordoned. One of its bots moves,
       the other is in a conversation and stays; new players are placed elsewhere.

    4. The conversation ends, the last player moves, and the node, which sends nothing any more, is ended.

    The exit status is 1 when one of these does not hold: the log lines and the audit in this order, no failed
    connection, no player cut, no gap beyond the bounds, nothing sent at the end. The ticks are also decided again by
    their CPU column alone, which must change nothing: CPU is not what runs out.

        sluice rehearse scale

        sluice rehearse scale --plot scale.png

        sluice rehearse scale --sfus 2 --tick-s 2 --json

    Parameters
    ----------
    tick_s
        Seconds of the autoscaler's tick, which is 30 s in production; the cooldown is compressed with it.
    seed
        Seed of everything that is drawn.
    plot
        Draw the timeline into this file (.png, .svg or .pdf); needs matplotlib.
    """
    if plot is not None:
        check_plot(plot)
    with ended_by_sigterm():
        report = await rehearse_scale(size=size, tick_s=tick_s, seed=seed, say=step)
    if plot is not None:
        draw(plot_scale(report), plot)
    if json:
        print_json(report)
        for sentence in report.broken[:1]:
            step(f"not kept: {sentence}; logs are in {report.logs}")
    else:
        out.print(scale_report(report))
    return 0 if report.passed else 1


@app.command
async def chaos(
    *, size: FleetSize = SMALL, crowd: ChaosCrowd = EIGHT, time: ChaosTime = TEN_MINUTES, json: bool = False
) -> int:
    """Trouble a private fleet at random while bots talk, and check that no principle is broken.

    In each round one to three events overlap: routers, SFUs and Redis are killed, ended or paused for 1 to 40 s and
    started again; websockets (SFU to router, player to router, player to SFU) are cut or frozen while UDP flows, or UDP
    is lost while they work; Redis loses its data; an operator cordons and uncordons; everything stalls at once. One
    router and one SFU are healthy at every moment.

    Broken is, for example: a bot that no event touches hears a gap; a bot gives up media that works; afterwards not
    everybody hears everybody within 30 s; a cordoned SFU gets players; a silent SFU is shown as placeable; a program
    ends that nothing ended; a traceback stands in a log. The exit status is 1 then. Each violation names its events,
    its log file and the command that repeats its round: the same seed gives the same rounds, though not the same
    microseconds.

        sluice rehearse chaos

        sluice rehearse chaos --seed 7 --minutes 60 --json > chaos.json

        sluice rehearse chaos --seed 7 --first-round 12 --minutes 1

        sluice rehearse chaos --skew-s 20

    Ctrl-C ends it with a report of the rounds so far, and status 130 when nothing was broken in them.

    Parameters
    ----------
    json
        Print the report as JSON.
    """
    report = await rehearse_chaos(size=size, crowd=crowd, chaos=time, say=step)
    if json:
        print_json(report)
    else:
        out.print(chaos_report(report))
    if not report.passed:
        return 1
    return INTERRUPTED if report.interrupted else 0


async def _run(
    kind: RehearsalKind, size: FleetSize, crowd: CrowdSize, *, json: bool, roll: RollRehearsed = UNDISTURBED
) -> int:
    report = await rehearse(kind, size=size, crowd=crowd, say=step, roll=roll)
    if json:
        print_json(report)
        if hint := advice(report):
            step(hint)
    else:
        out.print(report_table(report))
    return 0 if report.passed else 1
