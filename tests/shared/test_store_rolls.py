"""A roll's plan on a real server: one command goes on with it, a late write of another is refused, the rule ends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from shared.errors import BadRecord, Fenced
from shared.keys import Keys
from shared.roll_records import RollRecord, RollStep
from shared.store.rolls import ROLL_LEASE_S
from shared.store.store import Store

PLAN = RollRecord(roll="r1", version="v2", steps=(RollStep(old="a", new="a-v2"),))


@pytest.fixture
async def store(redis_url: str, fleet: str) -> AsyncIterator[Store]:
    made = Store(redis_url, fleet=fleet, timeout_s=10.0)
    yield made
    await made.close()


async def test_one_command_holds_the_roll_and_another_is_told_which(store: Store) -> None:
    mine = await store.take_roll("ann")
    assert mine.mine
    other = await store.take_roll("bob")
    assert (other.mine, other.leader.controller) == (False, "ann")
    assert other.leader.left_s > ROLL_LEASE_S / 2


async def test_the_plan_is_there_for_the_next_command(store: Store) -> None:
    token = (await store.take_roll("ann")).leader.token
    await store.put_roll("ann", token, PLAN, rolled_next=["b", "a"])
    kept = await store.read_roll()
    assert kept.plan == PLAN
    assert kept.holder is not None
    assert kept.holder.controller == "ann"
    assert kept.at > 0
    assert await store.read_roll_next() == {"a", "b"}
    await store.release_roll("ann", token)
    assert await store.read_roll_next() == frozenset()
    kept = await store.read_roll()
    assert (kept.plan, kept.holder) == (PLAN, None)


async def test_the_rule_ends_with_the_lease_and_the_plan_stays(store: Store, redis_url: str, fleet: str) -> None:
    token = (await store.take_roll("ann")).leader.token
    await store.put_roll("ann", token, PLAN, rolled_next=["a"])
    keys, client = Keys(fleet), Redis.from_url(redis_url)
    try:
        for key in (keys.roll_next, keys.roll_lease):
            assert 0 < await client.pttl(key) <= ROLL_LEASE_S * 1000
        assert await client.ttl(keys.roll) > 24 * 3600
    finally:
        await client.aclose()


async def test_a_command_that_was_taken_over_writes_no_more(store: Store) -> None:
    old = (await store.take_roll("ann")).leader.token
    await store.put_roll("ann", old, PLAN)
    new = await store.take_roll("bob", force=True)
    assert new.mine
    with pytest.raises(Fenced):
        await store.put_roll("ann", old, PLAN, rolled_next=["a"])
    assert await store.read_roll_next() == frozenset()
    await store.release_roll("ann", old)
    kept = await store.read_roll()
    assert kept.holder is not None
    assert kept.holder.controller == "bob"


async def test_what_is_no_plan_is_said_and_no_rule(store: Store, redis_url: str, fleet: str) -> None:
    keys, client = Keys(fleet), Redis.from_url(redis_url)
    try:
        await client.set(keys.roll, b"{")
        await client.set(keys.roll_next, b"[1]")
    finally:
        await client.aclose()
    with pytest.raises(BadRecord):
        await store.read_roll()
    assert await store.read_roll_next() == frozenset()
    assert store.counts["bad-record"] == 2
