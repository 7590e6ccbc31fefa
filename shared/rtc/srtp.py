"""SRTP keys as DTLS yields them, and the two libsrtp sessions made of them (RFC 3711, RFC 7714)."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

import pylibsrtp
from pylibsrtp import _binding
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


HALF_RANGE = 0x8000
"""Of sequence numbers. A stream whose first packet is below may have wrapped before it (RFC 3711 section 3.3.1): its
sender began just below 65536, as GStreamer may, and what came before the wrap was lost or came before the keys."""


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

    __slots__ = ("_rx", "_tx", "rx_policy")

    def __init__(self, keys: SrtpKeys) -> None:
        self._rx = _session(keys.profile, keys.rx_key + keys.rx_salt, pylibsrtp.Policy.SSRC_ANY_INBOUND)
        self._tx = _session(keys.profile, keys.tx_key + keys.tx_salt, pylibsrtp.Policy.SSRC_ANY_OUTBOUND)
        self.rx_policy = _policy(keys.profile, keys.rx_key + keys.rx_salt, pylibsrtp.Policy.SSRC_SPECIFIC)
        """The policy of a stream that is added by its SSRC."""

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

    def unprotect_first(self, datagram: bytes, *, ssrc: int) -> bytes:
        """As `unprotect`, for the first packet of an SSRC: its sequence numbers may have wrapped once already."""
        try:
            return self.unprotect(datagram)
        except BadPacket:
            if _SET_ROC is None or int.from_bytes(datagram[2:4], "big") >= HALF_RANGE:
                raise
        address = int(ffi.cast("uintptr_t", self._rx._srtp[0]))
        by_rtcp = _SET_ROC(address, ssrc, 1) == 0  # its RTCP came first: libsrtp has a stream for both
        try:
            if not by_rtcp:
                self.rx_policy.ssrc_value = ssrc
                self._rx.add_stream(self.rx_policy)
                _SET_ROC(address, ssrc, 1)
            return self.unprotect(datagram)
        except (BadPacket, pylibsrtp.Error) as error:
            if by_rtcp:
                _SET_ROC(address, ssrc, 0)
            else:
                self.forget_incoming(ssrc)
            raise BadPacket(protocol="srtp", detail=str(error)) from None

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


def _policy(profile: SrtpProfile, master: bytes, which: int) -> pylibsrtp.Policy:
    policy = pylibsrtp.Policy(key=master, ssrc_type=which, srtp_profile=_LIBSRTP_PROFILES[profile])
    # Without it a plain resend of a packet (a NACK answered without RTX) is refused as a replay of our own.
    policy.allow_repeat_tx = True
    policy.window_size = REPLAY_WINDOW
    return policy


def _session(profile: SrtpProfile, master: bytes, direction: int) -> pylibsrtp.Session:
    session = pylibsrtp.Session(_policy(profile, master, direction))
    session._cdata = ffi.new("char[]", MAX_PLAIN + _TRAILER)
    session._buffer = ffi.buffer(session._cdata)
    return session


def _set_roc() -> Callable[[int, int, int], int] | None:
    """`srtp_set_stream_roc`, which pylibsrtp does not bind; None where its shared object hides it."""
    try:
        function = ctypes.CDLL(_binding.__file__).srtp_set_stream_roc
    except (OSError, AttributeError):
        return None
    function.argtypes = (ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint32)
    return cast(Callable[[int, int, int], int], function)


_SET_ROC = _set_roc()
