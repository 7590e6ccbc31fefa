"""What `sluice roll` shows: who is left and why while it goes on, and its report at the end."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self

import aiohttp
from rich.console import Group, RenderableType
from rich.live import Live

from cli.output import err, out, plain, print_json
from cli.tables import drains_table, players_table
from operators.core.roll.news import roll_news, router_words, state_words, step_words
from operators.core.roll.report import RollReport, report_of
from operators.core.roll.seen import RollSeen
from operators.shell.operations import players_on
from shared.errors import Refused
from shared.roll_records import RollRecord, RollState
from shared.store.store import Store

LOOK_EVERY_S = 0.5


class RollView:
    """Live on a terminal, lines elsewhere, documents with `json`. Use it as an async context manager for `show`."""

    def __init__(self, store: Store, session: aiohttp.ClientSession, *, secret: str, json: bool) -> None:
        self._store = store
        self._session = session
        self._secret = secret
        self._json = json
        self._before: RollRecord | None = None
        self._live = Live(console=out, auto_refresh=False) if out.is_terminal and not json else None

    async def __aenter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            self._live.stop()

    async def show(self, plan: RollRecord, seen: RollSeen | None = None) -> None:
        """The plan as it stands."""
        lines, self._before = roll_news(self._before, plan), plan
        if self._json:
            if lines:
                print_json(report_of(plan, now=plan.ended_at or await self._store.now()))
        elif self._live is None:
            for line in lines:
                err.print(plain(line), soft_wrap=True)
        else:
            self._live.update(await self._picture(plan), refresh=True)

    async def watch(self) -> RollRecord:
        """Show another command's roll until it pauses or ends. Raises `Refused` when there is none."""
        async with self:
            while True:
                kept = await self._store.read_roll()
                if kept.plan is None:
                    raise Refused("no-roll", "no roll is known here; 'sluice roll' begins one")
                await self.show(kept.plan)
                if kept.plan.state != RollState.RUNNING:
                    return kept.plan
                if kept.holder is None:
                    err.print("no command goes on with it: 'sluice roll' does")
                    return kept.plan
                await asyncio.sleep(LOOK_EVERY_S)

    async def _picture(self, plan: RollRecord) -> RenderableType:
        parts: list[RenderableType] = [plain(state_words(plan))]
        parts += [plain(f"  {each.router}: {router_words(each)}") for each in plan.routers if each.stage != "done"]
        parts += [plain(f"  {each.old}: {step_words(each)}") for each in plan.steps if each.stage != "done"]
        for each in plan.steps:
            if each.stage == "draining":
                players = await players_on(self._store, self._session, each.old, secret=self._secret)
                parts += ["", _left(each.old, players)]
        return Group(*parts)


def _left(sfu: str, players: list[dict[str, Any]] | None) -> RenderableType:
    if players is None:
        return plain(f"no router says who is on {sfu}: none answers, or they want the fleet's secret (SLUICE_SECRET)")
    return Group(plain(f"still on {sfu}:"), players_table(players)) if players else plain(f"no player is on {sfu}")


def print_report(report: RollReport) -> None:
    """The report for people."""
    drains = [row.drain for row in report.steps if row.drain is not None]
    if drains:
        out.print(drains_table(drains))
    moves = "?" if report.moves_per_player_max is None else str(report.moves_per_player_max)
    words = [
        f"roll {report.roll} to {report.version!r}: {report.state} after {report.took_s:.0f} s",
        f"{report.sfus_rolled} SFUs rolled, {report.sfus_left} left; {len(report.routers_restarted)} routers restarted",
        f"{report.players_moved} moves, at most {moves} of one player; {report.players_evicted} players cut; "
        f"{report.failed_connections} failed connections; {report.freezes} freezes",
    ]
    for line in words:
        out.print(plain(line))
