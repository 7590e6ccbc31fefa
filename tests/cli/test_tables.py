"""Tables show what players, operators and Redis say as it is: no markup, nothing that a terminal obeys."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console, RenderableType

from cli import output
from cli.scaling import records_table
from cli.tables import drains_table, fleet_table, players_table
from operators.core.fleet_view import fleet_view
from shared.records import Drain, DrainReport, RouterRecord, SfuState
from shared.scaling_records import ScalingRecord
from shared.store.answers import HeardRouter, HeardSfu

HOSTILE = "[/x] :fire: \x1b[2J"
SHOWN = r"[/x] :fire: \x1b[2J"


def shown(table: RenderableType) -> str:
    console = Console(width=400, record=True, highlight=False)
    console.print(table)
    return console.export_text()


def fleet() -> RenderableType:
    """A reason like `[JIRA-1] new kernel` is an operator's own; ids and labels may be of any writer to Redis."""
    drain = Drain(by=HOSTILE, reason=HOSTILE)
    state = SfuState(address="ws://a", sfu=HOSTILE, version=HOSTILE, status="CORDONED", drain=drain)
    router = RouterRecord(router=HOSTILE, http=HOSTILE, sfus=(HOSTILE,))
    return fleet_table(fleet_view("sluice", sfus=[HeardSfu(state)], routers=[HeardRouter(router)]))


def players() -> RenderableType:
    """A player's own word on why it stays."""
    player: dict[str, Any] = {"name": HOSTILE, "room": HOSTILE, "decided": True, "reason": HOSTILE}
    return players_table([player])


def drains() -> RenderableType:
    return drains_table([DrainReport(sfu=HOSTILE, version=HOSTILE, cause=HOSTILE, outcome=HOSTILE)])


def decisions() -> RenderableType:
    return records_table((ScalingRecord(action=HOSTILE, reason=HOSTILE, node=HOSTILE, detail=HOSTILE),))


@pytest.mark.parametrize(("table", "cells"), [(fleet(), 7), (players(), 3), (drains(), 4), (decisions(), 4)])
def test_words_of_others_are_shown_as_they_are(table: RenderableType, cells: int) -> None:
    told = shown(table)
    assert told.count(SHOWN) == cells
    assert "\x1b" not in told


def test_tables_fit_a_terminal_of_eighty_columns_and_keep_their_heads_whole() -> None:
    console = Console(width=80, record=True, highlight=False)
    drain = Drain(by="kim@host", reason="release 7", elapsed_s=100.0, drain_max_s=1800.0, grace_s=3600.0)
    counts: dict[str, Any] = {"load": 0.4, "players": 120, "producers": 240, "consumers": 2400, "version": "v12"}
    states = [SfuState(address="ws://a", sfu="sfu-1", status="CORDONED", drain=drain, **counts)]
    routers = [RouterRecord(router="router-1", http="http://127.0.0.1:8080", sfus=("sfu-1", "sfu-2", "sfu-3"))]
    view = fleet_view("f", sfus=map(HeardSfu, states), routers=map(HeardRouter, routers))
    report = DrainReport(
        sfu="sfu-1", version="local", cause="operator", outcome="empty", to_exit_s=66.0, last_move_s=61
    )
    console.print(fleet_table(view))
    console.print(drains_table([report]))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert all(len(line) <= 80 for line in lines)
    assert "SFU    status    load  players  rooms  in   out   version  drain" in lines
    assert "SFU   version cause    outcome took      players cut asked last move in/out" in lines
    assert "sfu-1 local   operator empty   1 min 6 s 0       0   0     1 min 1 s 0/0" in lines


def test_a_line_of_progress_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=100, record=True)
    monkeypatch.setattr(output, "err", console)
    output.step(f"6 bots join room {HOSTILE}")
    assert console.export_text() == f"· 6 bots join room {SHOWN}\n"
