"""What waits to be written to a TCP connection: bounded in bytes and in age, so that a slow reader slows no other."""

from __future__ import annotations

from collections import deque

MAX_BYTES = 256 * 1024
"""Half a second of 4 Mbit/s, besides what the kernel holds."""

MAX_AGE_S = 1.0
"""Older media is of no use: a player would rather have the newest."""


class StreamQueue:
    """`put` datagrams in their frames, write what `head` says, and tell how much of it was `written`."""

    __slots__ = ("_begun", "_waiting", "bytes")

    def __init__(self) -> None:
        self._waiting: deque[tuple[memoryview, float]] = deque()
        self._begun = False
        """A part of the oldest is written: then the rest must be, or the reader can't find the next frame."""
        self.bytes = 0

    def put(self, frame: bytes, *, now: float) -> bool:
        """False: there is no room, and it is dropped."""
        if self.bytes + len(frame) > MAX_BYTES:
            return False
        self._waiting.append((memoryview(frame), now))
        self.bytes += len(frame)
        return True

    def expire(self, *, now: float) -> int:
        """Drop what is too old; how many."""
        kept_back = [self._waiting.popleft()] if self._begun else []
        dropped = 0
        while self._waiting and now - self._waiting[0][1] > MAX_AGE_S:
            self.bytes -= len(self._waiting.popleft()[0])
            dropped += 1
        self._waiting.extendleft(kept_back)
        return dropped

    def head(self) -> list[memoryview]:
        """The oldest, some 64 at most."""
        return [self._waiting[at][0] for at in range(min(64, len(self._waiting)))]

    def written(self, count: int) -> None:
        """So many bytes of the head have been written."""
        self.bytes -= count
        while count:
            frame, at = self._waiting.popleft()
            self._begun = count < len(frame)
            if self._begun:
                self._waiting.appendleft((frame[count:], at))
                return
            count -= len(frame)
