"""What the store is asked for on behalf of the API: seldom, once for all who ask, and few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from typing import Generic, TypeVar

from shared.errors import StoreUnavailable

FRESH_FOR_S = 0.5
"""For this long one reading is good for all who ask; the fleet page asks every other second."""
AT_ONCE = 2
"""Readings of one router under way: the store has players to place."""
MOST_KEPT = 4
"""Answers kept; a history of a thousand placements takes some MiB."""
MOST_WAITING = 32
"""Different questions under way; one more is refused, to be asked again later."""
MAX_ROWS = 1000
"""Rows of an answer at most."""
STEPS = (50, MAX_ROWS)
"""How many rows are read; of what is read, an answer has as many as were asked for."""
NO_NUMBER = {"error": "last must be a number"}

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Readings(Generic[K, V]):
    """Readings of one kind. Those who ask for the same at the same time share one, its failure included."""

    def __init__(
        self, read: Callable[[K], Awaitable[V]], *, clock: Callable[[], float], gate: asyncio.Semaphore
    ) -> None:
        """`gate` is shared by all kinds of one router."""
        self._read = read
        self._clock = clock
        self._gate = gate
        self._kept: dict[K, tuple[float, V]] = {}
        self._under_way: dict[K, asyncio.Task[V]] = {}

    async def of(self, key: K) -> V:
        """What the store says, half a second old at most. Raises what reading raises, and `StoreUnavailable` when too
        much is being read already."""
        kept = self._kept.get(key)
        if kept is not None and self._clock() - kept[0] < FRESH_FOR_S:
            return kept[1]
        task = self._under_way.get(key)
        if task is None:
            if len(self._under_way) >= MOST_WAITING:
                raise StoreUnavailable(operation="read for the API", detail="too many different questions at once")
            task = self._under_way[key] = asyncio.create_task(self._fetch(key))
            task.add_done_callback(_seen)
        # One who gives up waiting leaves the reading to the others.
        return await asyncio.shield(task)

    async def _fetch(self, key: K) -> V:
        try:
            async with self._gate:
                began = self._clock()
                value = await self._read(key)
        finally:
            del self._under_way[key]
        self._kept.pop(key, None)
        self._kept[key] = (began, value)
        if len(self._kept) > MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        return value


def _seen(task: asyncio.Task[V]) -> None:
    """Those who wait hear of a failure; it is no loss when all of them have gone."""
    if not task.cancelled():
        task.exception()


def rows_asked(query: Mapping[str, str], *, default: int) -> int | None:
    """What `?last=N` asks for, within what an answer may have; None when it is no number."""
    try:
        return max(0, min(MAX_ROWS, int(query.get("last", default))))
    except ValueError:
        return None


def rows_read(asked: int) -> int:
    """How many rows are read for that many: few numbers, so that many questions share a reading."""
    return next(step for step in STEPS if step >= asked)
