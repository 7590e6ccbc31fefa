"""How many files a process may have open, sockets included."""

from __future__ import annotations

import logging
import resource

OTHERS = 64
"""Besides players' connections: ports, the loop's own, links, the store, scrapes of metrics."""


def allow_open_files(log: logging.Logger, *, tag: str, max_players: int, others: int = OTHERS) -> int:
    """Raise the soft limit of open files to the hard one, and return it; -1: there is none.

    A container's soft limit is often 1,024, which is a default for programs that call `select`. One log line tells when
    the hard limit is too low for `max_players`.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    needed = max_players + others
    if hard != resource.RLIM_INFINITY and hard < needed:
        log.warning(
            "[%s] %d open files are allowed: enough for about %d players, and max_players=%d needs %d; raise the hard "
            "limit (`ulimit -Hn`, `docker run --ulimit nofile=%d`, LimitNOFILE=%d) or lower max_players",
            tag, hard, max(0, hard - others), max_players, needed, needed, needed,
        )  # fmt: skip
    return hard
