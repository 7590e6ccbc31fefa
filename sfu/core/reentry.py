"""The credential with which a session comes back on a new websocket, at any time while it lives.

It is random and means nothing outside this process, so it is bound to the session and to this run of the SFU. Each use
replaces it; the one before counts until the player has spoken on its new websocket, since the answer may be lost.
"""

from __future__ import annotations


class Reentries:
    """Which tokens open which session."""

    def __init__(self) -> None:
        self._session: dict[str, str] = {}
        self._tokens: dict[str, list[str]] = {}

    def renew(self, session: str, token: str) -> None:
        """`token` opens the session from now on, and until `confirm` the one before it does."""
        before = self._tokens.get(session, [])
        for old in before[:-1]:
            del self._session[old]
        self._tokens[session] = [*before[-1:], token]
        self._session[token] = session

    def confirm(self, session: str) -> None:
        """The player has got the newest one."""
        tokens = self._tokens.get(session, [])
        while len(tokens) > 1:
            del self._session[tokens.pop(0)]

    def end(self, session: str) -> None:
        """The session is over."""
        for token in self._tokens.pop(session, []):
            del self._session[token]

    def session(self, token: str) -> str | None:
        """The session that the token opens."""
        return self._session.get(token)
