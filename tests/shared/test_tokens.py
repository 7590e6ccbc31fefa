"""Tokens: good for one audience and a while; everything else is refused with a reason."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadSetting, BadToken
from shared.tokens import (
    MAX_NAME,
    Claims,
    LinkClaims,
    OperatorClaims,
    PlayerClaims,
    ResumeClaims,
    SfuClaims,
    check_secret,
    issue,
    verify,
)

SECRET = "a secret of the fleet, long enough for HS256"
NOW = 1_800_000_000.0

ALL: list[Claims] = [
    PlayerClaims(room="r", identity="i", name="Ann", publish=False, admin=True),
    SfuClaims(sfu="s", room="r", player="p", identity="i", name="Ann", publish=False),
    SfuClaims(sfu="s", room="r", player="p", identity="i", publications=("mic", "cam")),
    ResumeClaims(player="p", room="r", identity="i", epoch=1_800_000_000_123, subscribe=False),
    LinkClaims(sfu="s"),
    OperatorClaims(operator="olga"),
]


def make(claims: Claims = ALL[0], *, ttl_s: float = 60.0, secret: str = SECRET) -> str:
    return issue(claims, secret=secret, now_at=NOW, ttl_s=ttl_s)


def body(**fields: Any) -> dict[str, Any]:
    return {"room": "r", "identity": "i", "aud": "sluice-player", "exp": int(NOW) + 60, **fields}


def signed(payload: dict[str, Any], *, secret: str = SECRET, algorithm: str = "HS256") -> str:
    return jwt.encode(payload, secret, algorithm=algorithm)


def reason(token: str, *, kind: type[PlayerClaims] = PlayerClaims, now_at: float = NOW) -> str:
    with pytest.raises(BadToken) as caught:
        verify(kind, token, secret=SECRET, now_at=now_at)
    assert len(str(caught.value)) < 250
    return caught.value.reason


@pytest.mark.parametrize("claims", ALL, ids=lambda claims: type(claims).__name__)
def test_a_token_says_what_was_put_into_it(claims: Claims) -> None:
    kind: Any = type(claims)
    assert verify(kind, make(claims), secret=SECRET, now_at=NOW) == claims


def test_a_token_ends_at_its_time() -> None:
    token = make(ttl_s=60)
    assert verify(PlayerClaims, token, secret=SECRET, now_at=NOW + 59).room == "r"
    assert reason(token, now_at=NOW + 60) == "expired"
    with pytest.raises(BadToken, match="150 s ago by the clock of this host"):
        verify(PlayerClaims, token, secret=SECRET, now_at=NOW + 210)


@pytest.mark.parametrize("claims", ALL[1:], ids=lambda claims: type(claims).__name__)
def test_a_token_for_another_audience_opens_nothing(claims: Claims) -> None:
    assert reason(make(claims)) == "wrong-audience"


def test_an_audience_must_be_there() -> None:
    payload = body()
    del payload["aud"]
    assert reason(signed(payload)) == "malformed"


def test_a_forged_token_is_refused() -> None:
    assert reason(make(secret="another secret, just as long as ours is")) == "forged"


def test_a_changed_claim_is_refused() -> None:
    head, _, signature = make().split(".")
    evil = base64.urlsafe_b64encode(json.dumps(body(admin=True)).encode()).rstrip(b"=").decode()
    assert reason(f"{head}.{evil}.{signature}") == "forged"


@pytest.mark.parametrize("name", ["none", "None", "NONE"])
def test_a_token_without_signature_is_refused(name: str) -> None:
    head = base64.urlsafe_b64encode(json.dumps({"alg": name, "typ": "JWT"}).encode()).rstrip(b"=").decode()
    payload = base64.urlsafe_b64encode(json.dumps(body()).encode()).rstrip(b"=").decode()
    assert reason(f"{head}.{payload}.") == "malformed"


def test_another_algorithm_is_refused_though_the_secret_is_right() -> None:
    assert reason(signed(body(), algorithm="HS512", secret=SECRET * 2)) == "malformed"


@pytest.mark.parametrize("exp", [None, "soon", True, [], {}, "9999999999"])
def test_an_end_that_is_no_number_is_refused(exp: Any) -> None:
    assert reason(signed(body(exp=exp))) == "malformed"


def test_an_end_must_be_there() -> None:
    payload = body()
    del payload["exp"]
    assert reason(signed(payload)) == "malformed"


@pytest.mark.parametrize(
    "fields",
    [
        {"room": None},
        {"room": 5},
        {"room": ""},
        {"identity": ""},
        {"admin": "yes"},
        {"publish": 1},
        {"name": "x" * (MAX_NAME + 1)},
        {"room": "x" * (MAX_NAME + 1)},
    ],
)
def test_claims_of_the_wrong_shape_are_refused(fields: dict[str, Any]) -> None:
    assert reason(signed(body(**fields))) == "bad-claims"


def test_unknown_claims_are_ignored() -> None:
    assert verify(PlayerClaims, signed(body(later=[1])), secret=SECRET, now_at=NOW).room == "r"


@pytest.mark.parametrize("token", ["", ".", "..", "a.b.c", "é.é.é", "x" * 4096, "\x00", "a" * 10 + "." + "b" * 10])
def test_garbage_is_malformed(token: str) -> None:
    assert reason(token) == "malformed"


def test_the_largest_token_that_a_router_can_issue_is_taken() -> None:
    name, ids = "\N{GRINNING FACE}" * MAX_NAME, tuple(f"{number:064d}" for number in range(32))
    claims = SfuClaims(sfu="s" * MAX_NAME, room=name, player="p" * MAX_NAME, identity=name, name=name, publications=ids)
    assert verify(SfuClaims, issue(claims, secret=SECRET, now_at=0.0, ttl_s=9.0), secret=SECRET, now_at=0.0) == claims


def test_an_oversized_token_is_refused_before_it_is_read() -> None:
    assert reason(make(PlayerClaims(room="r", identity="i", name="x" * 10_000))) == "malformed"


@given(st.text())
def test_any_text_is_refused_with_a_reason(token: str) -> None:
    assert reason(token)


@given(st.binary(min_size=1), st.integers(0, 400))
def test_a_token_with_any_piece_replaced_never_opens_more_than_it_did(piece: bytes, at: int) -> None:
    token = make()
    damaged = token[:at] + piece.decode("latin-1") + token[at + len(piece) :]
    try:
        claims = verify(PlayerClaims, damaged, secret=SECRET, now_at=NOW)
    except BadToken:
        return
    assert claims == ALL[0]


def test_a_short_secret_is_a_bad_setting_that_names_the_fix() -> None:
    assert check_secret("x" * 32) == "x" * 32
    with pytest.raises(BadSetting, match="SLUICE_SECRET"):
        check_secret("x" * 31)


@pytest.mark.parametrize(
    ("ahead_s", "good"), [(-60.0, True), (0.0, True), (10.0, True), (11.0, False), (86_400.0, False)]
)
def test_a_token_that_begins_in_the_future_is_refused_and_the_clock_is_named(ahead_s: float, good: bool) -> None:
    body = {"room": "r", "identity": "i", "aud": "sluice-player", "exp": 10**10, "nbf": 1_000_000.0 + ahead_s}
    token = jwt.encode(body, SECRET, algorithm="HS256")
    if good:
        assert verify(PlayerClaims, token, secret=SECRET, now_at=1_000_000.0).room == "r"
        return
    with pytest.raises(BadToken, match=f"{ahead_s:.0f} s ahead of the clock of this host") as refused:
        verify(PlayerClaims, token, secret=SECRET, now_at=1_000_000.0)
    assert refused.value.reason == "not-yet"


def test_two_sfu_tokens_of_one_second_are_not_the_same() -> None:
    claims = SfuClaims(sfu="s", room="r", player="p", identity="i")
    assert issue(claims, secret=SECRET, now_at=1.0, ttl_s=60) != issue(claims, secret=SECRET, now_at=1.0, ttl_s=60)


def test_while_a_key_is_replaced_both_are_accepted_and_the_first_signs() -> None:
    old, new = "the old key of the fleet, 32 bytes", "the new key of the fleet, 32 bytes"
    both = f"{new}\n{old}\n"
    check_secret(both)
    by_old, by_both = make(secret=old), make(secret=both)
    assert verify(PlayerClaims, by_old, secret=both, now_at=NOW) == verify(
        PlayerClaims, by_both, secret=new, now_at=NOW
    )
    for token, secret in ((by_old, new), (by_both, old), (make(secret="another key, as long as it must be."), both)):
        with pytest.raises(BadToken) as no:
            verify(PlayerClaims, token, secret=secret, now_at=NOW)
        assert no.value.reason == "forged"
    with pytest.raises(BadSetting):
        check_secret(f"{new}\nshort")
