"""Whether there is a Redis at all: the first question of a command, answered in words that help."""

from __future__ import annotations

import socket

from shared.errors import NoRedis, StoreUnavailable
from shared.store.connect import shown
from shared.store.store import Store

_WORDS: dict[type[BaseException], str] = {
    ConnectionRefusedError: "connection refused",
    FileNotFoundError: "no such socket",
    socket.gaierror: "no such host",
}
_MOST = 120
"""Longest text of the client library that is passed on [characters]."""


async def find_redis(store: Store) -> None:
    """Return when the store answers. Raises `NoRedis`, which says where nothing does, why, and what to do."""
    try:
        await store.ping()
    except StoreUnavailable as error:
        raise NoRedis(url=shown(store.url), detail=_why(error)) from error


def _why(error: StoreUnavailable) -> str:
    below: BaseException | None = error
    while below is not None:
        for kind, words in _WORDS.items():
            if isinstance(below, kind):
                return words
        below = below.__cause__ or below.__context__
    return error.detail.partition(" : <")[0][:_MOST]  # Sentinel's clients tell their whole configuration
