"""Which producer and layer an unknown SSRC belongs to, decided once per SSRC by a ladder of named rules.

Browsers tell simulcast SSRCs only by MID and RID header extensions on the first packets; GStreamer sends none of them,
but tells SSRCs in SDP or uses a payload type that only one of its tracks has.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class BindReason(StrEnum):
    """The rule that bound an SSRC, or why none did."""

    SDP_SSRC = "sdp-ssrc"
    MID_RID = "mid-rid"
    MID = "mid"
    RID = "rid"
    PAYLOAD_TYPE = "payload-type"
    UNKNOWN_MID = "unknown-mid"
    UNKNOWN_RID = "unknown-rid"
    FOREIGN_PAYLOAD_TYPE = "foreign-payload-type"
    """The track is known, but its codecs have no such payload type."""
    AMBIGUOUS = "ambiguous"
    """Nothing names the track, and more or less than one would fit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BindCandidate:
    """What the binder needs to know of a producer of the peer."""

    producer: int
    mid: str
    rids: tuple[str, ...]
    media_types: frozenset[int]
    rtx_types: frozenset[int]
    ssrcs: dict[int, tuple[str, bool]]
    """SSRCs known from SDP -> (rid, is RTX)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What the first packet of an SSRC shows."""

    ssrc: int
    payload_type: int
    mid: str = ""
    rid: str = ""
    repaired_rid: str = ""


@dataclass(frozen=True, slots=True)
class Binding:
    """The decision: a producer and its layer, or None with the reason."""

    producer: int | None
    rid: str
    is_rtx: bool
    reason: BindReason


def bind(sight: Sight, candidates: Sequence[BindCandidate]) -> Binding:
    """Decide where the SSRC of `sight` belongs."""
    for candidate in candidates:
        if sight.ssrc in candidate.ssrcs:
            rid, is_rtx = candidate.ssrcs[sight.ssrc]
            return _checked(candidate, sight, rid, is_rtx, BindReason.SDP_SSRC)
    rid = sight.rid or sight.repaired_rid
    if sight.mid:
        named = [candidate for candidate in candidates if candidate.mid == sight.mid]
        if not named:
            return _unbound(BindReason.UNKNOWN_MID)
        return _by_rid(named[0], sight, rid, BindReason.MID_RID if rid else BindReason.MID)
    if rid:
        owners = [candidate for candidate in candidates if rid in candidate.rids]
        if len(owners) == 1:
            return _by_rid(owners[0], sight, rid, BindReason.RID)
        return _unbound(BindReason.AMBIGUOUS if owners else BindReason.UNKNOWN_RID)
    return _by_payload_type(sight, candidates)


def _by_rid(candidate: BindCandidate, sight: Sight, rid: str, reason: BindReason) -> Binding:
    if rid and rid not in candidate.rids:
        return _unbound(BindReason.UNKNOWN_RID)
    if not rid and candidate.rids:
        # A simulcast track without a RID yet: any guess would show the wrong layer.
        return _unbound(BindReason.AMBIGUOUS)
    return _checked(candidate, sight, rid, sight.payload_type in candidate.rtx_types, reason)


def _by_payload_type(sight: Sight, candidates: Iterable[BindCandidate]) -> Binding:
    owners = [c for c in candidates if not c.rids and sight.payload_type in c.media_types | c.rtx_types]
    if len(owners) != 1:
        return _unbound(BindReason.AMBIGUOUS)
    return _checked(owners[0], sight, "", sight.payload_type in owners[0].rtx_types, BindReason.PAYLOAD_TYPE)


def _checked(candidate: BindCandidate, sight: Sight, rid: str, is_rtx: bool, reason: BindReason) -> Binding:
    if sight.payload_type not in (candidate.rtx_types if is_rtx else candidate.media_types):
        return _unbound(BindReason.FOREIGN_PAYLOAD_TYPE)
    return Binding(candidate.producer, rid, is_rtx, reason)


def _unbound(reason: BindReason) -> Binding:
    return Binding(None, "", False, reason)
