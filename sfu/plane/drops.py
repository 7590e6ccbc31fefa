"""Why the plane drops packets: the bounded labels of its drop counters."""

from __future__ import annotations

from collections import Counter
from enum import StrEnum


class DropReason(StrEnum):
    """Keys of `PlaneTotals.drops`. The last five only a plane with its own thread has."""

    UNKNOWN_ADDRESS = "unknown-address"
    NO_KEYS = "no-keys"
    """Media before DTLS has finished."""
    NOT_AUTHENTIC = "not-authentic"
    """SRTP refused it: forged, replayed or for other keys."""
    RETIRED_SSRC = "retired-ssrc"
    """Under an SSRC that was retired for newer ones, which can only be a replay."""
    BAD_RTP = "bad-rtp"
    BAD_RTCP = "bad-rtcp"
    BAD_PAYLOAD = "bad-payload"
    """The payload of a VP8 packet can't be read."""
    UNKNOWN_SSRC = "unknown-ssrc"
    FOREIGN_CODEC = "foreign-codec"
    """A payload type that its producer has not negotiated."""
    DUPLICATE = "duplicate"
    LATE = "late"
    PROBE = "probe"
    """RTX or padding that carries nothing new."""
    NOT_SENT = "not-sent"
    """Could not be protected, for its length."""
    RESEND_REPEATED = "resend-repeated"
    RESEND_OVER_BUDGET = "resend-over-budget"
    RESEND_AWAITED = "resend-awaited"
    """Asked for while we miss it ourselves: it is forwarded as soon as it comes."""
    RESEND_UNKNOWN = "resend-unknown"
    """Asked for, and not in the cache (any more)."""
    SEND_BUFFER_FULL = "send-buffer-full"
    """The kernel had no room for it."""
    SEND_FAILED = "send-failed"
    """The kernel refused it."""
    QUEUE_FULL = "queue-full"
    """A fact or a datagram for Python, which has not looked for too long."""
    NO_MEMORY = "no-memory"
    UNREADABLE = "unreadable"
    """Neither STUN, DTLS nor media, or too long."""


Drops = Counter[DropReason]
