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


def test_a_line_of_progress_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    console = Console(width=100, record=True)
    monkeypatch.setattr(output, "err", console)
    output.step(f"6 bots join room {HOSTILE}")
    assert console.export_text() == f"· 6 bots join room {SHOWN}\n"
