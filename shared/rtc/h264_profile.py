"""What an H.264 `profile-level-id` says: the profile and the level, of which both have several spellings.

`42e01f` and `42c01f` are the same thing; compared as strings they are not (RFC 6184 section 8.1, table 5).
"""

from __future__ import annotations

import re
from enum import IntEnum
from typing import NamedTuple

_ID = re.compile(r"[0-9A-Fa-f]{6}")
LEVEL_1B = 9
"""Level 1b as a number: High says it so, the lower profiles say 11 with constraint_set3 (RFC 6184 section 8.1)."""
_CONSTRAINT_SET3 = 0x10


class H264Profile(IntEnum):
    """Profiles in the order in which decoders can be relied on to have them, the surest first."""

    CONSTRAINED_BASELINE = 0
    """The one that every WebRTC endpoint with H.264 has (RFC 7742 section 6.2)."""
    BASELINE = 1
    """Browsers offer it and send constrained baseline."""
    MAIN = 2
    CONSTRAINED_HIGH = 3
    HIGH = 4
    OTHER = 5


class ProfileLevel(NamedTuple):
    """Equal for two spellings of the same profile and level."""

    profile: H264Profile
    level: int
    """Ten times the level's number; `LEVEL_1B` for level 1b."""
    raw: int = 0
    """The first two bytes of a profile that has no name here."""


_KNOWN = (
    (0x42, 0x4F, 0x40, H264Profile.CONSTRAINED_BASELINE),
    (0x4D, 0x8F, 0x80, H264Profile.CONSTRAINED_BASELINE),
    (0x58, 0xCF, 0xC0, H264Profile.CONSTRAINED_BASELINE),
    (0x42, 0x4F, 0x00, H264Profile.BASELINE),
    (0x58, 0xCF, 0x80, H264Profile.BASELINE),
    (0x4D, 0xAF, 0x00, H264Profile.MAIN),
    (0x64, 0xFF, 0x0C, H264Profile.CONSTRAINED_HIGH),
    (0x64, 0xFF, 0x00, H264Profile.HIGH),
)
"""profile_idc, which bits of profile-iop count, what they are, and the profile that this is."""
_LEVEL_1B_BY_FLAG = (0x42, 0x4D, 0x58)


def read(profile_level_id: str) -> ProfileLevel | None:
    """The profile and level of six hex digits in any case; None for what is not that."""
    if not _ID.fullmatch(profile_level_id):
        return None
    idc, iop, level = bytes.fromhex(profile_level_id)
    if level == 11 and iop & _CONSTRAINT_SET3 and idc in _LEVEL_1B_BY_FLAG:
        level = LEVEL_1B
    for known, mask, value, profile in _KNOWN:
        if idc == known and iop & mask == value:
            return ProfileLevel(profile, level)
    return ProfileLevel(H264Profile.OTHER, level, idc << 8 | iop)


def same_profile(one: str, other: str) -> bool:
    """True when two `profile-level-id` name the same profile, at whatever level: an answer may state its own level
    (RFC 6184 section 8.2.2)."""
    first, second = read(one), read(other)
    if first is None or second is None:
        return one.lower() == other.lower()
    return (first.profile, first.raw) == (second.profile, second.raw)
