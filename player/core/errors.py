"""What a player raises: see the tree in `shared.errors`."""

from __future__ import annotations

from shared.errors import SluiceError


class JoinFailed(SluiceError):
    """There is no session. `reason`: `bad-token`, `replaced`, `no-router`, `timeout`."""

    code = "join-failed"

    def __init__(self, *, reason: str, detail: str = "") -> None:
        super().__init__()
        self.reason = reason
        self.detail = detail

    def sentence(self) -> str:
        return f"could not join ({self.reason}){': ' + self.detail if self.detail else ''}"


class SessionOver(SluiceError):
    """The session has ended; `reason` as in `SessionEnded`."""

    code = "session-over"

    def __init__(self, *, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def sentence(self) -> str:
        return f"the session is over ({self.reason})"
