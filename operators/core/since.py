"""Since when the histories in Redis know anything: one without a disk forgets them when it restarts."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo

ROUTERLESS = "no router has written to this Redis yet, so it knows of nothing that happened before"


def since_words(since_at: float | None) -> str:
    """For people; `since_at` is when the fleet's first router wrote to this Redis, by its clock [Unix seconds]."""
    when = time_words(since_at)
    return f"this Redis knows of nothing before {when}" if when else ROUTERLESS


def time_words(at: float | None) -> str:
    """A time as `2026-12-01 00:53:10 UTC`; empty when there is none, or no date can be made of it."""
    return "" if at is None else at_time(at, "%Y-%m-%d %H:%M:%S UTC", zone=UTC)


def at_time(at: float, form: str = "%H:%M:%S", *, zone: tzinfo | None = None) -> str:
    """A time of Redis' clock [Unix seconds], in this machine's zone or another one; empty when it is no date."""
    try:
        return datetime.fromtimestamp(at, zone).strftime(form)
    except (ValueError, OverflowError, OSError):
        return ""
