"""The names in a token are read without its secret."""

from __future__ import annotations

import jwt
import pytest

from player.core.claims import names_in
from shared.errors import BadToken
from shared.tokens import PlayerClaims, issue

SECRET = "a secret of the tests, long enough for HS256"


def test_a_token_names_identity_and_room() -> None:
    claims = PlayerClaims(room="lobby", identity="ann")
    assert names_in(issue(claims, secret=SECRET, now_at=0.0, ttl_s=1.0)) == ("ann", "lobby")


@pytest.mark.parametrize(
    "token",
    ["", "a.b.c", "é", jwt.encode({"room": "lobby"}, SECRET), jwt.encode({"room": 1, "identity": "ann"}, SECRET)],
)
def test_what_names_none_is_a_bad_token(token: str) -> None:
    with pytest.raises(BadToken, match="malformed"):
        names_in(token)
