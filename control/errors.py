"""Errors of the control programs; part of the tree in `shared.errors`.

SluiceError
 +- FleetFailed        a program of a local fleet did not come up or ended on its own
 +- NotApplied         a command was written, but the fleet did not follow it in time
 +- NoFleet            no fleet was named and none runs here
 +- NoPort             every port that could be taken is
 +- NoRedis            where the fleet's Redis should be nothing answers; a StoreUnavailable
 +- PoolError          a pool of nodes did not answer, or refused
 +- SystemRefused      a file, a socket or a process that the system does not give us
"""

from __future__ import annotations

from enum import StrEnum

from shared.errors import SluiceError, StoreUnavailable


class FleetFailed(SluiceError):
    """A program of a local fleet did not do what it must; `log` holds its last lines."""

    code = "fleet-failed"

    def __init__(self, *, program: str, detail: str, log: str = "") -> None:
        super().__init__()
        self.program = program
        self.detail = detail
        self.log = log

    def sentence(self) -> str:
        return f"{self.program} {self.detail}"


class NotApplied(SluiceError):
    """An operator's command is in Redis, but nobody has applied it in time."""

    code = "not-applied"

    def __init__(self, *, command: str, waited_s: float, fix: str) -> None:
        super().__init__()
        self.command = command
        self.waited_s = waited_s
        self.fix = fix

    def sentence(self) -> str:
        return f"{self.command} was not applied within {self.waited_s:.0f} s; {self.fix}"


class NoFleet(SluiceError):
    """There is nothing to act on."""

    code = "no-fleet"

    def __init__(self, fleet: str = "") -> None:
        super().__init__()
        self.fleet = fleet

    def sentence(self) -> str:
        which = f"no fleet {self.fleet!r} runs here" if self.fleet else "no fleet runs here"
        return f"{which}: start one with 'sluice up', or name its Redis with --redis (or SLUICE_REDIS)"


class NoRedis(StoreUnavailable):
    """A command's very first question to Redis came to nothing."""

    code = "no-redis"

    def __init__(self, *, url: str, detail: str) -> None:
        """`url` is shown to people: without a password. `detail` is why, in a few words."""
        super().__init__(operation="ping", detail=detail)
        self.url = url

    def sentence(self) -> str:
        return (
            f"nothing of use answers at {self.url} ({self.detail}): "
            "start Redis there, or name another one with --redis or SLUICE_REDIS"
        )


class NoPort(SluiceError):
    """Programs here have no port left to listen on."""

    code = "no-port"

    def __init__(self, *, host: str, least: int, most: int) -> None:
        super().__init__()
        self.host = host
        self.least = least
        self.most = most

    def sentence(self) -> str:
        return f"no port from {self.least} to {self.most} is free on {self.host}: end a program that has one"


class SystemRefused(SluiceError):
    """What the operating system answered to a command that has no better words for it."""

    code = "system-refused"

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def sentence(self) -> str:
        words = self.error.strerror or str(self.error) or type(self.error).__name__
        return f"{self.error.filename}: {words}" if self.error.filename else words


class PoolTrouble(StrEnum):
    """Why a call to a pool failed. A metric label, and what a caller may do about it."""

    UNREACHABLE = "unreachable"
    """No answer, or the connection broke: the outcome is not known."""
    TIMEOUT = "timeout"
    """No answer in time: the outcome is not known."""
    UNREADABLE = "unreadable"
    """An answer that can't be understood: the outcome is not known."""
    THROTTLED = "throttled"
    """Too many requests; `retry_after_s` says when to come back."""
    CONFLICT = "conflict"
    """Somebody else wrote at the same time, repeatedly; nothing was changed."""
    FORBIDDEN = "forbidden"
    """We may not: credentials or rights. An operator has to act."""
    NOT_FOUND = "not-found"
    """What the settings name does not exist."""
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

    def __init__(
        self, *, pool: str, call: str, kind: PoolTrouble, detail: str, retry_after_s: float | None = None
    ) -> None:
        super().__init__()
        self.pool = pool
        self.call = call
        self.kind = kind
        self.detail = detail
        self.retry_after_s = retry_after_s

    def sentence(self) -> str:
        return f"pool {self.pool}: {self.call} failed ({self.kind}): {self.detail}"
