"""ICE-lite: who is answered, whose address is believed, when consent ends."""

from __future__ import annotations

import pytest
from aioice import stun as aioice_stun

from sfu.core.ice_lite import (
    CONSENT_S,
    FIRST_CHECK_S,
    MAX_UFRAGS,
    AnsweredCheck,
    IceCredentials,
    IceDrop,
    IceLite,
    new_credentials,
)
from shared.rtc import stun

HOME = ("192.0.2.1", 4000)
AWAY = ("198.51.100.7", 5000)


@pytest.fixture
def credentials() -> IceCredentials:
    return new_credentials()


@pytest.fixture
def ice(credentials: IceCredentials) -> IceLite:
    ice = IceLite()
    ice.register(7, credentials, now=0.0)
    return ice


def check(credentials: IceCredentials, *, nominate: bool = True, controlling: bool = True) -> bytes:
    return stun.binding_request(
        remote_ufrag=credentials.ufrag,
        local_ufrag="them",
        remote_password=credentials.pwd,
        tie_breaker=1,
        use_candidate=nominate,
        controlling=controlling,
    )


def answered(outcome: AnsweredCheck | IceDrop) -> AnsweredCheck:
    assert isinstance(outcome, AnsweredCheck)
    return outcome


def test_authentic_check_is_answered_with_its_source(ice: IceLite, credentials: IceCredentials) -> None:
    request = check(credentials)
    outcome = answered(ice.receive(request, HOME, now=1.0))
    assert outcome.peer == 7
    assert not outcome.role_conflict
    reply = stun.parse(outcome.reply)
    assert reply.attributes["XOR-MAPPED-ADDRESS"] == HOME
    assert stun.parse_response(outcome.reply, remote_password=credentials.pwd) == stun.parse(request).transaction_id


def test_bad_integrity_is_not_answered(ice: IceLite, credentials: IceCredentials) -> None:
    forged = check(IceCredentials(credentials.ufrag, "wrong"))
    assert ice.receive(forged, HOME, now=1.0) is IceDrop.BAD_INTEGRITY


def test_missing_integrity_is_not_answered(ice: IceLite, credentials: IceCredentials) -> None:
    bare = aioice_stun.Message(
        aioice_stun.Method.BINDING, aioice_stun.Class.REQUEST, attributes={"USERNAME": f"{credentials.ufrag}:them"}
    )
    assert ice.receive(bytes(bare), HOME, now=1.0) is IceDrop.BAD_INTEGRITY


def test_unknown_ufrag_is_not_answered(ice: IceLite) -> None:
    assert ice.receive(check(new_credentials()), HOME, now=1.0) is IceDrop.UNKNOWN_UFRAG


def test_garbage_is_not_answered(ice: IceLite) -> None:
    assert ice.receive(bytes(20), HOME, now=1.0) is IceDrop.MALFORMED


def test_nomination_is_told(ice: IceLite, credentials: IceCredentials) -> None:
    assert not answered(ice.receive(check(credentials, nominate=False), HOME, now=1.0)).nominated
    assert answered(ice.receive(check(credentials), AWAY, now=3.0)).nominated


def test_peer_that_thinks_it_is_controlled_is_told_otherwise(ice: IceLite, credentials: IceCredentials) -> None:
    outcome = answered(ice.receive(check(credentials, controlling=False), HOME, now=1.0))
    assert outcome.role_conflict
    assert stun.parse(outcome.reply).attributes["ERROR-CODE"][0] == 487


def test_consent_ends_after_silence_and_is_renewed_by_checks(ice: IceLite, credentials: IceCredentials) -> None:
    ice.receive(check(credentials), HOME, now=1.0)
    assert ice.silent(now=1.0 + CONSENT_S - 0.1) == []
    ice.receive(check(credentials, nominate=False), HOME, now=10.0)
    assert ice.silent(now=1.0 + CONSENT_S) == []
    ice.receive(check(IceCredentials(credentials.ufrag, "wrong")), HOME, now=20.0)
    assert ice.silent(now=10.0 + CONSENT_S) == [7]


def test_authentic_media_renews_consent_as_a_check_does(ice: IceLite, credentials: IceCredentials) -> None:
    ice.receive(check(credentials), HOME, now=1.0)
    ice.heard(7, at=12.0)
    ice.heard(7, at=9.0)
    ice.heard(8, at=12.0)
    assert ice.silent(now=12.0 + CONSENT_S - 0.1) == []
    assert ice.silent(now=12.0 + CONSENT_S) == [7]


def test_an_indication_is_no_fault_and_proves_nothing(ice: IceLite, credentials: IceCredentials) -> None:
    """What GStreamer's libnice sends to keep a path open, byte for byte."""
    indication = bytes.fromhex("001100082112a442b178df6deb1ef72f2d8888e780280004db63c165")
    ice.receive(check(credentials), HOME, now=1.0)
    assert ice.receive(indication, HOME, now=10.0) is IceDrop.INDICATION
    assert ice.receive(indication[:-4], HOME, now=10.0) is IceDrop.MALFORMED
    assert ice.silent(now=1.0 + CONSENT_S) == [7]


def test_peer_that_never_comes_is_given_up(ice: IceLite) -> None:
    assert ice.silent(now=FIRST_CHECK_S - 0.1) == []
    assert ice.silent(now=FIRST_CHECK_S) == [7]


def test_restart_keeps_the_old_credentials_until_the_new_are_used(ice: IceLite, credentials: IceCredentials) -> None:
    fresh = new_credentials()
    ice.register(7, fresh, now=1.0)
    assert isinstance(ice.receive(check(credentials), HOME, now=2.0), AnsweredCheck)
    assert isinstance(ice.receive(check(fresh), HOME, now=3.0), AnsweredCheck)
    assert ice.receive(check(credentials), HOME, now=4.0) is IceDrop.UNKNOWN_UFRAG


def test_restarts_that_are_never_used_do_not_pile_up(ice: IceLite, credentials: IceCredentials) -> None:
    restarts = [new_credentials() for _ in range(100)]
    for fresh in restarts:
        ice.register(7, fresh, now=1.0)
    assert isinstance(ice.receive(check(credentials), HOME, now=2.0), AnsweredCheck), "what is in use goes on"
    assert len(ice._by_ufrag) == MAX_UFRAGS
    assert isinstance(ice.receive(check(restarts[-1]), HOME, now=3.0), AnsweredCheck), "the newest is taken"
    assert len(ice._by_ufrag) == 1


def test_it_says_when_a_peer_last_checked(ice: IceLite, credentials: IceCredentials) -> None:
    assert ice.checked_at(7) is None
    ice.receive(check(credentials), HOME, now=2.0)
    ice.receive(check(IceCredentials(credentials.ufrag, "wrong")), HOME, now=3.0)
    ice.heard(7, at=4.0)
    assert (ice.checked_at(7), ice.checked_at(8)) == (2.0, None)


def test_forgotten_peer_is_not_answered_and_not_missed(ice: IceLite, credentials: IceCredentials) -> None:
    ice.register(7, new_credentials(), now=1.0)
    ice.forget(7)
    ice.forget(7)
    assert ice.receive(check(credentials), HOME, now=2.0) is IceDrop.UNKNOWN_UFRAG
    assert ice.silent(now=1000.0) == []


def test_silence_while_we_did_not_listen_ends_no_consent() -> None:
    ice = IceLite()
    ice.register(1, new_credentials(), now=0.0)
    ice.grant(10.0)
    assert ice.silent(now=FIRST_CHECK_S + 9.9) == []
    assert ice.silent(now=FIRST_CHECK_S + 10.0) == [1]
