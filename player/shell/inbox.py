"""A bounded queue that is read with `async for`: a slow reader loses the oldest, and holds nothing up."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class Inbox(Generic[T]):
    """For one reader. `missed` counts what it lost by being slow."""

    def __init__(self, limit: int) -> None:
        """`limit`: most items that wait."""
        self.missed = 0
        self._items: deque[T] = deque(maxlen=limit)
        self._there = asyncio.Event()
        self._closed = False

    def put(self, item: T) -> None:
        """Add an item; nothing after `close`."""
        if not self._closed:
            self.missed += len(self._items) == self._items.maxlen
            self._items.append(item)
            self._there.set()

    def close(self) -> None:
        """No item comes any more; the reader gets what waits, and then its loop ends."""
        self._closed = True
        self._there.set()

    def __aiter__(self) -> Inbox[T]:
        return self

    async def __anext__(self) -> T:
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            self._there.clear()
            await self._there.wait()
        return self._items.popleft()
