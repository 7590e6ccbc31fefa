"""`python -m client_sim`, and the function behind `sluice bots`."""

from __future__ import annotations

import asyncio
import gc
import signal
import sys

import cyclopts
import msgspec
import uvloop
from prometheus_client import CollectorRegistry

from client_sim.config import BotsConfig
from client_sim.core.clip import Clip
from client_sim.core.report import FleetReport
from client_sim.shell.clip import load
from client_sim.shell.events import EventStream, read_commands
from client_sim.shell.fleet import BotFleet, load_cast
from client_sim.shell.metrics import BotsCollector
from player.core.rules import Rule
from player.shell.plugin import load_rule
from shared import http, logs
from shared.errors import SluiceError
from shared.host.files import allow_open_files
from shared.host.secret_files import with_files_read

BAD_INPUT = 2
FILES_A_BOT = 8
"""Two websockets and the sockets of two peer connections; twice, while it moves."""
CUT = 1
FREEZE_AFTER_S = 5.0
"""After the last join: what lives then mostly lives to the end, and the garbage collector need not look at it. Without
collecting first: that would hold up media for as long as 0.1 s."""


def bots_command(config: BotsConfig | None = None) -> int:
    """Join simulated players with real media, and report gaps, moves and losses.

    Ends with status 1 when a player was cut: evicted, without an SFU at the end, or with a connection that failed.
    """
    try:
        config = with_files_read(config or BotsConfig()).check()
        log = logs.setup("bots", level=config.log_level)
        allow_open_files(log, tag="bots", most=config.bots, setting="bots", each=FILES_A_BOT)
        rule = load_rule(config.rule)
        load_cast(config.behaviour)
        clip = load(config.clip)
        report = uvloop.run(_main(config, clip, rule))
    except SluiceError as error:
        print(f"sluice bots: {error.sentence()}", file=sys.stderr)
        return BAD_INPUT
    if config.json and not config.events:
        print(msgspec.json.encode(report).decode())
    elif not config.events:
        print(summary(report))
    return CUT if report.cut else 0


async def _main(config: BotsConfig, clip: Clip, rule: Rule) -> FleetReport:
    events = EventStream(live=config.events)
    fleet = BotFleet(config, clip=clip, rule=rule, emit=events.emit)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, fleet.stopping.set)
    gc.collect()
    gc.freeze()
    loop.call_later(config.bots / config.join_per_s + FREEZE_AFTER_S, gc.freeze)
    events.start()
    reader: asyncio.Task[None] | None = None
    if config.events:
        reader = asyncio.create_task(read_commands(fleet.command, lambda detail: events.emit("refused", detail=detail)))
    runner = None
    if config.metrics_port is not None:
        registry = CollectorRegistry()
        registry.register(BotsCollector(fleet.report))
        app = http.make_app(ready=lambda: True, registry=registry)
        runner = await http.serve(app, host="127.0.0.1", port=config.metrics_port)
    try:
        report = await fleet.run()
    finally:
        if reader is not None:
            reader.cancel()
        if runner is not None:
            await runner.cleanup()
    events.emit("final-report", report=report)
    await events.stop()
    return report


def summary(report: FleetReport) -> str:
    """The report in a few lines for people."""

    def ms(value: float | None) -> str:
        return "nothing received" if value is None else f"{value:.0f} ms"

    counts, gaps = report.counts, report.gaps
    lines = [
        f"{report.bots} bots for {report.took_s:.0f} s: {counts.moves} moves, {counts.evictions} evictions, "
        f"{counts.failed_connections} failed connections, {counts.resumes} resumes",
        f"longest gaps: audio {ms(gaps.audio_gap_ms)}, video {ms(gaps.video_gap_ms)}; "
        f"missing: {gaps.audio_missing} packets, {gaps.video_missing} frames; {gaps.duplicates} duplicates, "
        f"{gaps.damaged} damaged",
        f"{counts.packets_in} packets in, {counts.packets_out} out; sending was late by "
        f"{report.worst_send_lag_ms:.0f} ms at worst",
    ]
    return "\n".join([*lines, *(f"cut: {sentence}" for sentence in report.cut)])


def main() -> None:
    """The program."""
    app = cyclopts.App(
        name="bots", help="Simulated players with real media.", config=cyclopts.config.Env("SLUICE_", command=False)
    )
    app.default(bots_command)
    sys.exit(app(result_action="return_value"))


if __name__ == "__main__":
    main()
