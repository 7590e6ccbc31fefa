"""NAL units in an H.264 stream (RFC 6184 sections 5.6 to 5.8): where a key frame begins, and parameter sets."""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

SPS, PPS = 7, 8
MAX_SETS = 8
"""Parameter sets read of one packet or one description; encoders send two."""

MAX_SET_ID = 255
"""Of a PPS; an SPS has 31 (H.264 section 7.4.2)."""

_IDR, _STAP_A, _FU_A = 5, 24, 28


@dataclass(frozen=True, slots=True)
class Units:
    """What one packet carries."""

    has_idr: bool
    """An IDR picture or a slice of one begins."""
    has_sps: bool
    """A sequence parameter set is whole or begins."""
    sets: tuple[bytes, ...]
    """The whole parameter sets, in order, the first `MAX_SETS`."""


NOTHING = Units(False, False, ())


def read(payload: bytes) -> Units:
    """Malformed payloads carry nothing; an aggregate counts up to where it breaks."""
    if not payload:
        return NOTHING
    kind = payload[0] & 0x1F
    if kind == _FU_A:
        begins = payload[1] & 0x1F if len(payload) > 1 and payload[1] & 0x80 else 0
        return Units(begins == _IDR, begins == SPS, ())
    units = _aggregated(payload) if kind == _STAP_A else [payload]
    kinds = [unit[0] & 0x1F for unit in units]
    sets = [unit for unit, kind in zip(units, kinds, strict=True) if kind in (SPS, PPS)]
    return Units(_IDR in kinds, SPS in kinds, tuple(sets[:MAX_SETS]))


def set_key(unit: bytes) -> int | None:
    """Names a parameter set by its kind and its id: the newest one of a name counts. None when it can't be read.

    Both ids come so early that no emulation prevention can be before them (H.264 sections 7.3.2.1.1, 7.3.2.2).
    """
    kind = unit[0] & 0x1F
    if kind not in (SPS, PPS):
        return None
    identifier = _exp_golomb(unit, 4 if kind == SPS else 1)
    if identifier is None or (kind == SPS and identifier > 31):
        return None
    return kind << 8 | identifier


def aggregate(units: list[bytes]) -> bytes:
    """One STAP-A of all, of the highest importance among them."""
    importance = max(unit[0] & 0x60 for unit in units)
    return bytes((importance | _STAP_A,)) + b"".join(len(unit).to_bytes(2, "big") + unit for unit in units)


def described_sets(text: str) -> tuple[bytes, ...]:
    """The parameter sets of an SDP's `sprop-parameter-sets` (RFC 6184 section 8.1); what can't be read is left out."""
    found = []
    for part in text.split(",")[:MAX_SETS] if text else ():
        try:
            unit = base64.b64decode(part, validate=True)
        except (binascii.Error, ValueError):
            continue
        if unit and unit[0] & 0x1F in (SPS, PPS):
            found.append(unit)
    return tuple(found)


def _exp_golomb(unit: bytes, start: int) -> int | None:
    """An unsigned number of at most `MAX_SET_ID` that begins with byte `start`; None for a larger or a cut one."""
    bits = int.from_bytes(unit[start : start + 3].ljust(3, b"\0"), "big")
    zeros = 24 - bits.bit_length()
    if zeros > 8 or 8 * (len(unit) - start) < 2 * zeros + 1:
        return None
    number = (bits >> (23 - 2 * zeros)) - 1
    return number if number <= MAX_SET_ID else None


def _aggregated(payload: bytes) -> list[bytes]:
    units = []
    position = 1
    while position + 2 < len(payload):
        length = int.from_bytes(payload[position : position + 2], "big")
        if length == 0 or position + 2 + length > len(payload):
            break
        units.append(payload[position + 2 : position + 2 + length])
        position += 2 + length
    return units
