"""Tokens: JWTs signed with the fleet's secret (HS256), bound to one audience, checked against the wall clock."""

from __future__ import annotations

import secrets
from typing import Any, Literal, TypeVar

import jwt
import msgspec

from shared.errors import BadSetting, BadToken

SFU_TOKEN_TTL_S = 60.0
"""An SFU token is used at once; a minute forgives a slow phone and a skewed clock."""
RESUME_TOKEN_TTL_S = 24 * 3600.0
"""Longer than any call; the resume window itself is enforced by leases."""
LINK_TOKEN_TTL_S = 300.0
CLOCK_LEEWAY_S = 10.0
"""A token that begins to count so far in the future is good: the issuer's clock may be ahead of ours."""
MIN_SECRET_BYTES = 32
"""As long as the hash it keys (RFC 7518, section 3.2)."""

Audience = Literal["player", "sfu", "resume", "link", "operator"]


class PlayerClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What the app grants a player: made by `sluice token` or by the app's own back end."""

    room: str
    identity: str
    name: str = ""
    publish: bool = True
    subscribe: bool = True
    admin: bool = False
    cell: str = ""
    """SFUs of this cell are preferred for the player; empty: none in particular."""


class SfuClaims(msgspec.Struct, frozen=True, kw_only=True):
    """What a router grants a player on one SFU."""

    sfu: str
    room: str
    player: str
    """Session id at the router."""
    identity: str
    name: str = ""
    publish: bool = True
    """False for a subscribe-only visit to another player's SFU."""
    subscribe: bool = True
    publications: tuple[str, ...] = ()
    """Ids that the router knows as this session's: no other player of the room keeps them from it on that SFU."""


class ResumeClaims(msgspec.Struct, frozen=True, kw_only=True):
    """All that any router needs to take a session over."""

    player: str
    room: str
    identity: str
    epoch: int
    name: str = ""
    publish: bool = True
    subscribe: bool = True
    admin: bool = False
    cell: str = ""


class LinkClaims(msgspec.Struct, frozen=True, kw_only=True):
    """An SFU's right to speak for its id."""

    sfu: str


class OperatorClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The right to cordon, uncordon and drain SFUs through a router (D12). A player's `admin` grant is a word about its
    room and never about the fleet, hence a token of its own."""

    operator: str
    """The operator's name, shown with the SFU's drain and in the routers' logs."""


Claims = PlayerClaims | SfuClaims | ResumeClaims | LinkClaims | OperatorClaims
C = TypeVar("C", PlayerClaims, SfuClaims, ResumeClaims, LinkClaims, OperatorClaims)

_AUDIENCE: dict[type[Any], Audience] = {
    PlayerClaims: "player",
    SfuClaims: "sfu",
    ResumeClaims: "resume",
    LinkClaims: "link",
    OperatorClaims: "operator",
}
MAX_NAME = 128
"""Longest room, identity or name in a token [characters]."""
MAX_TOKEN = 12_288
"""Longest token [characters]: three such names at 12 bytes a character, and 32 publication ids of 64, come to less."""


def keys_of(secret: str) -> list[str]:
    """The keys in a secret, one a line: the first signs, all are accepted, so that one can be replaced."""
    return [line.strip() for line in secret.splitlines() if line.strip()] or [""]


def check_secret(secret: str) -> str:
    """The secret, if each of its keys is long enough; raises `BadSetting`."""
    if min(len(key.encode()) for key in keys_of(secret)) < MIN_SECRET_BYTES:
        raise BadSetting(setting="secret", detail=f"needs at least {MIN_SECRET_BYTES} bytes; set SLUICE_SECRET")
    return secret


def issue(claims: Claims, *, secret: str, now_at: float, ttl_s: float) -> str:
    """A token with these claims, good for `ttl_s` seconds from `now_at` [Unix seconds]."""
    body: dict[str, Any] = msgspec.to_builtins(claims)
    body |= {"aud": f"sluice-{_AUDIENCE[type(claims)]}", "exp": int(now_at + ttl_s), "iat": int(now_at)}
    if isinstance(claims, SfuClaims):
        body["jti"] = secrets.token_hex(8)  # it opens once: two of one second must not be the same
    return jwt.encode(body, keys_of(secret)[0], algorithm="HS256")


_COMPARE = "if that can't be, compare it with the clock of the host that issued the token"


def verify(kind: type[C], token: str, *, secret: str, now_at: float) -> C:
    """The claims in `token`. Raises `BadToken` when it is expired, not good yet, forged, for others or malformed."""
    if len(token) > MAX_TOKEN:
        raise BadToken(reason="malformed", detail=f"longer than {MAX_TOKEN} characters")
    try:
        body = _signed_body(token, keys_of(secret), audience=f"sluice-{_AUDIENCE[kind]}")
    except jwt.InvalidSignatureError:
        raise BadToken(reason="forged") from None
    except jwt.InvalidAudienceError:
        raise BadToken(reason="wrong-audience") from None
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        raise BadToken(reason="malformed", detail=str(error)[:100]) from None
    expires = body["exp"]
    if isinstance(expires, bool) or not isinstance(expires, int | float):
        raise BadToken(reason="malformed", detail="exp is no number")
    if expires <= now_at:
        ago = f"exp was {now_at - expires:.0f} s ago by the clock of this host"
        raise BadToken(reason="expired", detail=f"{ago}; {_COMPARE}")
    _check_begun(body.get("nbf"), now_at)
    try:
        claims = msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise BadToken(reason="bad-claims", detail=str(error)[:100]) from None
    for field in kind.__struct_fields__:
        value = getattr(claims, field)
        if isinstance(value, str) and len(value) > MAX_NAME:
            raise BadToken(reason="bad-claims", detail=f"{field} is longer than {MAX_NAME} characters")
    if isinstance(claims, PlayerClaims) and not (claims.room and claims.identity):
        raise BadToken(reason="bad-claims", detail="room and identity must not be empty")
    if isinstance(claims, OperatorClaims) and not claims.operator:
        raise BadToken(reason="bad-claims", detail="operator must not be empty")
    return claims


def _signed_body(token: str, keys: list[str], *, audience: str) -> dict[str, Any]:
    """What one of the keys has signed. Raises as `jwt.decode` does."""
    options: Any = {"verify_exp": False, "verify_iat": False, "verify_nbf": False, "require": ["exp", "aud"]}
    for key in keys[:-1]:
        try:
            return jwt.decode(token, key, algorithms=["HS256"], audience=audience, options=options)
        except jwt.InvalidSignatureError:
            continue
    return jwt.decode(token, keys[-1], algorithms=["HS256"], audience=audience, options=options)


def _check_begun(begins: Any, now_at: float) -> None:
    if begins is None:
        return
    if isinstance(begins, bool) or not isinstance(begins, int | float):
        raise BadToken(reason="malformed", detail="nbf is no number")
    if begins > now_at + CLOCK_LEEWAY_S:
        ahead = f"nbf is {begins - now_at:.0f} s ahead of the clock of this host"
        raise BadToken(reason="not-yet", detail=f"{ahead}; {_COMPARE}")
