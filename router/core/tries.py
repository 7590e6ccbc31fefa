"""Whether connections to SFUs come about: who was sent where, and for whom it came to nothing.

A player that was sent to an SFU has tried it. Its next `request-sfu` that lists that SFU among those that failed,
before it said that anything flows there, is a failure; anything else is none. Each player counts once per SFU, by a
word that stands for its identity, so that no player can talk an SFU down alone. The counts of all routers meet in the
store, which names the SFUs that fail for many (`note_tries`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection

from router.core.sessions import Session
from shared.placing import Tries

TRY_LASTS_S = 30.0
"""A player that comes back later had been there: it tries to open a link for 12 s at most, then it asks again."""
MAX_WAITING = 5000
"""Words that wait for the store; while it is away the newest are not counted."""


class TryBook:
    """What is to be told to the store, and how often connections failed."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, int], tuple[dict[str, None], dict[str, None]]] = {}
        self._words = 0

    def sent(self, session: Session, sfu: str, incarnation: int, *, now: float) -> None:
        """The player was sent there; `now` is monotonic."""
        session.trying, session.tried, session.run_tried = sfu, now, incarnation
        self._note(session, sfu, incarnation, failed=False)

    def works(self, session: Session, sfu: str) -> None:
        """Media of the player flows there."""
        if session.trying == sfu:
            session.trying = ""

    def asks_again(self, session: Session, excluded: Collection[str], *, now: float) -> str:
        """The player wants another SFU and can't use `excluded`: the one that failed it just now, or nothing."""
        sfu, session.trying = session.trying, ""
        if not sfu or sfu not in excluded or now - session.tried > TRY_LASTS_S:
            return ""
        self._note(session, sfu, session.run_tried, failed=True)
        return sfu

    def take(self) -> list[Tries]:
        """All that was noted since the last time."""
        waiting, self._waiting, self._words = self._waiting, {}, 0
        return [
            Tries(sfu=sfu, incarnation=incarnation, tried=tuple(tried), failed=tuple(failed))
            for (sfu, incarnation), (tried, failed) in waiting.items()
        ]

    def _note(self, session: Session, sfu: str, incarnation: int, *, failed: bool) -> None:
        if self._words < MAX_WAITING:
            self._words += 1
            self._waiting.setdefault((sfu, incarnation), ({}, {}))[failed][word_for(session)] = None


def word_for(session: Session) -> str:
    """Stands for a player of a room in the store, across its sessions."""
    who = f"{session.room}\0{session.claims.identity}"
    return hashlib.blake2b(who.encode(), digest_size=8).hexdigest()
