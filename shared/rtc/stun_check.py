"""The server's half of a connectivity check: read a binding request, prove who sent it, answer (RFC 8489, RFC 8445).

Written out on bytes because every player repeats it every few seconds for as long as it stays: aioice's codec, which
`shared.rtc.stun` uses for the client's half and which the tests compare this with, takes four times as long.
"""

from __future__ import annotations

import hmac
import struct
import zlib
from dataclasses import dataclass
from socket import AF_INET, AF_INET6, inet_pton

from shared.errors import BadPacket

MAX_MESSAGE = 1280
"""Longest STUN message read [bytes]; a browser's check has about 100."""

MAX_USERNAME = 513
"""RFC 8489 section 14.3: USERNAME is under 509 bytes; ufrags are at most 256 characters each (RFC 8839)."""

HEAD = struct.Struct("!HHI12s")
ATTRIBUTE = struct.Struct("!HH")
COOKIE = 0x2112A442
BINDING_REQUEST = 0x0001
BINDING_INDICATION = 0x0011
BINDING_RESPONSE = 0x0101
USERNAME, MESSAGE_INTEGRITY, XOR_MAPPED_ADDRESS = 0x0006, 0x0008, 0x0020
USE_CANDIDATE, FINGERPRINT, ICE_CONTROLLED = 0x0025, 0x8028, 0x8029
INTEGRITY_SIZE = 20
_FINGERPRINT_XOR = 0x5354554E


@dataclass(frozen=True, slots=True)
class Check:
    """A binding request, not yet authenticated: look up `local_ufrag`, then `verify` with its password."""

    local_ufrag: str
    """The ufrag of the receiver: the part of USERNAME before the colon."""
    remote_ufrag: str
    use_candidate: bool
    """The controlling side nominates this pair."""
    peer_is_controlled: bool
    """The sender thinks it is the controlled side: a role conflict with a lite agent."""
    transaction_id: bytes
    signed: bytes
    """What MESSAGE-INTEGRITY covers; empty when there is none."""
    integrity: bytes


def parse_check(datagram: bytes) -> Check:
    """Decode a binding request that carries credentials. Raises `BadPacket` for anything else."""
    if not HEAD.size <= len(datagram) <= MAX_MESSAGE:
        raise _bad(f"{len(datagram)} bytes is no check")
    kind, length, cookie, transaction_id = HEAD.unpack_from(datagram)
    if cookie != COOKIE or length != len(datagram) - HEAD.size or kind != BINDING_REQUEST:
        raise _bad("not a binding request")
    username, controlled, nominates, signed, integrity = b"", False, False, b"", b""
    at = HEAD.size
    while at + 4 <= len(datagram):
        attribute, size = ATTRIBUTE.unpack_from(datagram, at)
        value = datagram[at + 4 : at + 4 + size]
        if len(value) != size:
            raise _bad("an attribute is longer than the message")
        if attribute == FINGERPRINT:
            if value != fingerprint(datagram[:at]):
                raise _bad("the fingerprint does not match")
        elif not signed:  # what follows MESSAGE-INTEGRITY is not authenticated (RFC 8489 section 9)
            if attribute == USERNAME:
                username = value
            elif attribute == USE_CANDIDATE:
                nominates = True
            elif attribute == ICE_CONTROLLED:
                controlled = True
            elif attribute == MESSAGE_INTEGRITY:
                signed, integrity = datagram[:at], value
        at += 4 + size + -size % 4
    local, colon, remote = _text(username).partition(":")
    if not colon or not local or len(username) > MAX_USERNAME:
        raise _bad("no USERNAME of the form receiver:sender")
    return Check(local, remote, nominates, controlled, transaction_id, signed, integrity)


def is_indication(datagram: bytes) -> bool:
    """True for a binding indication: a keep-alive, unsigned, never answered (RFC 8445 section 11)."""
    if not HEAD.size <= len(datagram) <= MAX_MESSAGE:
        return False
    kind, length, cookie, _ = HEAD.unpack_from(datagram)
    return bool(kind == BINDING_INDICATION and cookie == COOKIE and length == len(datagram) - HEAD.size)


def verify(check: Check, password: str) -> bool:
    """True when MESSAGE-INTEGRITY was made with `password`; false as well when there is none."""
    if not check.signed:
        return False
    return hmac.compare_digest(check.integrity, message_integrity(check.signed, password))


def binding_response(check: Check, *, source: tuple[str, int], password: str) -> bytes:
    """The answer to an authenticated check: the address it came from, signed with our password."""
    mapped = _xor_address(source, check.transaction_id)
    body = ATTRIBUTE.pack(XOR_MAPPED_ADDRESS, len(mapped)) + mapped
    return sealed(BINDING_RESPONSE, check.transaction_id, body, password)


def sealed(kind: int, transaction_id: bytes, body: bytes, password: str) -> bytes:
    """A whole message of these attributes, with MESSAGE-INTEGRITY and FINGERPRINT after them."""
    covered = HEAD.pack(kind, len(body) + 4 + INTEGRITY_SIZE, COOKIE, transaction_id) + body
    signed = ATTRIBUTE.pack(MESSAGE_INTEGRITY, INTEGRITY_SIZE) + _hmac(covered, password)
    head = HEAD.pack(kind, len(body) + len(signed) + 8, COOKIE, transaction_id)
    whole = head + body + signed
    return whole + ATTRIBUTE.pack(FINGERPRINT, 4) + fingerprint(whole)


def message_integrity(signed: bytes, password: str) -> bytes:
    """HMAC-SHA1 of a message up to the attribute, its length field as if it ended with it (RFC 8489 section 14.5)."""
    length = len(signed) - HEAD.size + 4 + INTEGRITY_SIZE
    return _hmac(signed[:2] + length.to_bytes(2, "big") + signed[4:], password)


def fingerprint(before: bytes) -> bytes:
    """The CRC of a message up to the attribute, its length field as if it ended with it (RFC 8489 section 14.7)."""
    length = len(before) - HEAD.size + 8
    crc = zlib.crc32(before[:2] + length.to_bytes(2, "big") + before[4:])
    return (crc ^ _FINGERPRINT_XOR).to_bytes(4, "big")


def _hmac(covered: bytes, password: str) -> bytes:
    return hmac.digest(password.encode(), covered, "sha1")


def _xor_address(source: tuple[str, int], transaction_id: bytes) -> bytes:
    """RFC 8489 section 14.2."""
    host, port = source
    packed = inet_pton(AF_INET6 if ":" in host else AF_INET, host)
    key = COOKIE.to_bytes(4, "big") + transaction_id
    hidden = int.from_bytes(packed, "big") ^ int.from_bytes(key[: len(packed)], "big")
    return struct.pack("!HH", 1 if len(packed) == 4 else 2, port ^ COOKIE >> 16) + hidden.to_bytes(len(packed), "big")


def _text(username: bytes) -> str:
    try:
        return username.decode()
    except UnicodeDecodeError:
        raise _bad("USERNAME is no UTF-8") from None


def _bad(detail: str) -> BadPacket:
    return BadPacket(protocol="stun", detail=detail)
