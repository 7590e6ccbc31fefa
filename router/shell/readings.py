"""What the store is asked for on behalf of whoever asks the API: seldom, once for all who ask, and few at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from shared.errors import StoreUnavailable

FRESH_FOR_S = 0.5
"""As long is one reading good for everybody; the fleet page asks every other second."""
AT_ONCE = 2
"""Readings of one router under way: the store has players to place."""
MOST_KEPT = 4
"""Answers kept; a history of a thousand placements takes some MiB."""
MOST_WAITING = 32
"""Different questions under way; whoever asks one more is told to come again."""

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
        # Whoever gives up waiting leaves the reading to the others.
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
    """Those who wait hear of a failure; when all have gone, nobody needs to."""
    if not task.cancelled():
        task.exception()
