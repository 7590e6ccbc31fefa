"""Tables show what players, operators and Redis say as it is: no markup, nothing that a terminal obeys."""

from __future__ import annotations

from typing import Any

import pytest
from rich.console import Console, RenderableType

from cli import output
from cli.scaling import records_table
from cli.story import story
from cli.tables import drains_table, fleet_table, players_table
from operators.core.fleet_view import fleet_view
from shared.placement_records import PlacementCandidate, PlacementRecord
from shared.records import Drain, DrainReport, LoadParts, RouterRecord, SfuState
from shared.scaling_records import ScalingFigures, ScalingRecord
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


@pytest.mark.parametrize(("table", "cells"), [(fleet(), 8), (players(), 3), (drains(), 4), (decisions(), 4)])
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
    assert "SFU    status    load  players  rooms  in   out   version" in lines
    assert "sfu-1: by kim@host, for 1 min 40 s, “release 7”, asks in 28 min 20 s, ends" in lines
    assert "SFU   version cause    outcome took      players cut asked last move in/out" in lines
    assert "sfu-1 local   operator empty   1 min 6 s 0       0   0     1 min 1 s 0/0" in lines


def test_the_load_and_the_part_that_binds_agree() -> None:
    """A report's own figure may be of another moment than its parts."""
    parts = LoadParts(cpu=0.17, egress_bps=70e6, streams=60)
    state = SfuState(address="ws://a", sfu="a", load=0.4, load_parts=parts)
    view = fleet_view("f", sfus=[HeardSfu(state)], routers=[])
    assert view.sfus[0].load == 0.2
    assert "20% cpu" in shown(fleet_table(view))


def test_histories_fit_a_terminal_of_eighty_columns() -> None:
    console = Console(width=80, record=True, highlight=False)
    figures = ScalingFigures(mean_load=0.71, binding="streams", capacity=12, nodes=12)
    decision = ScalingRecord(at=1.7e9, action="scale-out", reason="load-high", node="sluice-sfu-8", figures=figures)
    console.print(records_table((decision,)))
    candidates = tuple(
        PlacementCandidate(sfu=f"sluice-sfu-{n}", figure=0.5, in_flight=3, corrected=0.55, passed_over="not-warmed-up")
        for n in range(2)
    )
    console.print(story("demo", [PlacementRecord(id="1", room="demo", identity="ann", candidates=candidates)]))
    players = [{"name": "Ann of the long name", "room": "weekly", "decided": True, "reason": "is in a conversation"}]
    console.print(players_table(players))
    lines = [line.rstrip() for line in console.export_text().splitlines()]
    assert max(map(len, lines)) <= 80
    assert any("scale-out" in line and "load-high" in line for line in lines)
    assert any("not warmed up yet" in line for line in lines)


def test_a_line_of_progress_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=100, record=True)
    monkeypatch.setattr(output, "err", console)
    output.step(f"6 bots join room {HOSTILE}")
    assert console.export_text() == f"· 6 bots join room {SHOWN}\n"
