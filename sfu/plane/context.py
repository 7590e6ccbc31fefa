"""What all parts of one reference plane share."""

from __future__ import annotations

import random
from collections.abc import Callable

from sfu.plane.api import Address, Event
from sfu.plane.drops import Drops
from sfu.plane.timers import Timers

Send = Callable[[bytes, Address], None]
"""Sends a datagram, or drops it; never raises and never calls back into the plane."""


class PlaneContext:
    """Chance, timers, outgoing facts and the counters that outlive their owners."""

    __slots__ = (
        "bytes_in",
        "bytes_out",
        "drops",
        "events",
        "feedbacks_received",
        "feedbacks_sent",
        "forwarded",
        "forwarded_bytes",
        "nacks_received",
        "nacks_sent",
        "packets_in",
        "packets_out",
        "plis_received",
        "plis_sent",
        "resent",
        "rng",
        "rtx_received",
        "send",
        "ssrc",
        "timers",
    )

    def __init__(self, *, send: Send, rng: random.Random) -> None:
        self.send = send
        self.rng = rng
        self.ssrc = rng.randrange(1, 1 << 32)
        """Our SSRC as a sender of feedback."""
        self.timers = Timers()
        self.events: list[Event] = []
        self.drops: Drops = Drops()
        self.packets_in = self.bytes_in = self.packets_out = self.bytes_out = 0
        self.forwarded = self.forwarded_bytes = self.resent = 0
        self.nacks_sent = self.nacks_received = self.plis_sent = self.plis_received = self.rtx_received = 0
        self.feedbacks_sent = self.feedbacks_received = 0
