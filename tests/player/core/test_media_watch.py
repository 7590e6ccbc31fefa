"""Does media get through: `player/core/media_watch.py`. The table is shared with its twin in the browser."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from player.core.media_watch import MAX_TRIED, LinkMedia, MediaNeeds, MediaWatch, needs_of

STORIES = json.loads((Path(__file__).parents[2] / "movers" / "media-watch.json").read_text())


@pytest.mark.parametrize("story", STORIES, ids=[story["name"] for story in STORIES])
def test_what_is_missing(story: dict[str, Any]) -> None:
    watch = MediaWatch()
    for look in story["looks"]:
        needs = MediaNeeds(unmet=frozenset(look.get("unmet", ())), unsure=frozenset(look.get("unsure", ())))
        assert watch.look(needs, now=look["at"]) is look.get("told", False), look
        assert list(watch.missing) == look["missing"], look


def link(sfu: str = "a", *, publishes: bool | None = None, subscribes: bool | None = None) -> LinkMedia:
    return LinkMedia(sfu=sfu, inside=True, publishes=publishes, subscribes=subscribes)


def test_what_is_sent_needs_one_publish_connection() -> None:
    assert needs_of(sends=True, takes=[], links=[]).unmet == {"send"}
    assert needs_of(sends=True, takes=[], links=[link(publishes=False)]).unmet == {"send"}
    assert not needs_of(sends=True, takes=[], links=[link(publishes=False), link("b", publishes=True)]).unmet


def test_in_a_move_one_of_the_two_copies_is_enough() -> None:
    links = [link(subscribes=True), link("b", subscribes=False)]
    assert not needs_of(sends=False, takes=[{"a", "b"}], links=links).unmet
    assert needs_of(sends=False, takes=[{"b"}], links=links).unmet == {"receive b"}
    assert needs_of(sends=False, takes=[{"c"}], links=links).unmet == {"receive c"}


def test_an_sfu_that_offers_nothing_may_have_nothing() -> None:
    needs = needs_of(sends=False, takes=[{"a"}], links=[link()])
    assert (needs.unmet, needs.unsure) == (set(), {"receive a"})


def test_what_was_tried_is_bounded_and_forgotten_when_all_is_well() -> None:
    watch = MediaWatch()
    watch.look(MediaNeeds(unmet=frozenset({"send"})), now=0.0)
    for number in range(2 * MAX_TRIED):
        watch.try_at(f"s{number}", where=f"UDP 192.0.2.1:{number}")
    watch.try_at("s15", reason="ice-timeout")
    assert len(watch.tried) == MAX_TRIED
    assert watch.tried[-1] == "s15 at UDP 192.0.2.1:15 (ice-timeout)"
    watch.look(MediaNeeds(), now=1.0)
    assert watch.tried == ()
