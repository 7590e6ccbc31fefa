"""What a player token says of its player, read without the fleet's secret: routers check it, we only want the names."""

from __future__ import annotations

from typing import Any

import jwt

from shared.errors import BadToken


def names_in(token: str) -> tuple[str, str]:
    """Identity and room that a player token names. Raises `BadToken` when it is none."""
    try:
        claims: Any = jwt.decode(token, options={"verify_signature": False})
        identity, room = claims["identity"], claims["room"]
    except (jwt.PyJWTError, ValueError, KeyError, RecursionError):
        raise BadToken(reason="malformed", detail="it names no identity and room") from None
    if not (isinstance(identity, str) and isinstance(room, str)):
        raise BadToken(reason="malformed", detail="identity and room are to be words")
    return identity, room
