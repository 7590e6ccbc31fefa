"""STUN checks: signed, bounded, and only `BadPacket` from what can't be read."""

from __future__ import annotations

import contextlib

import pytest
from aioice import stun as aioice_stun
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc import stun, stun_check

REQUEST = stun.binding_request(
    remote_ufrag="ours", local_ufrag="them", remote_password="secret", tie_breaker=7, transaction_id=b"0123456789ab"
)


def test_check_says_who_and_whether_it_nominates() -> None:
    check = stun_check.parse_check(REQUEST)
    assert (check.local_ufrag, check.remote_ufrag, check.use_candidate) == ("ours", "them", True)
    assert not check.peer_is_controlled
    assert stun_check.verify(check, "secret")
    assert not stun_check.verify(check, "Secret")


def test_response_carries_the_source_and_only_the_right_password_reads_it() -> None:
    response = stun_check.binding_response(
        stun_check.parse_check(REQUEST), source=("192.0.2.9", 4321), password="secret"
    )
    assert stun.parse(response).attributes["XOR-MAPPED-ADDRESS"] == ("192.0.2.9", 4321)
    assert stun.parse_response(response, remote_password="secret") == b"0123456789ab"
    with pytest.raises(BadPacket, match="integrity"):
        stun.parse_response(response, remote_password="other")
    with pytest.raises(BadPacket, match="not a binding response"):
        stun.parse_response(REQUEST, remote_password="secret")


def request(method: aioice_stun.Method, message_class: aioice_stun.Class, username: str) -> bytes:
    message = aioice_stun.Message(
        method, message_class, transaction_id=b"0123456789ab", attributes={"USERNAME": username}
    )
    return bytes(message)


@pytest.mark.parametrize(
    "datagram",
    [
        b"",
        bytes(20),
        REQUEST[:-1],
        REQUEST + b"\0",
        REQUEST[:30],
        REQUEST + bytes(2000),
        REQUEST[:-1] + bytes((REQUEST[-1] ^ 1,)),
        request(aioice_stun.Method.ALLOCATE, aioice_stun.Class.REQUEST, "a:b"),
        request(aioice_stun.Method.BINDING, aioice_stun.Class.INDICATION, "a:b"),
        request(aioice_stun.Method.BINDING, aioice_stun.Class.REQUEST, "no colon"),
        request(aioice_stun.Method.BINDING, aioice_stun.Class.REQUEST, ":b"),
        request(aioice_stun.Method.BINDING, aioice_stun.Class.REQUEST, "a" * 600 + ":b"),
    ],
)
def test_what_is_no_check_is_refused(datagram: bytes) -> None:
    with pytest.raises(BadPacket):
        stun_check.parse_check(datagram)


@given(st.binary(max_size=80), st.integers(0, 0x3FFF))
def test_only_bad_packet_escapes(body: bytes, message_type: int) -> None:
    head = message_type.to_bytes(2, "big") + len(body).to_bytes(2, "big") + bytes.fromhex("2112a442") + bytes(12)
    for datagram in (body, head + body):
        with contextlib.suppress(BadPacket):
            stun_check.parse_check(datagram)


@given(st.data())
def test_a_flipped_bit_never_passes_for_authentic(data: st.DataObject) -> None:
    # All but FINGERPRINT, the last 8 bytes: it comes after MESSAGE-INTEGRITY and is a checksum of its own.
    bit = data.draw(st.integers(0, (len(REQUEST) - 8) * 8 - 1))
    flipped = bytearray(REQUEST)
    flipped[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(BadPacket):
        assert not stun_check.verify(stun_check.parse_check(bytes(flipped)), "secret")
