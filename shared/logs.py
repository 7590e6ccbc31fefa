"""Log lines: one event a line, `[tag] words key=value`, and a limiter that logs a kind of trouble once a minute."""

from __future__ import annotations

import logging
import re
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
    """`key=value` pairs for a log line: floats to three digits, None left out; `read_fields` reads them back.

    A value that could be taken for more than one value (blanks, `=`, quotes) or that would not be shown as it is
    (control and bidirectional characters) is quoted, so what others wrote forges neither a field nor a line.
    """
    return " ".join(
        f"{key}={value:.3f}" if isinstance(value, float) else f"{key}={_quoted(str(value))}"
        for key, value in values.items()
        if value is not None
    )


def read_fields(text: str) -> tuple[str, dict[str, str]]:
    """The words of a line and its fields, as `fields` wrote them."""
    words, found = [], {}
    for token in _TOKEN.finditer(text):
        key, value, word = token.groups()
        if key is None:
            words.append(word)
        else:
            found[key] = _unquoted(value)
    return " ".join(words), found


def visible(text: str) -> str:
    """What others wrote, with what a terminal would obey, or would not show, as escapes.

    Bidirectional control characters are among them: Unicode counts them as format characters, which do not print.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


_QUOTED = r'"(?:[^"\\]|\\.)*"'
_TOKEN = re.compile(rf'([^\s="]+)=({_QUOTED}|\S*)|(\S+)')
_NEEDS_QUOTES = re.compile(r'[\s="\\]')
_ESCAPE = re.compile(r'\\(?:(["\\])|x[0-9a-f]{2}|u[0-9a-f]{4}|U00(?:0[0-9a-f]|10)[0-9a-f]{4}|[nrt])')


def _quoted(value: str) -> str:
    if value.isprintable() and not _NEEDS_QUOTES.search(value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{visible(escaped)}"'


def _unquoted(value: str) -> str:
    if not re.fullmatch(_QUOTED, value):
        return value
    return _ESCAPE.sub(lambda found: found[1] or found[0].encode().decode("unicode_escape"), value[1:-1])


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
