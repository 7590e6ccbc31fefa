"""The readers of one kind of thing: inboxes, which are read with `async for`, and callbacks."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

from player.shell.inbox import Inbox

log = logging.getLogger("player")
T = TypeVar("T")


class Sinks(Generic[T]):
    """Give it items with `put`. An inbox that is no longer referred to is forgotten."""

    def __init__(self) -> None:
        self._inboxes: weakref.WeakSet[Inbox[T]] = weakref.WeakSet()
        self._callbacks: list[Callable[[T], None]] = []
        self._closed = False

    def __bool__(self) -> bool:
        return bool(self._callbacks) or bool(self._inboxes)

    def inbox(self, limit: int) -> Inbox[T]:
        """A new reader, of what comes from now on; `limit`: most items that wait."""
        inbox: Inbox[T] = Inbox(limit)
        if self._closed:
            inbox.close()
        self._inboxes.add(inbox)
        return inbox

    def call(self, callback: Callable[[T], None]) -> None:
        """Call it with each item from now on."""
        self._callbacks.append(callback)

    def put(self, item: T) -> None:
        """To all readers; to none after `close`. A callback that raises is logged and stays."""
        if self._closed:
            return
        for inbox in self._inboxes:
            inbox.put(item)
        for callback in self._callbacks:
            try:
                callback(item)
            except Exception:  # the application's own; the session must outlive it
                log.exception("a callback raised")

    def close(self) -> None:
        """Nothing comes any more."""
        self._closed = True
        for inbox in self._inboxes:
            inbox.close()
