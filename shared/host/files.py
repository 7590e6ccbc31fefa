"""How many files a process may have open, sockets included."""

from __future__ import annotations

import logging
import resource

OTHERS = 64
"""Besides players' connections: ports, the loop's own, links, the store, scrapes of metrics."""


def raise_open_files() -> int:
    """Raise the soft limit of open files to the hard one, for this process and its children, and return it; -1: there
    is none.

    A shell's or container's soft limit is often 1,024, which is a default for programs that call `select`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def allow_open_files(log: logging.Logger, *, tag: str, max_players: int, others: int = OTHERS) -> int:
    """`raise_open_files`, and one log line when the hard limit is too low for `max_players`."""
    hard = raise_open_files()
    needed = max_players + others
    if hard != resource.RLIM_INFINITY and hard < needed:
        log.warning(
            "[%s] %d open files are allowed: enough for about %d players, and max_players=%d needs %d; raise the hard "
            "limit (`ulimit -Hn`, `docker run --ulimit nofile=%d`, LimitNOFILE=%d) or lower max_players",
            tag, hard, max(0, hard - others), max_players, needed, needed, needed,
        )  # fmt: skip
    return hard
