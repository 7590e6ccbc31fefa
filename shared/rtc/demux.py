"""What a datagram on the media port is, by its first bytes (RFC 7983 section 7, RFC 5761 section 4)."""

from __future__ import annotations

from enum import StrEnum

MAX_DATAGRAM = 1500
"""Longest datagram a peer has reason to send [bytes]: an Ethernet frame. Longer ones are dropped unread."""


class Traffic(StrEnum):
    """The kinds of datagram on the one media port."""

    STUN = "stun"
    DTLS = "dtls"
    MEDIA = "media"
    """SRTP or SRTCP."""
    OTHER = "other"
    """Nothing of ours: empty, too long, ZRTP, TURN channels."""


def classify(datagram: bytes) -> Traffic:
    """Sort a datagram by its first byte."""
    if not 12 <= len(datagram) <= MAX_DATAGRAM:
        return Traffic.OTHER
    first = datagram[0]
    if 128 <= first <= 191:
        return Traffic.MEDIA
    if first <= 3:
        return Traffic.STUN
    if 20 <= first <= 63:
        return Traffic.DTLS
    return Traffic.OTHER


def is_rtcp(packet: bytes) -> bool:
    """True when a media datagram of at least two bytes is RTCP: packet types 192..223 (RFC 5761 section 4)."""
    return 192 <= packet[1] <= 223
