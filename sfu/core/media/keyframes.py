"""When to ask a publisher's layer for a key frame: requests merged, paced, and repeated until one comes (M3).

Without pacing, many viewers' PLIs make an encoder send only key frames (versatica/mediasoup, janus-gateway#3422,
jitsi-videobridge#2442); without repeating, one lost PLI freezes a new viewer for good.
"""

from __future__ import annotations

LOW_LAYER_INTERVAL_S = 0.5
"""Least time between two requests for the lowest layer, or for a track without layers."""

HIGH_LAYER_INTERVAL_S = 1.0
"""The same for higher layers, whose key frames are dear."""


LAPSE_S = 1.5
"""A request that is not made again for this long is dropped: viewers that still wait ask several times a second,
those that left or changed layer do not."""


class KeyframeRequests:
    """The open request for one layer. `wanted` is true while a consumer waits for a key frame."""

    __slots__ = ("_asked_at", "_interval_s", "_sent_at", "wanted")

    def __init__(self, *, interval_s: float) -> None:
        self._interval_s = interval_s
        self._asked_at = 0.0
        self._sent_at: float | None = None
        self.wanted = False

    def request(self, *, now: float) -> bool:
        """A consumer needs a key frame; True when a PLI is to be sent at once."""
        self.wanted = True
        self._asked_at = now
        return self.due(now=now)

    def due(self, *, now: float) -> bool:
        """True when a PLI is to be sent now; it counts as sent then."""
        if now - self._asked_at > LAPSE_S:
            self.wanted = False
        if not self.wanted or now < self.next_at(now=now):
            return False
        self._sent_at = now
        return True

    def next_at(self, *, now: float) -> float:
        """When the open request may be sent (again)."""
        return now if self._sent_at is None else self._sent_at + self._interval_s

    def keyframe_seen(self) -> None:
        """A key frame began: all that waited have it."""
        self.wanted = False
