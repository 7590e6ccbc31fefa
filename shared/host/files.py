"""How many files a process may have open, sockets included, and what they are for."""

from __future__ import annotations

import logging
import resource
from dataclasses import dataclass

OTHERS = 64
"""Besides connections to its ports: the ports, the loop's own, links, the store, and one to spare."""
HTTP_SHARE, MOST_HTTP = 0.25, 1024
"""Of what is left when files are short, and when they are not: pages and the API, for two hundred browsers."""
MEDIA_SHARE, MOST_MEDIA = 0.2, 4096
"""The same for an SFU's media over TCP; the rest is for players' websockets."""
MOST_NARROW = 32
"""Seats of each port for health and refusals (`shared.front.seats`)."""


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard one, for this process and its children, and return it; -1: there
    is none.

    A shell's or container's soft limit is often 1,024, which is a default for programs that call `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return -1 if hard == resource.RLIM_INFINITY else hard


def allow_open_files(
    log: logging.Logger, *, tag: str, most: int, setting: str = "max_players", each: int = 1, others: int = OTHERS
) -> int:
    """Raise the soft limit to the hard one, and return it; -1: there is none.

    One log line tells when that is too low for `most`, the value of `setting`, at `each` files apiece.
    """
    hard = raise_open_files()
    needed = most * each + others
    if 0 <= hard < needed:
        log.warning(
            "[%s] %d open files are allowed: enough for about %d players, and %s=%d needs %d; raise the hard "
            "limit (`ulimit -Hn`, `docker run --ulimit nofile=%d`, LimitNOFILE=%d) or lower %s",
            tag, hard, max(0, hard - others) // each, setting, most, needed, needed, needed, setting,
        )  # fmt: skip
    return hard


@dataclass(frozen=True, slots=True)
class FileShares:
    """Connections that each port may have, so that files never run out and none is refused by the system."""

    players: int
    http: int
    media: int
    narrow: int
    limit: int
    """Of open files; -1: there is none."""

    def hint(self, binds: bool) -> str:
        """What to do when files, and not a setting, are what is short."""
        if not binds:
            return ""
        return (
            f"{self.limit} open files are allowed; raise the hard limit (`ulimit -Hn`, `docker run --ulimit nofile=…`, "
            "LimitNOFILE=…)"
        )


def file_shares() -> FileShares:
    """By the soft limit that is in force now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return share_files(-1 if soft == resource.RLIM_INFINITY else soft)


def share_files(limit: int) -> FileShares:
    """How `limit` files are shared out; -1: no limit."""
    if limit < 0:
        return FileShares(players=1 << 31, http=MOST_HTTP, media=MOST_MEDIA, narrow=MOST_NARROW, limit=limit)
    left = max(8, limit - OTHERS)
    narrow = max(1, min(MOST_NARROW, left // 8))
    left -= 2 * narrow
    http = max(1, min(MOST_HTTP, int(left * HTTP_SHARE)))
    media = max(1, min(MOST_MEDIA, int(left * MEDIA_SHARE)))
    return FileShares(players=max(1, left - http - media), http=http, media=media, narrow=narrow, limit=limit)
