"""`sluice token`: a player's token, for trying things (an app makes its own with the same claims), or an operator's."""

from __future__ import annotations

import time
from dataclasses import dataclass

from cyclopts import Parameter

from cli.output import print_json
from operators.config import HERE, Where
from operators.shell.target import find_secret
from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.tokens import MAX_NAME, OperatorClaims, PlayerClaims, issue

MOST_TTL_S = 10 * 365 * 86_400.0
"""Longer than any secret should be kept, and well within the range of dates."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class TokenSettings:
    """What the token grants."""

    room: str = "demo"
    """Room it opens; the page proposes the same."""
    name: str = ""
    """Name that others see; empty: the identity."""
    publish: bool = True
    """May publish."""
    subscribe: bool = True
    """May subscribe."""
    admin: bool = False
    """May act on others in the room."""
    operator: bool = False
    """A token for the fleet page instead: may cordon, uncordon and drain SFUs. It opens no room."""
    cell: str = ""
    """Cell whose SFUs are preferred for the player; empty: none in particular."""
    ttl_s: float = 86_400.0
    """How long it is valid [s]."""


def token(
    identity: str,
    /,
    *,
    where: Where = HERE,
    settings: TokenSettings = TokenSettings(),
    json: bool = False,
) -> None:
    """Make a player's token for a room, or an operator's for the fleet page.

    Examples:

        sluice token alice --room kitchen

        sluice token bob --room kitchen --no-publish --ttl-s 3600

        sluice token olga --operator

    Parameters
    ----------
    identity
        Who the player or operator is. A second session of the same identity in a room replaces the first.
    json
        Print `{"token": …, "room": …, "identity": …, "expires_at": …}`; the room is null for an operator.
    """
    player = player_claims(identity, settings)
    claims = OperatorClaims(operator=identity) if settings.operator else player
    secret = find_secret(where)
    now_at = time.time()
    text = issue(claims, secret=secret, now_at=now_at, ttl_s=settings.ttl_s)
    if json:
        expires_at = int(now_at + settings.ttl_s)
        room = None if settings.operator else player.room
        print_json({"token": text, "room": room, "identity": identity, "expires_at": expires_at})
    else:
        print(text)


def player_claims(identity: str, settings: TokenSettings) -> PlayerClaims:
    """The claims, checked. Raises `BadSetting`."""
    for what, value in (("identity", identity), ("--room", settings.room)):
        if not value:
            raise BadSetting(setting=what, detail="must not be empty")
    for what, value in (
        ("identity", identity),
        ("--room", settings.room),
        ("--name", settings.name),
        ("--cell", settings.cell),
    ):
        if len(value) > MAX_NAME:
            raise BadSetting(setting=what, detail=f"may have at most {MAX_NAME} characters")
    check_numbers(settings, "ttl_s", over=0, most=MOST_TTL_S, flags=True, hint="that is ten years")
    return PlayerClaims(
        room=settings.room,
        identity=identity,
        name=settings.name or identity,
        publish=settings.publish,
        subscribe=settings.subscribe,
        admin=settings.admin,
        cell=settings.cell,
    )
