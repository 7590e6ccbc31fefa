"""`sluice up`: a fleet on this machine, watched until Ctrl-C."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from rich.console import Group, RenderableType
from rich.live import Live
from rich.markup import escape

from cli.output import err, out, plain, step
from cli.tables import fleet_table
from control.shell.pools.process import ProcessPool
from localfleet import runfiles
from localfleet.bots import start_bots
from localfleet.config import PER_CORE, FleetSize, LocalFleet
from localfleet.door import FleetDoor
from localfleet.fleet import PAGE_PORT, Fleet, FleetSpec
from localfleet.scaled_fleet import ScaledFleet, local_settings
from operators.core.fleet_view import FleetView
from operators.core.news import fleet_news
from operators.shell.operations import open_store, view
from operators.shell.target import DEFAULT_FLEET, Target
from shared.errors import BadSetting, StoreUnavailable
from shared.host.child import Child
from shared.host.files import raise_open_files
from shared.host.ports import check_host, check_port
from shared.host.state import state_directory
from shared.store.store import Store

REDRAW_S = 1.0


async def up(
    *,
    size: LocalFleet = PER_CORE,
    bots: int = 0,
    room: str = "demo",
    fleet: str = DEFAULT_FLEET,
    port: int = PAGE_PORT,
    scaling: Path | None = None,
) -> None:
    """Start routers and SFUs on this machine, with bots if you like, and watch them until Ctrl-C.

    Prints the address of the web page. Other `sluice` commands find the fleet without flags:

        sluice up

        sluice up --bots 6 --room kitchen

        sluice up --sfus 5 --redis redis://127.0.0.1:6379/0

        sluice up --scaling scaling.toml --bots 20

    The programs' own settings (docs/drain.md) come from SLUICE_… in the environment, for instance
    `SLUICE_DRAIN_MAX_S=60 sluice up`. A program that ends is told and is not started again. With `--scaling` the
    settings of SFUs come from the file's `[pool]` table.

    Parameters
    ----------
    bots
        Bots with real audio and video that join `--room`.
    room
        The bots' room; the page proposes the same.
    fleet
        Name of the fleet. Give a second one here another name: `sluice up --fleet two`.
    port
        Port of the page; the next free one is taken when it is busy. 0: any free one.
    scaling
        Let a controller grow and shrink the fleet by this TOML file (docs/autoscaling.md); it begins with `--sfus`.
    """
    most = local_settings(scaling).max_nodes if scaling is not None else None
    size = size.sized(len(os.sched_getaffinity(0)), most=most)
    raise_open_files()
    where = state_directory()
    check(size, bots=bots, fleet=fleet, port=port)
    spec = spec_of(size, fleet=fleet, port=port)
    if scaling is not None:
        spec = replace(spec, sfus=0)
    logs = where / "logs" / fleet
    with runfiles.claim(fleet, where=where), stop_signals() as stop:
        async with AsyncExitStack() as stack:
            running = await stack.enter_async_context(Fleet(spec, logs=fresh(logs), say=step))
            pool: ProcessPool | None = None
            if scaling is not None:
                pool = (await stack.enter_async_context(ScaledFleet(running, scaling, nodes=size.sfus))).pool
            door = await stack.enter_async_context(FleetDoor(running, pool=pool.name if pool is not None else ""))
            run = run_file(running, door=door.path)
            runfiles.write(run, where=where)
            try:
                if bots:
                    await start_bots(running, bots=bots, room=room)
                    step(f"{bots} bots join room {room}")
                await watch(running, stop, notes=notes(running, size, pool))
            finally:
                runfiles.remove(run, where=where)
                err.print("ending the fleet")


def check(size: FleetSize, *, bots: int, fleet: str, port: int) -> None:
    """Raise `BadSetting` for what can't be started."""
    check_port(port)
    check_host(size.host)
    if size.routers < 1 or size.sfus < 1 or bots < 0:
        raise BadSetting(setting="up", detail="needs at least one router and one SFU, and no negative number of bots")
    if not fleet or not all(letter.isalnum() or letter in "-_." for letter in fleet) or fleet.startswith("."):
        raise BadSetting(setting="--fleet", detail="may hold letters, digits, '-', '_' and '.'")


def spec_of(size: FleetSize, *, fleet: str, port: int) -> FleetSpec:
    """What to start. The page makes its own tokens, because this fleet is for trial."""
    return FleetSpec(
        routers=size.routers,
        sfus=size.sfus,
        redis=size.redis,
        server=size.server,
        host=size.host,
        fleet=fleet,
        page_port=port or None,
        router_flags=("--dev-tokens",),
        inherit=True,
    )


def run_file(fleet: Fleet, *, door: str = "") -> runfiles.RunFile:
    """How other commands reach this fleet."""
    return runfiles.RunFile(
        fleet=fleet.spec.fleet,
        redis=fleet.redis_url,
        secret=fleet.secret,
        page=fleet.page,
        routers=tuple(
            runfiles.RouterAddress(router=program.name, ws=program.ws, http=program.http)
            for program in fleet.routers.values()
        ),
        door=door,
        logs=str(fleet.logs),
        pid=os.getpid(),
        pid_started=runfiles.started_ticks(os.getpid()),
    )


def notes(fleet: Fleet, size: FleetSize, pool: ProcessPool | None = None) -> list[str]:
    """What to know about a fleet that has just started."""
    lines = [f"page  [bold]{fleet.page}[/bold]", f"logs  {fleet.logs}", "end   Ctrl-C"]
    if pool is not None:  # its nodes can outlive this fleet's controller, so their logs are with the pool
        lines.insert(2, f"      {pool.logs} for the SFUs of pool {pool.name}, until they end")
    if not ipaddress.ip_address(size.host).is_loopback:
        lines.append("[yellow]open to the network: the page gives a token to anyone who asks[/yellow]")
    return lines


def fresh(logs: Path) -> Path:
    """The directory for logs, without those of an earlier run."""
    logs.mkdir(parents=True, exist_ok=True, mode=0o700)
    for old in logs.glob("*.log"):
        old.unlink(missing_ok=True)
    return logs


@contextmanager
def stop_signals() -> Iterator[asyncio.Event]:
    """An event that SIGINT and SIGTERM set, instead of ending us in the middle of something."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


async def watch(fleet: Fleet, stop: asyncio.Event, *, notes: list[str]) -> None:
    """A live table on a terminal, a few lines elsewhere, until `stop`."""
    async with open_store(Target(redis=fleet.redis_url, fleet=fleet.spec.fleet)) as store:
        if not out.is_terminal:
            out.print("\n".join(notes))
            await tell(fleet, stop, look=lambda: view(store, fleet.spec.fleet))
            return
        with Live(console=out, auto_refresh=False) as live:
            while not stop.is_set():
                live.update(await picture(fleet, store, notes), refresh=True)
                await pause(stop)


async def tell(fleet: Fleet, stop: asyncio.Event, *, look: Callable[[], Awaitable[FleetView]]) -> None:
    """A line for each program that starts, ends or changes, until `stop`: what a log of this command must not lack."""
    told: set[str] = set()
    seen, trouble = FleetView(fleet=fleet.spec.fleet, sfus=[], routers=[]), ""
    while not stop.is_set():
        try:
            now, sentence = await look(), ""
        except StoreUnavailable as error:
            now, sentence = seen, str(error)
        lines = fleet_news(seen, now)
        if bool(sentence) != bool(trouble):
            lines.append(sentence or "Redis answers again")
        seen, trouble = now, sentence
        for line in lines:
            out.print(plain(line), soft_wrap=True)
        for child in fleet.dead():
            if child.name not in told:
                told.add(child.name)
                out.print(f"{child.name} {ending(child)}; its log is {child.log}", soft_wrap=True)
        await pause(stop)


def ending(child: Child) -> str:
    """How a program ended, in words."""
    code = child.exit_code or 0
    return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"


async def picture(fleet: Fleet, store: Store, notes: list[str]) -> RenderableType:
    """The fleet now: table, notes, and programs that have ended."""
    try:
        table = fleet_table(await view(store, fleet.spec.fleet))
    except StoreUnavailable as error:
        table = fleet_table(FleetView(fleet=fleet.spec.fleet, sfus=[], routers=[]))
        notes = [*notes, f"[red]{escape(str(error))}[/red]"]
    ended = [f"[dim]{child.name} {ending(child)}[/dim]" for child in fleet.dead()]
    return Group(table, "", *notes, *ended)


async def pause(stop: asyncio.Event) -> None:
    """Until the next redraw, or `stop`."""
    try:
        async with asyncio.timeout(REDRAW_S):
            await stop.wait()
    except TimeoutError:
        return
