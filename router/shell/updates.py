"""Sends each room's changes as one `room-update` per interval, however many there were."""

from __future__ import annotations

import asyncio

from router.core.room import Room
from router.shell.state import RouterState

INTERVAL_S = 0.04
"""Short against a move's steps, long against a burst of joins."""


class Updates:
    """Gathers rooms that have changed."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._changed: dict[str, None] = {}
        self._timer: asyncio.TimerHandle | None = None

    def soon(self, room: Room) -> None:
        """Send what has changed in `room` at the end of the interval."""
        if not room.changed:
            return
        self._changed[room.name] = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(INTERVAL_S, self._flush)

    def _flush(self) -> None:
        self._timer = None
        changed, self._changed = self._changed, {}
        for name in changed:
            room = self._state.rooms.get(name)
            if room is not None:
                self._state.teller.update(room)

    def stop(self) -> None:
        """No more updates."""
        if self._timer is not None:
            self._timer.cancel()
