"""Errors of the controller; part of the tree in `shared.errors`."""

from __future__ import annotations

from enum import StrEnum

from shared.errors import SluiceError


class PoolTrouble(StrEnum):
    """Why a call to a pool failed. A metric label, and what a caller may do about it."""

    UNREACHABLE = "unreachable"
    """No answer, or the connection broke: the outcome is not known."""
    TIMEOUT = "timeout"
    """No answer in time: the outcome is not known."""
    UNREADABLE = "unreadable"
    """An answer that can't be understood: the outcome is not known."""
    THROTTLED = "throttled"
    """Too many requests; `retry_after_s` says when to try again."""
    CONFLICT = "conflict"
    """Another program wrote at the same time, repeatedly; nothing was changed."""
    FORBIDDEN = "forbidden"
    """Credentials or rights are missing. An operator has to act."""
    NOT_FOUND = "not-found"
    """An object that the settings name does not exist."""
    REFUSED = "refused"
    """The platform said no, for a reason of its own."""
    EXPIRED = "expired"
    """A listing took so long that the platform no longer knows where it was."""
    FULL = "full"
    """There is no room for another node: ports, or quota."""
    FAULT = "fault"
    """The platform failed inside (5xx): the outcome is not known."""


class PoolError(SluiceError):
    """A call to a pool failed. It says nothing about which nodes there are (invariant 4)."""

    code = "pool-error"

    pool: str
    call: str
    kind: PoolTrouble
    detail: str
    retry_after_s: float | None = None

    def sentence(self) -> str:
        return f"pool {self.pool}: {self.call} failed ({self.kind}): {self.detail}"
