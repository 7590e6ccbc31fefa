"""What the first bytes of an Opus packet say of its length (RFC 6716 section 3.1), and a packet of silence."""

from __future__ import annotations

CLOCK = 48_000
"""RTP clock rate of Opus, whatever it was made from (RFC 7587 section 4.1) [Hz]."""
SILENCE = bytes.fromhex("f8fffe")
"""20 ms of silence, mono: a CELT frame with nothing in it."""
_SILK_MS = (10.0, 20.0, 40.0, 60.0)
_HYBRID_MS = (10.0, 20.0)
_CELT_MS = (2.5, 5.0, 10.0, 20.0)
MAX_FRAMES = 48
"""48 frames of 2.5 ms are the 120 ms that a packet may last."""


def ticks(packet: bytes) -> int:
    """Playing time of a packet in ticks of `CLOCK`; 0 for one that is none."""
    if not packet:
        return 0
    return int(_frame_ms(packet[0] >> 3) * CLOCK / 1000) * _count(packet)


def _frame_ms(config: int) -> float:
    if config < 12:
        return _SILK_MS[config & 3]
    return _HYBRID_MS[config & 1] if config < 16 else _CELT_MS[config & 3]


def _count(packet: bytes) -> int:
    code = packet[0] & 3
    if code < 3:
        return 1 if code == 0 else 2
    return min(packet[1] & 0x3F, MAX_FRAMES) if len(packet) > 1 else 0
