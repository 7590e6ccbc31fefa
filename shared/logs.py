"""Log lines: one event a line, `[tag] words key=value`, and a limiter that logs a kind of trouble once a minute."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

FORMAT = "%(asctime)s %(levelname)-7s %(name)s %(message)s"


def setup(program: str, *, level: str = "INFO") -> logging.Logger:
    """Send this process' log to standard error; returns the program's logger."""
    logging.basicConfig(stream=sys.stderr, level=level.upper(), format=FORMAT)
    for noisy in ("websockets", "aiohttp.access", "aioice", "aiortc"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    return logging.getLogger(program)


def fields(**values: object) -> str:
    """`key=value` pairs for a log line; floats to three digits, None left out. Words of others can't begin a line."""
    parts = []
    for key, value in values.items():
        if value is None:
            continue
        parts.append(f"{key}={value:.3f}" if isinstance(value, float) else f"{key}={visible(str(value))}")
    return " ".join(parts)


def visible(text: str) -> str:
    """What others wrote, with what a terminal would obey, or would not show, as escapes."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


class OncePerMinute:
    """Logs each kind of trouble at most once per `every_s`, with how many were held back meanwhile."""

    MAX_KINDS = 256

    def __init__(self, log: logging.Logger, *, clock: Callable[[], float], every_s: float = 60.0) -> None:
        self._log = log
        self._clock = clock
        self._every_s = every_s
        self._last: dict[str, tuple[float, int]] = {}

    def warning(self, kind: str, message: str) -> None:
        """Log `message` unless one of this `kind` was logged within `every_s`."""
        now = self._clock()
        if kind not in self._last and len(self._last) >= self.MAX_KINDS:
            kind = "other"
        last, held = self._last.get(kind, (-self._every_s, 0))
        if now - last < self._every_s:
            self._last[kind] = (last, held + 1)
            return
        self._last[kind] = (now, 0)
        suffix = f" ({held} more since the last line)" if held else ""
        self._log.warning("[%s] %s%s", kind, visible(message), suffix)
