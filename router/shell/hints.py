"""What the next exchange with Redis tells the other routers, and whether it is to be now."""

from __future__ import annotations

import asyncio

from shared.store.answers import Wake

MAX_HINTS = 1000
"""Hints that wait; further ones are dropped, and other routers learn of it by their own exchange."""


class Hints:
    """Filled by the parts that have news, emptied by `Sync`."""

    def __init__(self) -> None:
        self.urgent = asyncio.Event()
        self.waiting: list[Wake] = []

    def hurry(self) -> None:
        """Exchange now rather than at the end of the interval."""
        self.urgent.set()

    def add(self, wake: Wake) -> None:
        """Publish a hint with the next exchange, which is now."""
        if len(self.waiting) < MAX_HINTS:
            self.waiting.append(wake)
        self.hurry()
