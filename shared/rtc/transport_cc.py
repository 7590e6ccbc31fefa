"""Feedback of transport-wide congestion control: which packets of a transport arrived, and when.

RTCP packet type 205, format 15 (draft-holmer-rmcat-transport-wide-cc-extensions-01 section 3.1). Times
are ticks of 250 us.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from shared.errors import BadPacket

FORMAT = 15
TICKS_PER_S = 4000
REFERENCE_TICKS = 256
"""The reference time counts 64 ms."""

MAX_REPORTED = 8192
"""Packets read from one feedback: more than any history of sent packets holds is no honest report."""

MAX_RUN = 0x1FFF
_LOST, _SMALL, _LARGE = 0, 1, 2
_ONE_BIT, _TWO_BIT = 14, 7
"""Symbols in a status vector chunk, by the width of a symbol."""

_HEAD = struct.Struct("!BBHIIHHI")
_FIXED = struct.Struct("!IIHHI")
_CHUNK = struct.Struct("!H")
_LARGE_DELTA = struct.Struct("!h")


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportFeedback:
    """What one feedback says of `base` and the sequence numbers after it."""

    sender: int
    media: int
    base: int
    reference: int
    """24 bits, in 64 ms: a time of the receiver's own clock."""
    count: int
    """Number of the feedback packet, modulo 256."""
    arrivals: tuple[int | None, ...]
    """Ticks since the reference time, for each sequence number; None for a packet that has not arrived."""


def delta_fits(ticks: int) -> bool:
    """Whether a feedback can say that a packet came so long after the one before it."""
    return -0x8000 <= ticks <= 0x7FFF


def build(*, sender: int, media: int, base: int, count: int, arrivals: Sequence[int | None]) -> bytes:
    """A feedback packet about the sequence numbers from `base` on.

    `arrivals` are ticks of a clock of ours, None for what has not come; at least one has, and each fits after the one
    before it, as `delta_fits` says.
    """
    reference = next(ticks for ticks in arrivals if ticks is not None) // REFERENCE_TICKS
    last = reference * REFERENCE_TICKS
    symbols: list[int] = []
    deltas = bytearray()
    for ticks in arrivals:
        if ticks is None:
            symbols.append(_LOST)
            continue
        delta, last = ticks - last, ticks
        if 0 <= delta <= 0xFF:
            symbols.append(_SMALL)
            deltas.append(delta)
        else:
            symbols.append(_LARGE)
            deltas += _LARGE_DELTA.pack(delta)
    tail = b"".join(_CHUNK.pack(chunk) for chunk in _chunks(symbols)) + deltas
    tail += bytes(-len(tail) % 4)
    words = (_HEAD.size + len(tail)) // 4 - 1
    times = (reference & 0xFFFFFF) << 8 | count & 0xFF
    head = _HEAD.pack(0x80 | FORMAT, 205, words, sender, media, base & 0xFFFF, len(symbols), times)
    return head + tail


def _chunks(symbols: list[int]) -> Iterator[int]:
    """A run where that says at least as much as a vector does, else the narrower vector that can say it."""
    at = 0
    while at < len(symbols):
        left = len(symbols) - at
        run = _run(symbols, at)
        following = symbols[at : at + _ONE_BIT]
        if run < min(left, _ONE_BIT) and _LARGE not in following:
            yield 0x8000 | sum(symbol << (_ONE_BIT - 1 - bit) for bit, symbol in enumerate(following))
            at += _ONE_BIT
        elif run < min(left, _TWO_BIT):
            pairs = enumerate(following[:_TWO_BIT])
            yield 0xC000 | sum(symbol << 2 * (_TWO_BIT - 1 - pair) for pair, symbol in pairs)
            at += _TWO_BIT
        else:
            yield symbols[at] << 13 | run
            at += run


def _run(symbols: list[int], at: int) -> int:
    end = min(len(symbols), at + MAX_RUN)
    stop = at + 1
    while stop < end and symbols[stop] == symbols[at]:
        stop += 1
    return stop - at


def read(body: bytes) -> TransportFeedback:
    """Read a feedback packet without its four-byte head and padding. Raises `BadPacket`."""
    if len(body) < _FIXED.size:
        raise BadPacket(protocol="rtcp", detail="transport feedback is too short")
    sender, media, base, reported, times = _FIXED.unpack_from(body)
    if reported > MAX_REPORTED:
        raise BadPacket(protocol="rtcp", detail="transport feedback of too many packets")
    symbols: list[int] = []
    position = _FIXED.size
    while len(symbols) < reported:
        if position + 2 > len(body):
            raise BadPacket(protocol="rtcp", detail="transport feedback with too few chunks")
        (chunk,) = _CHUNK.unpack_from(body, position)
        symbols += _symbols(chunk, reported - len(symbols))
        position += 2
    if position + sum(symbols) > len(body):
        raise BadPacket(protocol="rtcp", detail="transport feedback with too few deltas")
    arrivals = tuple(_arrivals(symbols, body, position))
    return TransportFeedback(
        sender=sender, media=media, base=base, reference=times >> 8, count=times & 0xFF, arrivals=arrivals
    )


def _symbols(chunk: int, left: int) -> list[int]:
    """The statuses a chunk says, at most `left`: its rest is filling."""
    if not chunk & 0x8000:
        symbols = [chunk >> 13] * min(chunk & MAX_RUN, left)
    elif not chunk & 0x4000:
        symbols = [chunk >> (_ONE_BIT - 1 - bit) & 1 for bit in range(min(_ONE_BIT, left))]
    else:
        symbols = [chunk >> 2 * (_TWO_BIT - 1 - pair) & 3 for pair in range(min(_TWO_BIT, left))]
    if not symbols or max(symbols) > _LARGE:
        raise BadPacket(protocol="rtcp", detail="transport feedback with an empty run or a reserved status")
    return symbols


def _arrivals(symbols: list[int], body: bytes, position: int) -> Iterator[int | None]:
    ticks = 0
    for symbol in symbols:
        if symbol == _LOST:
            yield None
            continue
        ticks += body[position] if symbol == _SMALL else _LARGE_DELTA.unpack_from(body, position)[0]
        position += symbol
        yield ticks
