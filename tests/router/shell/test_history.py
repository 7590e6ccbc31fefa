"""What is brought to Redis: placements in order, and tries while they say something about now."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from router.config import RouterConfig
from router.core.plan import Ask
from router.core.rooms import HostedRooms
from router.core.selector.decision import PlacementDecision
from router.core.sessions import Session
from router.shell.history import History
from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.placement_records import PlacementRecord
from shared.store.calls import WrongType
from shared.tokens import ResumeClaims
from tests.fakes.store import FakeStore


class Broken(FakeStore):
    """Its history is of a type that nothing can be pushed to."""

    broken = False

    async def push_placements(self, records: Sequence[PlacementRecord]) -> None:
        if self.broken:
            raise WrongType(operation="push_placements", detail="a key holds another type of value")
        await super().push_placements(records)


class World:
    def __init__(self) -> None:
        self.store = Broken(clock=lambda: 1_800_000_000.0)
        self.state = RouterState(
            RouterConfig(secret="x" * 32), self.store, HostedRooms(resume_window_s=25.0), random.Random(1)
        )
        self.history = History(self.state)

    def fail(self, players: range) -> None:
        """So many players are sent to an SFU and come back from it at once."""
        for n in players:
            claims = ResumeClaims(player=f"p{n}", room="r", identity=f"p{n}", epoch=1)
            session = Session(claims, wire=None, home_at=0.0)
            self.state.tries.sent(session, "a", 1, now=0.0)
            assert self.state.tries.asks_again(session, ("a",), now=1.0)

    def place(self) -> None:
        decision = PlacementDecision(chosen="a", reason="chosen")
        self.state.placements.add(Ask(room="r"), decision, identity="ann", at=0.0)

    async def failing(self) -> list[str]:
        return [each.sfu for each in await self.store.read_failing()]


@pytest.fixture
def it() -> World:
    return World()


async def test_tries_of_an_outage_say_nothing_once_redis_is_back(it: World) -> None:
    it.state.directory.lose_store(now=0.0)
    it.fail(range(40))
    await it.history.bring()
    it.state.directory.see_store(now=600.0)
    await it.history.bring()
    assert await it.failing() == []
    it.fail(range(40, 80))
    await it.history.bring()
    assert await it.failing() == ["a"]


async def test_a_history_that_cannot_be_written_hides_no_failing_sfu(it: World) -> None:
    it.store.broken = True
    it.place()
    it.fail(range(40))
    await it.history.bring()
    assert await it.failing() == ["a"]
    it.store.broken = False
    await it.history.bring()
    assert len(await it.store.read_placements(5)) == 1, "brought later"


async def test_placements_of_an_outage_are_brought_in_order(it: World) -> None:
    it.store.down = True
    it.place()
    await it.history.bring()
    with pytest.raises(StoreUnavailable):
        await it.store.read_placements(1)
    it.place()
    it.store.down = False
    await it.history.bring()
    ids = [each.id for each in await it.store.read_placements(5)]
    assert [each.rpartition("-")[2] for each in ids] == ["2", "1"]
