"""Where a key frame begins in an H.264 stream (RFC 6184 sections 5.6 to 5.8)."""

from __future__ import annotations

_IDR, _SPS, _STAP_A, _FU_A = 5, 7, 24, 28


def starts_keyframe(payload: bytes) -> bool:
    """True for a packet with a sequence parameter set or the beginning of an IDR picture.

    Encoders send SPS, PPS and IDR in one aggregate or one after another with one timestamp; the first of them counts
    as the start, so that a decoder that begins there has all it needs. Malformed payloads start nothing.
    """
    if not payload:
        return False
    nal_type = payload[0] & 0x1F
    if nal_type in (_IDR, _SPS):
        return True
    if nal_type == _STAP_A:
        return any(kind in (_IDR, _SPS) for kind in _aggregated_types(payload))
    if nal_type == _FU_A and len(payload) > 1:
        return bool(payload[1] & 0x80) and payload[1] & 0x1F in (_IDR, _SPS)
    return False


def _aggregated_types(payload: bytes) -> list[int]:
    kinds = []
    position = 1
    while position + 2 < len(payload):
        length = int.from_bytes(payload[position : position + 2], "big")
        if length == 0 or position + 2 + length > len(payload):
            break
        kinds.append(payload[position + 2] & 0x1F)
        position += 2 + length
    return kinds
