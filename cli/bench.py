"""`sluice bench notify|join|relay|choose`: what this machine carries."""

from __future__ import annotations

import uvloop
from cyclopts import App

from bench.notify import NotifyReport, NotifySettings, notify
from cli.output import AsJson, out, print_json, step

DEFAULT = NotifySettings()
app = App(
    name="bench",
    help="""Measure what this machine carries; the exit status is 1 when a target is missed.

    sluice bench notify

    sluice bench notify --players 2000 --links 1 --json

    sluice bench join

    sluice bench relay fanout --subscribers 200 --json

    sluice bench choose
""",
)
app.command("bench.join:app", name="join", help="Time from a browser's websocket to its first video frame.")
app.command(
    "cli.bench_relay:app",
    name="relay",
    help="CPU per forwarded packet, delay, loss and memory of the data plane, at real sizes.",
)
app.command("bench.choose:app", name="choose", help="Time to choose among many SFUs.")


@app.command(name="notify")
def notify_(*, settings: NotifySettings = DEFAULT, json: AsJson = False) -> int:
    """Time from an SFU's SIGTERM to the last of ten thousand idle players told, and a router's memory per player.

    It ends an SFU, so it starts a fleet of its own; the one that `sluice up` runs here is left alone.
    """
    report = uvloop.run(notify(settings, say=step))
    if json:
        print_json(report)
    else:
        out.print(text(report))
    return 0 if report.passed else 1


def text(report: NotifyReport) -> str:
    """The report for people."""
    memory = ", ".join(f"{kib:.1f}" for kib in report.router_kib_per_player)
    return "\n".join(
        (
            f"{report.told} of {report.players} players told, over {report.routers} routers",
            f"after the SFU's SIGTERM: median {report.p50_ms:.0f} ms, 99 % {report.p99_ms:.0f} ms "
            f"(target < {report.p99_bound_ms:.0f} ms), last {report.max_ms:.0f} ms",
            f"router memory per player: {memory} KiB (target < {report.memory_bound_kib:.0f} KiB)",
        )
    )
