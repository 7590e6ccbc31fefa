"""Operators' commands against a real Redis, with a stand-in for the SFU that follows them, or does not."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator

import msgspec
import pytest

from operators.errors import NotApplied
from operators.shell.operations import command, known_state, open_store, order_exit, players_on, wait_gone
from operators.shell.target import Target
from shared.errors import Refused, StoreUnavailable
from shared.records import CommandVerb, Drain, ExitScope, SfuState
from shared.store.store import Store

ONLINE = SfuState(address="ws://a", sfu="a", incarnation=1, revision=1)


@pytest.fixture
async def store(redis_url: str, fleet: str) -> AsyncIterator[Store]:
    """A store with one online SFU, `a`."""
    async with open_store(Target(redis=redis_url, fleet=fleet)) as made:
        await made.put_sfu(ONLINE)
        yield made


async def follow(store: Store, *, drain: Drain | None, status: str | None) -> None:
    """An obedient SFU: takes on the state that one command asks for."""
    async for _ in store.wakes(rng=random.Random(1)):  # the first is a gap: read
        if await store.read_commands(["a"]):
            break
    await store.put_sfu(msgspec.structs.replace(ONLINE, revision=2, status=status, drain=drain))


async def test_a_cordon_returns_when_the_sfu_has_followed(store: Store) -> None:
    obedient = asyncio.create_task(follow(store, drain=Drain(exit_when_empty=False), status="CORDONED"))
    await command(store, CommandVerb.CORDON, "a", reason="kernel", within_s=20)
    assert (await known_state(store, "a")).status == "CORDONED"
    (given,) = await store.read_commands(["a"])
    assert given.reason == "kernel"
    assert "@" in given.by
    await obedient


async def test_a_cordon_that_its_sfu_does_not_follow_is_a_loud_error(store: Store) -> None:
    with pytest.raises(NotApplied, match="cordon of a was not applied"):
        await command(store, CommandVerb.CORDON, "a", within_s=0.2)


async def test_a_command_for_an_unknown_sfu_names_the_known_ones_and_is_not_given(store: Store) -> None:
    for verb in (CommandVerb.CORDON, CommandVerb.UNCORDON):
        with pytest.raises(Refused, match="'b'; the fleet has a"):
            await command(store, verb, "b", within_s=0.2)
    assert await store.read_commands(["b"]) == []


async def test_an_sfu_that_got_sigterm_is_not_uncordoned(store: Store) -> None:
    await store.put_sfu(msgspec.structs.replace(ONLINE, revision=2, status="CORDONED", drain=Drain(cause="sigterm")))
    with pytest.raises(Refused, match="SIGTERM"):
        await command(store, CommandVerb.UNCORDON, "a", within_s=0.2)
    assert await store.read_commands(["a"]) == []


async def test_an_exit_order_is_dated_and_waits_for_the_record_to_go(store: Store) -> None:
    order = await order_exit(store, ExitScope.SFU, "a")
    assert order.at > 0
    with pytest.raises(NotApplied, match="exit of a"):
        await wait_gone(store, ["a"], within_s=0.2)
    await store.remove_sfu("a", 1)
    await wait_gone(store, ["a"], within_s=5)


async def test_without_a_redis_the_error_comes_at_once() -> None:
    with pytest.raises(StoreUnavailable):
        async with open_store(Target(redis="redis://127.0.0.1:1/0", fleet="f")):
            raise AssertionError("there is no server on port 1")


async def test_who_is_on_an_sfu_is_not_known_when_no_router_answers(store: Store) -> None:
    import aiohttp

    async with aiohttp.ClientSession() as session:
        assert await players_on(store, session, "a") is None
