"""Our own reading and answering of checks says what aioice's codec says."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc import stun, stun_check

names = st.text("abcdefghijklmnopqrstuvwxyz0123456789+/", min_size=1, max_size=32)
sources = st.tuples(
    st.one_of(st.ip_addresses(v=4).map(str), st.ip_addresses(v=6).map(str)), st.integers(min_value=0, max_value=65535)
)


@given(names, names, names, st.booleans(), st.booleans(), st.binary(min_size=12, max_size=12))
def test_a_request_of_aioice_is_read_as_it_was_meant(
    ours: str, theirs: str, password: str, nominates: bool, controlling: bool, transaction: bytes
) -> None:
    request = stun.binding_request(
        remote_ufrag=ours,
        local_ufrag=theirs,
        remote_password=password,
        tie_breaker=1,
        use_candidate=nominates,
        controlling=controlling,
        transaction_id=transaction,
    )
    check = stun_check.parse_check(request)
    assert (check.local_ufrag, check.remote_ufrag, check.transaction_id) == (ours, theirs, transaction)
    assert check.use_candidate == (nominates and controlling)
    assert check.peer_is_controlled == (not controlling)
    assert stun_check.verify(check, password)
    assert not stun_check.verify(check, password + "x")


@given(names, sources, st.binary(min_size=12, max_size=12))
def test_aioice_reads_our_response(password: str, source: tuple[str, int], transaction: bytes) -> None:
    request = stun.binding_request(
        remote_ufrag="a", local_ufrag="b", remote_password=password, tie_breaker=1, transaction_id=transaction
    )
    response = stun_check.binding_response(stun_check.parse_check(request), source=source, password=password)
    assert stun.parse_response(response, remote_password=password) == transaction
    assert stun.parse(response).attributes["XOR-MAPPED-ADDRESS"] == source


@given(st.data())
def test_what_we_take_for_authentic_is_so_for_aioice(data: st.DataObject) -> None:
    request = bytearray(stun.binding_request(remote_ufrag="ours", local_ufrag="t", remote_password="pw", tie_breaker=9))
    for _ in range(data.draw(st.integers(0, 3))):
        request[data.draw(st.integers(0, len(request) - 1))] = data.draw(st.integers(0, 255))
    try:
        check = stun_check.parse_check(bytes(request))
    except BadPacket:
        return
    if stun_check.verify(check, "pw"):
        assert stun.verify(stun.parse(bytes(request)), "pw")


def test_an_unsigned_request_is_never_authentic() -> None:
    request = stun.binding_request(remote_ufrag="a", local_ufrag="b", remote_password="pw", tie_breaker=1)
    signed = stun_check.parse_check(request).signed
    bare = signed[:2] + (len(signed) - 20).to_bytes(2, "big") + signed[4:]
    assert not stun_check.verify(stun_check.parse_check(bare), "")
