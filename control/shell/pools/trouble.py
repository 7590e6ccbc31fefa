"""What an HTTP status of a platform's API means for the caller."""

from __future__ import annotations

from control.errors import PoolTrouble

_OF_STATUS = {
    401: PoolTrouble.FORBIDDEN,
    403: PoolTrouble.FORBIDDEN,
    404: PoolTrouble.NOT_FOUND,
    408: PoolTrouble.TIMEOUT,
    409: PoolTrouble.CONFLICT,
    410: PoolTrouble.EXPIRED,
    429: PoolTrouble.THROTTLED,
    504: PoolTrouble.TIMEOUT,
}


def trouble_of_status(status: int) -> PoolTrouble:
    """The trouble; what the platform did after a 5xx is not known, after another 4xx it did nothing."""
    return _OF_STATUS.get(status, PoolTrouble.FAULT if status >= 500 else PoolTrouble.REFUSED)
