"""SRTP sessions from keys: both ends understand each other, everybody else is refused."""

from __future__ import annotations

import random

import pytest

from shared.errors import BadPacket
from shared.rtc import rtcp, rtp
from shared.rtc.srtp import MAX_PLAIN, SrtpKeys, SrtpProfile, SrtpSession

LENGTHS = {
    SrtpProfile.AEAD_AES_128_GCM: (16, 12),
    SrtpProfile.AEAD_AES_256_GCM: (32, 12),
    SrtpProfile.AES128_CM_SHA1_80: (16, 14),
}


def pair(profile: SrtpProfile, seed: int = 1) -> tuple[SrtpSession, SrtpSession]:
    rng = random.Random(seed)
    key, salt = LENGTHS[profile]
    a, b, c, d = rng.randbytes(key), rng.randbytes(salt), rng.randbytes(key), rng.randbytes(salt)
    return SrtpSession(SrtpKeys(profile, a, b, c, d)), SrtpSession(SrtpKeys(profile, c, d, a, b))


def packet(sequence: int, size: int = 100) -> bytes:
    return rtp.build(payload_type=96, sequence=sequence, timestamp=0, ssrc=1, payload=bytes(size - 12))


@pytest.mark.parametrize("profile", list(SrtpProfile))
def test_both_directions_across_the_wrap(profile: SrtpProfile) -> None:
    left, right = pair(profile)
    for number in range(65_530, 65_545):
        sent = packet(number & 0xFFFF)
        assert right.unprotect(left.protect(sent)) == sent
    assert left.unprotect(right.protect(packet(1))) == packet(1)
    report = rtcp.receiver_report(1, [])
    assert right.unprotect_rtcp(left.protect_rtcp(report)) == report


@pytest.mark.parametrize("profile", list(SrtpProfile))
def test_forged_replayed_and_foreign_packets_are_refused(profile: SrtpProfile) -> None:
    left, right = pair(profile)
    stranger, _ = pair(profile, seed=2)
    datagram = left.protect(packet(1))
    with pytest.raises(BadPacket):
        right.unprotect(datagram[:-1] + bytes((datagram[-1] ^ 1,)))
    with pytest.raises(BadPacket):
        right.unprotect(stranger.protect(packet(1)))
    right.unprotect(datagram)
    with pytest.raises(BadPacket):
        right.unprotect(datagram)
    with pytest.raises(BadPacket):
        right.unprotect_rtcp(b"\x80\xc9")
    with pytest.raises(BadPacket):
        right.unprotect(bytes(65_507))


def test_a_packet_can_be_sent_again() -> None:
    left, right = pair(SrtpProfile.AEAD_AES_128_GCM)
    lost = left.protect(packet(1))
    right.unprotect(left.protect(packet(2)))
    assert left.protect(packet(1)) == lost
    assert right.unprotect(lost) == packet(1)


def test_longest_packet_fits_and_one_byte_more_is_refused() -> None:
    left, _ = pair(SrtpProfile.AES128_CM_SHA1_80)
    left.protect(packet(1, MAX_PLAIN))
    with pytest.raises(BadPacket):
        left.protect(packet(2, MAX_PLAIN + 1))


def test_outgoing_state_is_freed_and_an_unknown_one_is_no_error() -> None:
    left, right = pair(SrtpProfile.AEAD_AES_128_GCM)
    first = left.protect(packet(5))
    right.unprotect(first)
    left.forget_outgoing(1)
    left.forget_outgoing(1)
    left.forget_outgoing(99)
    # Its rollover state is gone: only that shows that there is none, and why the plane never uses an SSRC again.
    assert left.protect(packet(5)) == first


def test_keys_do_not_reach_a_log() -> None:
    keys = SrtpKeys(SrtpProfile.AEAD_AES_128_GCM, b"secret-rx", b"s", b"secret-tx", b"s")
    assert "secret" not in repr(keys)
