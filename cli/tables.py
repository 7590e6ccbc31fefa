"""Tables for people: how all of them look; the fleet, the players on an SFU, drain reports."""

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
    sfus = columns("SFU", "status", "load", "players", "rooms", "in", "out", "version")
    # Not a column: with the others it would have ten characters left of eighty.
    drains = [plain(f"{row.sfu}: {words}", "yellow") for row in view.sfus if (words := drain_of(row))]
    for row in view.sfus:
        sfus.add_row(
            plain(row.sfu),
            plain(status_words(row), STYLES.get(row.status, "magenta")),
            known(row.load, f"{{:.0%}} {row.binding}").rstrip(),
            *(known(value) for value in (row.players, row.rooms, row.producers, row.consumers)),
            plain(row.version),
        )
    routers = columns("router", "players", "no media", "linked SFUs", "API")
    for router in view.routers:
        if router.silent:
            routers.add_row(plain(router.router), "–", "–", plain(f"silent {router.silent_for_s:.0f} s", "red"), "")
        else:
            routers.add_row(
                plain(router.router),
                str(router.players),
                plain(known(router.without_media), "red" if router.without_media else ""),
                plain(" ".join(router.sfus)),
                plain(router.http),
            )
    return Group(sfus, *drains, routers, *_without_media(view))


def _without_media(view: FleetView) -> list[RenderableType]:
    """Who has no media, a line each; empty when all have."""
    named = [each for router in view.routers if not router.silent for each in router.who_without_media]
    lines = [f"{each.who} in {each.room}: can't {' or '.join(each.missing)}" for each in named]
    return [plain(f"no media gets through: {line}", "red") for line in lines]


def players_table(players: Sequence[dict[str, Any]]) -> RenderableType:
    """The players on an SFU, and what the rule of each said."""
    table = columns("player", "room", "why it is still here")
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
    heads = ("SFU", "version", "cause", "outcome", "took", "players", "cut", "asked", "last move", "in/out")
    table = columns(*heads, gap=1)
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


def columns(*heads: str, gap: int = 2) -> Table:
    """A table that keeps the words of its heads whole and, in a narrow terminal, folds what stands below."""
    table = Table(box=None, padding=(0, gap, 0, 0), header_style="bold dim")
    for head in heads:
        table.add_column(head, overflow="fold", min_width=max(map(len, head.split()), default=0))
    return table


def pairs(*rows: tuple[RenderableType, RenderableType], gap: int = 2) -> Table:
    """A table without heads: a name and its value in each row."""
    table = Table(box=None, show_header=False, padding=(0, gap, 0, 0), pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def known(value: float | None, form: str = "{}") -> str:
    """The figure in that form, or a dash for one that is not known."""
    return "–" if value is None else form.format(value)
