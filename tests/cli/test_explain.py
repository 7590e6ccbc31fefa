"""`sluice explain`: the history of a room or a player in words and as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from rich.console import Console

from cli.explain import told_of
from cli.main import run
from cli.story import ASKED, PASSED_OVER, WHY, story, why
from router.core.assignment import PlacementReason
from router.core.directory import NotPlaceable
from shared.errors import Refused
from shared.placement_records import PlacementCandidate, PlacementRecord, PlacementReject
from shared.records import PlayerRecord
from shared.store.store import Store


def record(number: int, **fields: Any) -> PlacementRecord:
    facts = {"room": "kitchen", "identity": "ann", "player": f"p{number}", "cause": "join", "reason": "chosen"}
    facts |= {"sfu": "sfu-2", "sort_by": "load", "kind": "any", "router": "router-1"}
    return PlacementRecord(id=f"r-{number}", **facts | fields)


def text(who: str, *records: PlacementRecord) -> str:
    console = Console(width=160, record=True, highlight=False)
    console.print(story(who, records))
    return console.export_text()


FULL = record(
    1,
    candidates=(
        PlacementCandidate(sfu="sfu-2", figure=0.12, in_flight=3, corrected=0.15),
        PlacementCandidate(sfu="sfu-1", figure=0.2, corrected=0.2),
        PlacementCandidate(sfu="sfu-9", passed_over="load-unknown"),
        PlacementCandidate(sfu="sfu-4", figure=0.0, passed_over="not-warmed-up"),
    ),
    rejected=(PlacementReject(sfu="sfu-3", why="cordoned"), PlacementReject(sfu="sfu-5", why="stale")),
)


def test_a_story_has_who_was_eligible_who_was_not_and_what_decided() -> None:
    lines = [line.split() for line in text("kitchen", FULL).splitlines()]
    assert ["→", "sfu-2", "12.0%", "+3", "15.0%"] in lines
    assert ["sfu-1", "20.0%", "–", "20.0%"] in lines
    assert ["sfu-9", "unknown", "–", "unknown", "load-unknown"] in lines
    told = text("kitchen", FULL)
    assert "ann joined in kitchen → sfu-2" in told
    assert "its room had no SFU; the best one by load" in told
    assert "not eligible: sfu-3 (cordoned), sfu-5 (not heard of for 5 s)" in told
    assert "not warmed up yet" in told


def test_markup_in_names_is_shown_as_it_is() -> None:
    told = text("[bold]x", record(1, room="[bold]x", identity="[red]a[/red]", sfu=""))
    assert "[bold]x: 1 placement" in told
    assert "[red]a[/red] joined in [bold]x → nowhere" in told


def test_a_player_is_told_by_the_name_that_others_see() -> None:
    console = Console(width=160, record=True, highlight=False)
    console.print(story("kitchen", [record(1), record(2)], names={"p1": "Ann Lee", "p2": "ann"}))
    told = console.export_text()
    assert "Ann Lee (ann) joined in kitchen" in told
    assert "  ann joined in kitchen" in told


HOSTILE = "[/x] :fire: \x1b[2J\n{x}"
SHOWN = r"[/x] :fire: \x1b[2J\n{x}"


@pytest.mark.parametrize(
    "field", ["room", "identity", "cause", "sfu", "reason", "sort_by", "router", "cell", "version"]
)
def test_what_others_wrote_is_shown_as_it_is_and_moves_no_terminal(field: str) -> None:
    candidates = (PlacementCandidate(sfu=HOSTILE, passed_over=HOSTILE),)
    rejected = (PlacementReject(sfu=HOSTILE, why=HOSTILE),)
    told = text(HOSTILE, record(1, candidates=candidates, rejected=rejected, **{field: HOSTILE}))
    assert "\x1b" not in told
    assert told.count(SHOWN) >= 6


@pytest.mark.parametrize("at", [1e300, -1e18])
def test_a_record_without_a_time_is_told_all_the_same(at: float) -> None:
    assert "  ann joined in kitchen → sfu-2" in text("kitchen", record(1, at=at))


@pytest.mark.parametrize("reason", list(PlacementReason))
def test_every_reason_has_a_sentence(reason: PlacementReason) -> None:
    assert reason in WHY
    assert "{" not in why(record(1, reason=reason.value, room_had="sfu-1"))


def test_why_a_room_could_not_stay_is_told() -> None:
    replaced = {"reason": "replaced", "room_had": "sfu-1"}
    failing = record(1, rejected=(PlacementReject(sfu="sfu-1", why="failing-connections"),), **replaced)
    assert "can't stay on sfu-1 (connections to it failed for many)" in why(failing)
    listed = record(1, candidates=(PlacementCandidate(sfu="sfu-1", passed_over="not-warmed-up"),), **replaced)
    assert "can't stay on sfu-1 (not warmed up yet)" in why(listed)
    assert "can't stay on sfu-1; " in why(record(1, **replaced))


def test_wishes_and_an_ignored_limit_are_told() -> None:
    told = why(record(1, cell="east", version="v2", limit_ignored=True, kind="cpuload"))
    assert "prefers cell east" in told
    assert "runs on v2" in told
    assert "over the cpuload limit" in told


def test_words_that_need_one_have_an_explanation() -> None:
    plain = {NotPlaceable.CORDONED, NotPlaceable.TERMINATING, NotPlaceable.UNKNOWN_SFU}
    assert {each.value for each in NotPlaceable if each not in plain} <= set(PASSED_OVER)
    assert {"join", "cordoned", "asked", "lost", "failed", "resume"} <= set(ASKED)


async def test_a_room_and_a_player_of_the_same_name_are_told_in_the_historys_order(redis_url: str, fleet: str) -> None:
    store = Store(redis_url, fleet=fleet)
    await store.push_placements(
        [record(1, room="ann", identity="bob"), record(2), record(3, identity="cem"), record(4, room="ann")]
    )
    assert [each.id for each in await told_of(store, "ann", last=9)] == ["r-4", "r-2", "r-1"]
    assert [each.id for each in await told_of(store, "kitchen", last=1)] == ["r-3"]
    assert [each.id for each in await told_of(store, "p2", last=5)] == ["r-2"]
    with pytest.raises(Refused, match="nobody"):
        await told_of(store, "nobody", last=5)
    await store.close()


async def test_players_who_are_there_are_found_by_the_name_that_pages_show(redis_url: str, fleet: str) -> None:
    store = Store(redis_url, fleet=fleet)
    await store.push_placements(
        [record(1, identity="u-1"), record(2, identity="u-2"), record(3, identity="u-1", player="later"), record(4)]
    )
    await store.push_placements([record(5, room="attic", identity="u-1"), record(6, room="attic", identity="u-3")])
    await store.enter_room("kitchen", PlayerRecord(player="later", identity="u-1", name="Zoë"))
    await store.enter_room("kitchen", PlayerRecord(player="p2", identity="u-2", name="Yves"))
    await store.enter_room("attic", PlayerRecord(player="p6", identity="u-3", name="Zoë"))
    assert [each.id for each in await told_of(store, "Zoë", last=9)] == ["r-6", "r-3", "r-1"]
    assert [each.id for each in await told_of(store, "Zoë", last=1)] == ["r-6"]
    assert [each.id for each in await told_of(store, "u-1", last=9)] == ["r-5", "r-3", "r-1"]
    await store.leave_room("attic", "p6")
    await store.leave_room("kitchen", "later")
    with pytest.raises(Refused, match="found by its identity"):
        await told_of(store, "Zoë", last=9)
    await store.close()


async def _push(redis_url: str, fleet: str) -> None:
    store = Store(redis_url, fleet=fleet)
    await store.push_placements([FULL])
    await store.close()


def test_json_is_the_records(redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]) -> None:
    import asyncio

    asyncio.run(_push(redis_url, fleet))
    assert run(["explain", "kitchen", "--redis", redis_url, "--fleet", fleet, "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["who"] == "kitchen"
    assert answer["placements"][0]["candidates"][0] == {
        "sfu": "sfu-2",
        "figure": 0.12,
        "in_flight": 3,
        "corrected": 0.15,
    }
    assert run(["explain", "attic", "--redis", redis_url, "--fleet", fleet]) == 1
