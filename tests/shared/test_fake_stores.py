"""What tests may do to the fakes of the store: outages, and a network that loses, doubles, delays and reorders."""

from __future__ import annotations

import asyncio
import random
from contextlib import aclosing
from typing import Any

import pytest

from shared.errors import StoreUnavailable
from shared.keys import COMMAND_TTL_S, EXIT_TTL_S, PLAYER_LEASE_S, ROOM_TTL_S, ROUTER_TTL_S, SFU_TTL_S
from shared.records import PlayerRecord, RouterRecord, SfuState
from shared.store.answers import Gap, Wake, WakeKind
from tests.fakes.hostile_store import HostileCore, HostileStore
from tests.fakes.store import FakeStore
from tests.fakes.store_core import StoreCore


class Clock:
    def __init__(self) -> None:
        self.at = 1_800_000_000.0

    def __call__(self) -> float:
        return self.at


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def core(clock: Clock) -> StoreCore:
    return StoreCore(clock)


def state(revision: int) -> SfuState:
    return SfuState(address="ws://a", sfu="a", incarnation=1, revision=revision)


def revisions(core: StoreCore) -> list[int]:
    return [state.revision for state in core.read_sfus()]


# --- lifetimes on the test's clock ---


def test_records_end_with_their_lifetimes(clock: Clock, core: StoreCore) -> None:
    core.put_sfu(state(1))
    core.put_router(RouterRecord(router="r1"))
    core.enter_room("room", PlayerRecord(player="p1", identity="bob"))
    core.order_exit("sfu", "a", "ann")
    core.command_sfu("drain", "a", "ann", "")
    start = clock.at
    for after_s, check in (
        (ROUTER_TTL_S, lambda: core.read_routers()),
        (PLAYER_LEASE_S, lambda: core.read_room("room").players),
        (SFU_TTL_S, lambda: core.read_sfus()),
        (ROOM_TTL_S, lambda: core.room_versions(["room"])["room"]),
        (COMMAND_TTL_S, lambda: core.read_commands(["a"])),
        (EXIT_TTL_S, lambda: core.read_exits()),
    ):
        clock.at = start + after_s - 0.001
        assert check()
        clock.at = start + after_s
        assert not check()


# --- outages ---


async def test_a_store_that_is_down_fails_and_loses_hints_and_says_so_when_it_is_back(core: StoreCore) -> None:
    down, other = FakeStore(core=core), FakeStore(core=core)
    async with aclosing(down.wakes(rng=random.Random(1))) as heard:
        assert await anext(heard) == Gap()
        down.down = True
        with pytest.raises(StoreUnavailable):
            await down.read_sfus()
        healthy_meanwhile = down.healthy
        await other.wake(Wake(WakeKind.SFU, "lost"))
        down.down = False
        await other.wake(Wake(WakeKind.SFU, "heard"))
        assert await anext(heard) == Gap()
        assert await anext(heard) == Wake(WakeKind.SFU, "heard")
    await down.ping()
    assert (healthy_meanwhile, down.healthy) == (False, True)
    assert core.listeners == []


def test_a_fake_needs_a_clock_or_a_core(core: StoreCore) -> None:
    with pytest.raises(ValueError, match="clock"):
        FakeStore()
    with pytest.raises(ValueError, match="clock"):
        FakeStore(float, core=core)


# --- a hostile network, step by step ---


def test_nothing_moves_until_the_test_moves_it(core: StoreCore) -> None:
    network = HostileCore(core)
    answers: list[Any] = []
    network.send("put_sfu", state(1), reply=answers.append)
    assert revisions(core) == []
    assert network.arrive()
    assert revisions(core) == [1]
    assert answers == []
    assert network.answer()
    assert [answer.accepted for answer in answers] == [True]
    assert not network.arrive()
    assert not network.answer()


def test_calls_can_overtake_each_other_and_the_newest_still_wins(core: StoreCore) -> None:
    network = HostileCore(core)
    accepted: list[bool] = []
    for revision in (1, 2, 3):
        network.send("put_sfu", state(revision), reply=lambda answer: accepted.append(answer.accepted))
    for index in (2, 0, 0):
        network.arrive(index)
    network.settle()
    assert revisions(core) == [3]
    assert accepted == [True, False, False]


def test_an_answer_tells_what_was_true_when_the_call_arrived(core: StoreCore) -> None:
    network = HostileCore(core)
    read: list[SfuState] = []
    core.put_sfu(state(1))
    network.send("read_sfus", reply=read.extend)
    network.arrive()
    core.put_sfu(state(2))
    network.answer()
    assert [each.revision for each in read] == [1]


def test_calls_and_answers_can_be_lost_and_doubled(core: StoreCore) -> None:
    network = HostileCore(core)
    answers: list[Any] = []
    network.send("enter_room", "room", PlayerRecord(player="p1", identity="bob"), reply=answers.append)
    assert network.double()
    assert network.lose_call(7)
    assert network.arrive()
    assert network.lose_answer()
    network.settle()
    assert answers == []
    assert set(core.read_room("room").players) == {"p1"}


# --- a hostile network by chance ---


async def story(seed: int) -> tuple[list[str], list[int]]:
    """What a program sees of twenty writes through a bad network; the pauses only let others go first."""
    core = StoreCore(Clock())

    async def sleep(seconds: float) -> None:
        for _ in range(int(seconds * 1000)):
            await asyncio.sleep(0)

    store = HostileStore(core, rng=random.Random(seed), sleep=sleep, loss=0.3, doubled=0.3, delay_s=0.02)

    async def write(revision: int) -> str:
        try:
            return "accepted" if (await store.put_sfu(state(revision))).accepted else "refused"
        except StoreUnavailable:
            return "lost"

    seen = await asyncio.gather(*(write(revision) for revision in range(20)))
    await store.close()
    return list(seen), revisions(core)


async def test_the_same_seed_tells_the_same_story() -> None:
    assert await story(3) == await story(3)


async def test_in_every_story_something_is_lost_or_refused_and_the_newest_that_arrived_stands() -> None:
    words: set[str] = set()
    for seed in range(20):
        seen, stands = await story(seed)
        accepted = [revision for revision, word in enumerate(seen) if word == "accepted"]
        assert stands >= [max(accepted)]
        words |= set(seen)
    assert words == {"accepted", "refused", "lost"}
