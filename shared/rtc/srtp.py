"""SRTP keys as DTLS yields them, and the two libsrtp sessions made of them (RFC 3711, RFC 7714)."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from enum import StrEnum

import pylibsrtp
from pylibsrtp._binding import ffi

from shared.errors import BadPacket

REPLAY_WINDOW = 1024
"""Packets that may arrive late or be repeated before libsrtp refuses them; the size libwebrtc uses."""

MAX_PLAIN = 1456
"""Longest RTP or RTCP packet that is sent [bytes]: with SRTP's longest tag it fills an Ethernet frame (1500 less 28 for
IPv4 and UDP). GStreamer's packets have up to 1400, and header extensions and RTX add to that."""

_TRAILER = 144
"""Room that libsrtp wants behind a packet; pylibsrtp's own buffer of 1500 bytes would leave 1356 for the packet."""

MAX_PROTECTED = 1500
"""Longest datagram `SrtpSession` can unprotect [bytes]."""


class SrtpProfile(StrEnum):
    """The protection profiles Sluice negotiates; values are OpenSSL's names."""

    AEAD_AES_128_GCM = "SRTP_AEAD_AES_128_GCM"
    """Cheapest by far with AES instructions; browsers take it."""
    AEAD_AES_256_GCM = "SRTP_AEAD_AES_256_GCM"
    AES128_CM_SHA1_80 = "SRTP_AES128_CM_SHA1_80"
    """All that GStreamer 1.22 and node's wrtc offer."""


@dataclass(frozen=True, slots=True)
class SrtpKeys:
    """What a finished DTLS handshake gives: one master key and salt per direction, seen from this side."""

    profile: SrtpProfile
    rx_key: bytes
    rx_salt: bytes
    tx_key: bytes
    tx_salt: bytes

    def __repr__(self) -> str:
        """Without the secrets: keys must not reach a log."""
        return f"SrtpKeys({self.profile.value})"


_LIBSRTP_PROFILES: dict[SrtpProfile, int] = {
    SrtpProfile.AEAD_AES_128_GCM: pylibsrtp.Policy.SRTP_PROFILE_AEAD_AES_128_GCM,
    SrtpProfile.AEAD_AES_256_GCM: pylibsrtp.Policy.SRTP_PROFILE_AEAD_AES_256_GCM,
    SrtpProfile.AES128_CM_SHA1_80: pylibsrtp.Policy.SRTP_PROFILE_AES128_CM_SHA1_80,
}


class SrtpSession:
    """Both directions of one peer. Not thread-safe: one owner does all RTP and RTCP of a peer.

    `protect` and `protect_rtcp` raise `BadPacket` for packets above `MAX_PLAIN`; `unprotect` and `unprotect_rtcp` raise
    it for whatever is not authentic, replayed or too long.
    """

    __slots__ = ("_rx", "_tx")

    def __init__(self, keys: SrtpKeys) -> None:
        self._rx = _session(keys.profile, keys.rx_key + keys.rx_salt, pylibsrtp.Policy.SSRC_ANY_INBOUND)
        self._tx = _session(keys.profile, keys.tx_key + keys.tx_salt, pylibsrtp.Policy.SSRC_ANY_OUTBOUND)

    def protect(self, packet: bytes) -> bytes:
        try:
            protected: bytes = self._tx.protect(packet)
        except (pylibsrtp.Error, ValueError) as error:
            raise BadPacket(protocol="srtp", detail=str(error)) from None
        return protected

    def protect_rtcp(self, packet: bytes) -> bytes:
        try:
            protected: bytes = self._tx.protect_rtcp(packet)
        except (pylibsrtp.Error, ValueError) as error:
            raise BadPacket(protocol="srtcp", detail=str(error)) from None
        return protected

    def unprotect(self, datagram: bytes) -> bytes:
        try:
            packet: bytes = self._rx.unprotect(datagram)
        except (pylibsrtp.Error, ValueError) as error:
            raise BadPacket(protocol="srtp", detail=str(error)) from None
        return packet

    def unprotect_rtcp(self, datagram: bytes) -> bytes:
        try:
            packet: bytes = self._rx.unprotect_rtcp(datagram)
        except (pylibsrtp.Error, ValueError) as error:
            raise BadPacket(protocol="srtcp", detail=str(error)) from None
        return packet

    def forget_incoming(self, ssrc: int) -> None:
        """Free the state kept for an SSRC of the other side, its replay window included: it must not be used again."""
        with contextlib.suppress(pylibsrtp.Error):
            self._rx.remove_stream(ssrc)

    def forget_outgoing(self, ssrc: int) -> None:
        """Free the state kept for an SSRC that nothing will be sent with any more under these keys."""
        # Nothing was sent with it yet when libsrtp knows no such stream.
        with contextlib.suppress(pylibsrtp.Error):
            self._tx.remove_stream(ssrc)


def _session(profile: SrtpProfile, master: bytes, direction: int) -> pylibsrtp.Session:
    policy = pylibsrtp.Policy(key=master, ssrc_type=direction, srtp_profile=_LIBSRTP_PROFILES[profile])
    # Without it a plain resend of a packet (a NACK answered without RTX) is refused as a replay of our own.
    policy.allow_repeat_tx = True
    policy.window_size = REPLAY_WINDOW
    session = pylibsrtp.Session(policy)
    session._cdata = ffi.new("char[]", MAX_PLAIN + _TRAILER)
    session._buffer = ffi.buffer(session._cdata)
    return session
