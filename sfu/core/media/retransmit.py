"""Whether to answer a consumer's NACK: once per round trip, and within a budget (M3)."""

from __future__ import annotations

from enum import StrEnum

DEFAULT_RTT_S = 0.05
"""Assumed until the peer's reports tell the round trip."""

MIN_REPEAT_S = 0.02
MAX_REPEAT_S = 0.5
REMEMBERED = 1000
"""Sequence numbers whose last resend is remembered: as many as the ring holds."""

BUDGET_SHARE = 0.5
"""Resends earned per packet forwarded. A burst of retransmissions hurts a poor downlink more than the loss did
(versatica/mediasoup#1934)."""

BUDGET_MAX = 200.0
BUDGET_START = 50.0


class Resend(StrEnum):
    """The verdict on one asked-for packet."""

    SEND = "send"
    REPEATED = "repeated"
    """Sent less than a round trip ago: this NACK left before it arrived."""
    OVER_BUDGET = "over-budget"


class ResendGate:
    """Decides for one consumer. `forwarded` counts what it was sent, resends left out; it earns the budget."""

    __slots__ = ("_earned_at", "_sent", "_tokens")

    def __init__(self) -> None:
        # Made on the first NACK: most consumers never send one.
        self._sent: list[tuple[int, float] | None] | None = None
        self._tokens = BUDGET_START
        self._earned_at = 0

    def ask(self, out_index: int, *, rtt_s: float | None, forwarded: int, now: float) -> Resend:
        if self._sent is None:
            self._sent = [None] * REMEMBERED
        place = out_index % REMEMBERED
        last = self._sent[place]
        wait = min(max(rtt_s if rtt_s is not None else DEFAULT_RTT_S, MIN_REPEAT_S), MAX_REPEAT_S)
        if last is not None and last[0] == out_index and now - last[1] < wait:
            return Resend.REPEATED
        self._tokens = min(BUDGET_MAX, self._tokens + (forwarded - self._earned_at) * BUDGET_SHARE)
        self._earned_at = forwarded
        if self._tokens < 1.0:
            return Resend.OVER_BUDGET
        self._tokens -= 1.0
        self._sent[place] = (out_index, now)
        return Resend.SEND
