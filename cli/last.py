"""`--last N`: how many entries of a history a command shows."""

from __future__ import annotations

from shared.errors import BadSetting

MOST_LAST = 1_000_000
"""More than any history keeps."""


def check_last(last: int) -> None:
    """Raise `BadSetting` for a number that would never show anything."""
    if not 1 <= last <= MOST_LAST:
        raise BadSetting(setting="--last", detail=f"must be 1 to {MOST_LAST}")
