"""Tables for people: the fleet, the players on an SFU, drain reports."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from cli.output import plain
from operators.core.fleet_view import SILENT, FleetView, drain_of, span, status_words
from shared.records import DrainReport

STYLES = {"ONLINE": "green", "CORDONED": "yellow", "TERMINATING": "red", SILENT: "red"}


def fleet_table(view: FleetView) -> RenderableType:
    """SFUs with status and load, a line for each drain, and routers with their players."""
    sfus = _table("SFU", "status", "load", "players", "rooms", "in", "out", "version")
    # Not a column: with the others it would have ten characters left of eighty.
    drains = [plain(f"{row.sfu}: {words}", "yellow") for row in view.sfus if (words := drain_of(row))]
    for row in view.sfus:
        sfus.add_row(
            plain(row.sfu),
            plain(status_words(row), STYLES.get(row.status, "magenta")),
            "–" if row.load is None else f"{row.load:.0%} {row.binding}".rstrip(),
            *(_count(value) for value in (row.players, row.rooms, row.producers, row.consumers)),
            plain(row.version),
        )
    routers = _table("router", "players", "linked SFUs", "API")
    for router in view.routers:
        if router.silent:
            routers.add_row(plain(router.router), "–", plain(f"silent {router.silent_for_s:.0f} s", "red"), "")
        else:
            routers.add_row(plain(router.router), str(router.players), plain(" ".join(router.sfus)), plain(router.http))
    return Group(sfus, *drains, routers)


def players_table(players: Sequence[dict[str, Any]]) -> RenderableType:
    """The players on an SFU, and what the rule of each said."""
    table = _table("player", "room", "why it is still here")
    for player in players:
        name = str(player.get("name") or player.get("identity") or player.get("player"))
        table.add_row(plain(name), plain(str(player.get("room", ""))), plain(why(player)))
    return table


def why(player: dict[str, Any]) -> str:
    """Why a player is still on a cordoned SFU, in words."""
    if player.get("moving_to"):
        return f"is moving to {player['moving_to']}"
    if not player.get("connected", True):
        return "its router has lost touch with it"
    if not player.get("decided"):
        return "has not decided yet"
    return str(player.get("reason") or ("its rule said yes" if player.get("move") else "its rule said no"))


def drains_table(reports: Sequence[DrainReport]) -> RenderableType:
    """Drain reports, newest first; `in/out` are the tracks that were still forwarded at the end."""
    columns = ("SFU", "version", "cause", "outcome", "took", "players", "cut", "asked", "last move", "in/out")
    table = _table(*columns, gap=1)
    for report in reports:
        table.add_row(
            plain(report.sfu),
            plain(report.version),
            plain(report.cause),
            plain(report.outcome),
            span(report.to_exit_s),
            str(report.players_at_cordon),
            Text(str(report.evicted), style="red" if report.evicted else ""),
            str(report.asked),
            "–" if report.last_move_s is None else span(report.last_move_s),
            f"{report.producers_at_exit}/{report.consumers_at_exit}",
        )
    return table


def _table(*columns: str, gap: int = 2) -> Table:
    """A table that keeps the words of its heads whole and, in a narrow terminal, folds what stands below."""
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="bold dim")
    for column in columns:
        table.add_column(column, overflow="fold", min_width=max(map(len, column.split())))
    return table


def _count(value: int | None) -> str:
    return "–" if value is None else str(value)
