"""`sluice drain`: cordon an SFU, let it end when empty, and show who is still there and why."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import msgspec
from rich.console import Group
from rich.live import Live

from cli.confirm import confirm_last
from cli.output import out, plain, print_json
from cli.tables import drains_table, players_table
from operators.config import HERE, Where
from operators.core.fleet_view import StatusRow, drain_of, sfu_row, status_words
from operators.core.orders import leaves_none
from operators.shell.operations import command, heard_of, known_state, open_store, players_on
from operators.shell.target import find_target, known_secret
from shared.records import CommandVerb, DrainReport
from shared.store.store import Store

LOOK_EVERY_S = 0.5
REPORT_WITHIN_S = 5.0
"""The report is written by the router that unregisters the SFU, in the moment before its record goes."""


class Remaining(msgspec.Struct, frozen=True, kw_only=True):
    """A draining SFU and the players that are still on it."""

    sfu: StatusRow | None
    """None: it has ended."""
    players: list[dict[str, Any]] | None
    """None: no router answered, or none without the fleet's secret."""
    report: DrainReport | None = None


async def drain(
    sfu: str,
    /,
    *,
    where: Where = HERE,
    reason: str = "",
    watch: bool = False,
    wait: bool = True,
    yes: bool = False,
    json: bool = False,
) -> None:
    """Cordon an SFU and let its process end once the last player has left; show who is still there and why.

    No player is cut: players move when their own rule says so, and are asked to at `drain_max`. To order it, or to
    watch until it has ended:

        sluice drain sfu-1 --reason "release 7"

        sluice drain sfu-1 --watch

    Run it again at any time to look: that does not change a drain that goes on. `sluice uncordon` takes it back.

    Parameters
    ----------
    sfu
        Id of the SFU, as `sluice status` shows it.
    reason
        Why; it is shown to everyone who looks at the fleet.
    watch
        Follow live until the SFU has ended.
    wait
        Wait until the SFU has followed; an SFU that does not is an error.
    yes
        Do not ask, where it is the last SFU that takes new players.
    json
        Print JSON; with `--watch` one document per change.
    """
    target, secret = find_target(where), known_secret(where)
    async with open_store(target) as store, aiohttp.ClientSession() as session:
        await known_state(store, sfu)
        if not yes and leaves_none(sfu, await store.hear_sfus()):
            confirm_last(sfu, verb="Drain")
        before = await store.read_drain_reports(1)
        await command(store, CommandVerb.DRAIN, sfu, reason=reason, wait=wait)
        if watch:
            await _follow(store, session, sfu, secret=secret, before=before, json=json)
        else:
            _show(await _look(store, session, sfu, secret=secret), json=json)


async def _look(store: Store, session: aiohttp.ClientSession, sfu: str, *, secret: str) -> Remaining:
    heard = await heard_of(store, sfu)
    if heard is None:
        return Remaining(sfu=None, players=[])
    return Remaining(sfu=sfu_row(heard), players=await players_on(store, session, sfu, secret=secret))


async def _follow(
    store: Store, session: aiohttp.ClientSession, sfu: str, *, secret: str, before: list[DrainReport], json: bool
) -> None:
    shown: Any = None
    with Live(console=out, auto_refresh=False, transient=json) as live:
        while (now := await _look(store, session, sfu, secret=secret)).sfu is not None:
            who = [player.get("player") for player in now.players or []]
            if json and shown != (now.sfu.status, who):
                print_json(now)
                shown = (now.sfu.status, who)
            elif not json:
                live.update(_table(now), refresh=True)
            await asyncio.sleep(LOOK_EVERY_S)
    if not json and not out.is_terminal:
        out.line()  # a live display that can't be drawn over ends without a line end
    report = await _report(store, sfu, before=before)
    if json:
        print_json(Remaining(sfu=None, players=[], report=report))
    else:
        out.print(plain(f"{sfu} has ended" + ("" if report else ", and left no report")))
        if report:
            out.print(drains_table([report]))


async def _report(store: Store, sfu: str, *, before: list[DrainReport]) -> DrainReport | None:
    """The SFU's drain report; None when none newer than `before` comes in time."""
    for _ in range(int(REPORT_WITHIN_S / LOOK_EVERY_S)):
        for report in await store.read_drain_reports(10):
            if report in before:
                break
            if report.sfu == sfu:
                return report
        await asyncio.sleep(LOOK_EVERY_S)
    return None


def _show(now: Remaining, *, json: bool) -> None:
    if json:
        print_json(now)
    elif now.sfu is None:
        out.print("it has ended")
    else:
        out.print(_table(now))


def _table(now: Remaining) -> Group:
    assert now.sfu is not None
    head = plain(f"{now.sfu.sfu} is {status_words(now.sfu)}: {drain_of(now.sfu)}")
    if now.players is None:
        return Group(head, "no router says who is on it: none answers, or they want the fleet's secret (SLUICE_SECRET)")
    return Group(head, players_table(now.players) if now.players else "no player is on it any more")
