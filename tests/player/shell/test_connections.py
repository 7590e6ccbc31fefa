"""Which link serves what, and when one is closed, with links that do nothing."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from player.shell import connections as module
from player.shell.connections import Connections


class FakeLink:
    """Looks like a `MediaLink`; remembers what it was told."""

    made: list[FakeLink]

    def __init__(self, *, sfu: str, token: str, **_: object) -> None:
        self.sfu, self.token = sfu, token
        self.number: int | None = None
        self.entered, self.alive, self.hears, self.needs_token = True, True, True, False
        self.delivers = False
        self.transports: list[Any] = []
        self.repaired = 0
        self.said: list[str] = []
        self.made.append(self)

    def start(self) -> None:
        self.said.append("start")

    def carry(self, number: int, generation: int, *, address: str = "", token: str = "") -> None:
        self.number = number
        self.said.append(f"carry {number}{' with a new token' if token else ''}")

    def revive(self, number: int, generation: int, *, address: str, token: str) -> None:
        self.number = number
        self.said.append(f"revive {number}")

    def renew(self, address: str, token: str) -> None:
        self.said.append("renew")

    def stop_publishing(self) -> None:
        self.number = None
        self.said.append("stop")

    async def leave(self) -> None:
        self.said.append("leave")

    async def close(self) -> None:
        self.said.append("close")

    def end(self) -> None:
        self.entered = self.alive = self.hears = False


class World:
    def __init__(self) -> None:
        self.wanted: dict[str, tuple[str, ...]] = {}
        self.closed: list[str] = []
        self.links: list[FakeLink] = []
        FakeLink.made = self.links
        self.connections = Connections(
            owner=None,  # type: ignore[arg-type]
            publisher=None,  # type: ignore[arg-type]
            wanted=lambda sfu: self.wanted.get(sfu, ()),
            closed=self.closed.append,
            rng=random.Random(1),
        )

    def carry(self, sfu: str, number: int) -> FakeLink:
        self.connections.carry(sfu, f"ws://{sfu}", "t", number=number, generation=number)
        return self.links[-1]

    def visit(self, sfu: str) -> FakeLink:
        self.connections.visit(sfu, f"ws://{sfu}", "t")
        return self.links[-1]


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(module, "MediaLink", FakeLink)
    return World()


async def settle() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_a_visit_becomes_the_home_on_the_same_link(world: World) -> None:
    visit = world.visit("b")
    assert world.carry("b", 7) is visit
    assert visit.said == ["start", "carry 7 with a new token"]


async def test_a_link_let_go_stays_while_something_is_wanted_from_it(world: World) -> None:
    link = world.carry("a", 1)
    world.wanted["a"] = ("p",)
    world.connections.let_go(1)
    assert world.connections.at("a") is link
    world.wanted.clear()
    world.connections.unneeded("a")
    await settle()
    assert link.said[-2:] == ["stop", "leave"]
    assert world.closed == ["a"]


async def test_an_abandoned_target_goes_back_to_being_a_visit(world: World) -> None:
    visit = world.visit("b")
    world.wanted["b"] = ("p",)
    world.carry("b", 7)
    world.connections.let_go(7)
    assert world.connections.at("b") is visit
    assert visit.said[-1] == "stop"


async def test_a_link_that_carries_us_is_revived_and_outlives_its_old_number(world: World) -> None:
    """The router sends us back: to an SFU whose websocket is away, or that only the routers had lost."""
    link = world.carry("a", 1)
    link.entered = False
    assert world.carry("a", 2) is link
    link.entered = True
    assert world.connections.numbers(link) == [2, 1]  # type: ignore[arg-type]
    world.connections.let_go(1)
    await settle()
    assert link.said == ["carry 1", "start", "revive 2"]
    world.connections.let_go(2)
    await settle()
    assert link.said[-1] == "leave"


async def test_a_revival_that_fails_leaves_the_media_to_the_old_number(world: World) -> None:
    link = world.carry("a", 1)
    world.carry("a", 2)
    world.connections.let_go(2)
    await settle()
    assert link.number == 1
    assert "close" not in link.said
    assert "leave" not in link.said


async def test_a_new_session_keeps_what_is_heard_until_it_is_heard_over_its_own_links(world: World) -> None:
    visit = world.visit("b")
    world.wanted["b"] = ("hers",)
    assert world.connections.new_session() == ["b"]
    await settle()
    assert visit.said == ["start"]
    own = world.visit("b")
    assert own is not visit
    world.connections.heard(visit)  # type: ignore[arg-type]
    await settle()
    assert visit.said == ["start"]
    world.connections.heard(own)  # type: ignore[arg-type]
    await settle()
    assert (visit.said[-1], own.said[-1]) == ("leave", "start")


async def test_a_former_home_is_heard_on_as_well_after_it_was_let_go(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ASIDE_S", 0.05)
    home = world.carry("a", 1)
    world.wanted["a"] = ("hers",)
    world.connections.new_session()
    world.connections.let_go(1)
    await settle()
    assert home.said[-1] == "stop"
    await asyncio.sleep(0.1)
    assert home.said[-1] == "leave", "the SFU can't be visited, and we do not wait for ever"


async def test_a_new_session_keeps_what_carries_us(world: World) -> None:
    home = world.carry("a", 1)
    assert world.connections.new_session() == ["a"]
    other = world.carry("a", 2)
    assert other is not home, "a link of the former session is not taken up again"
    world.connections.let_go(1)
    await settle()
    assert home.said[-1] == "leave"
    assert world.connections.at("a") is other


async def test_a_link_that_is_away_is_still_the_one_to_its_sfu(world: World) -> None:
    """Another one would be taken for the session's new websocket, and end this one's media."""
    visit = world.visit("b")
    visit.entered = False
    assert world.visit("b") is visit
    assert visit.said == ["start"]
    visit.needs_token = True
    world.visit("b")
    assert visit.said[-1] == "renew"


async def test_what_is_heard_over_a_home_that_is_away_outlasts_our_move(world: World) -> None:
    """The others have not moved yet, and there is no other way to hear them."""
    home = world.carry("a", 1)
    home.entered = False
    world.wanted["a"] = ("hers",)
    world.connections.let_go(1)
    await settle()
    assert home.said[-1] == "stop"
    assert world.connections.at("a") is home


async def test_a_link_that_has_ended_is_forgotten_and_its_sfu_visited_on_another(world: World) -> None:
    visit = world.visit("b")
    visit.end()
    assert world.connections.down(visit)  # type: ignore[arg-type]
    assert world.visit("b") is not visit
