"""STUN binding checks as ICE uses them (RFC 8489, RFC 8445 section 7), on aioice's codec with bounds around it."""

from __future__ import annotations

import secrets
import struct

from aioice import stun

from shared.errors import BadPacket
from shared.rtc.stun_check import MAX_MESSAGE, Check

DEFAULT_PRIORITY = 1_853_817_087
"""Priority of a peer-reflexive candidate, component 1: 110 * 2^24 + 65535 * 2^8 + 255 (RFC 8445 section 5.1.2)."""

ROLE_CONFLICT = (487, "Role Conflict")


def parse(datagram: bytes) -> stun.Message:
    """Decode any STUN message. Raises `BadPacket`."""
    if len(datagram) > MAX_MESSAGE:
        raise BadPacket(protocol="stun", detail=f"{len(datagram)} bytes is too long")
    if datagram[4:8] != struct.pack("!I", stun.COOKIE):
        raise BadPacket(protocol="stun", detail="no magic cookie")
    try:
        return stun.parse_message(datagram)
    except (ValueError, struct.error, IndexError) as error:
        raise BadPacket(protocol="stun", detail=str(error)[:200]) from None


def verify(message: stun.Message, password: str) -> bool:
    """True when MESSAGE-INTEGRITY was made with `password`; false as well when there is none."""
    return bool(message.check_message_integrity(password.encode()))


def role_conflict_response(check: Check, *, password: str) -> bytes:
    """Tell the sender of an authenticated check to become the controlling side (RFC 8445 section 7.3.1.1)."""
    response = stun.Message(
        stun.Method.BINDING,
        stun.Class.ERROR,
        transaction_id=check.transaction_id,
        attributes={"ERROR-CODE": ROLE_CONFLICT},
    )
    response.add_message_integrity(password.encode())
    return bytes(response)


def binding_request(
    *,
    remote_ufrag: str,
    local_ufrag: str,
    remote_password: str,
    tie_breaker: int,
    use_candidate: bool = True,
    controlling: bool = True,
    priority: int = DEFAULT_PRIORITY,
    transaction_id: bytes | None = None,
) -> bytes:
    """A connectivity check from a client to an SFU; send it again every 2.5 s to keep consent (RFC 7675).

    `transaction_id` is 12 bytes, random when not given; `tie_breaker` is a random 64-bit number of the client.
    """
    attributes: dict[str, object] = {
        "USERNAME": f"{remote_ufrag}:{local_ufrag}",
        "PRIORITY": priority,
        "ICE-CONTROLLING" if controlling else "ICE-CONTROLLED": tie_breaker,
    }
    if use_candidate and controlling:
        attributes["USE-CANDIDATE"] = None
    request = stun.Message(
        stun.Method.BINDING,
        stun.Class.REQUEST,
        transaction_id=transaction_id or secrets.token_bytes(12),
        attributes=attributes,
    )
    request.add_message_integrity(remote_password.encode())
    return bytes(request)


def parse_response(datagram: bytes, *, remote_password: str) -> bytes:
    """The transaction id of an authentic successful binding response. Raises `BadPacket` for anything else."""
    message = parse(datagram)
    if message.message_class != stun.Class.RESPONSE or message.message_method != stun.Method.BINDING:
        raise BadPacket(protocol="stun", detail="not a binding response")
    if not verify(message, remote_password):
        raise BadPacket(protocol="stun", detail="bad message integrity")
    transaction_id: bytes = message.transaction_id
    return transaction_id
