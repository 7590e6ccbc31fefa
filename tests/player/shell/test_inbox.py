"""A slow reader loses the oldest, is told how many, and holds nothing up."""

from __future__ import annotations

import asyncio
import gc

import pytest

from player.shell.inbox import Inbox
from player.shell.sinks import Sinks


async def test_a_slow_reader_loses_the_oldest_with_a_count() -> None:
    inbox: Inbox[int] = Inbox(3)
    for number in range(5):
        inbox.put(number)
    inbox.close()
    assert [number async for number in inbox] == [2, 3, 4]
    assert inbox.missed == 2


async def test_a_reader_waits_and_its_loop_ends_with_the_session() -> None:
    sinks: Sinks[int] = Sinks()
    inbox = sinks.inbox(10)
    reading = asyncio.create_task(_all(inbox))
    await asyncio.sleep(0)
    sinks.put(1)
    await asyncio.sleep(0)
    sinks.put(2)
    sinks.close()
    assert await reading == [1, 2]
    assert [number async for number in sinks.inbox(1)] == [], "a reader that comes after the end"


async def _all(inbox: Inbox[int]) -> list[int]:
    return [number async for number in inbox]


async def test_a_reader_that_is_gone_costs_nothing() -> None:
    sinks: Sinks[int] = Sinks()
    inbox: Inbox[int] | None = sinks.inbox(10)
    assert sinks
    del inbox
    gc.collect()
    assert not sinks


async def test_a_callback_that_raises_is_logged_and_called_again(caplog: pytest.LogCaptureFixture) -> None:
    sinks: Sinks[int] = Sinks()
    heard: list[int] = []
    sinks.call(lambda number: 1 // number and None)
    sinks.call(heard.append)
    for number in (0, 1, 0):
        sinks.put(number)
    assert heard == [0, 1, 0]
    assert caplog.text.count("a callback raised") == 2
