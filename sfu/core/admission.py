"""Who may enter an SFU: a ladder of named rules (D2; docs/protocol.md section 1)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from shared.messages.codes import CloseCode, Refusal
from shared.records import SfuStatus
from shared.tokens import SfuClaims

_SESSION_ID = re.compile(r"[!-~]{1,128}")
"""A session id goes into descriptions and reports as CNAME: printable, without spaces."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    """What the SFU knows when a player wants to enter."""

    sfu: str
    status: SfuStatus
    players: int
    max_players: int
    carries_room: bool
    """A player of the room is here already."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    """The answer, with the rule that gave it."""

    admitted: bool
    reason: str
    code: str = ""
    """A word for the `error` message when refused."""
    close: CloseCode = CloseCode.REFUSED
    """What the websocket is closed with when refused."""


def admit(claims: SfuClaims, door: Door, *, known: SfuClaims | None, spent: bool = False) -> Admission:
    """Decide on a token that has been verified. `known` are the grants of the player's session here, if it has one;
    `spent` says that the token has opened a session before."""
    if claims.sfu != door.sfu:
        return _bad_token("the token is for another SFU")
    if spent:
        return _bad_token("the token has been used")
    if not _SESSION_ID.fullmatch(claims.player):
        return _bad_token("the session id is empty, or has characters that it must not have")
    if known is not None and (known.room, known.identity) != (claims.room, claims.identity):
        return _bad_token("the session is another player's")
    if door.status is SfuStatus.TERMINATING:
        return Admission(admitted=False, reason="terminating", code=Refusal.SFU_TERMINATING)
    if door.status is not SfuStatus.ONLINE:
        return _while_cordoned(claims, door, known)
    if known is None and door.players >= door.max_players:
        return Admission(admitted=False, reason=f"full: {door.max_players} players", code=Refusal.TOO_MANY)
    return Admission(admitted=True, reason="known session" if known else "online")


def _while_cordoned(claims: SfuClaims, door: Door, known: SfuClaims | None) -> Admission:
    """Players who are here may stay and come back; no player makes this SFU its home any more."""
    if claims.publish and not (known is not None and known.publish):
        return Admission(admitted=False, reason="cordoned: no new home", code=Refusal.SFU_CORDONED)
    if known is not None:
        return Admission(admitted=True, reason="known session")
    if not door.carries_room:
        return Admission(admitted=False, reason="cordoned: no new room", code=Refusal.SFU_CORDONED)
    if door.players >= door.max_players:
        return Admission(admitted=False, reason=f"full: {door.max_players} players", code=Refusal.TOO_MANY)
    return Admission(admitted=True, reason="cordoned: visits a room that is carried")


def _bad_token(reason: str) -> Admission:
    return Admission(admitted=False, reason=reason, code="bad-token", close=CloseCode.BAD_TOKEN)
