"""The tagged log lines of A9, read back: when, whose, and their `key=value` fields."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from shared.logs import read_fields

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}) \w+ +\S+ \[(scale|place|drain|pool)\] (.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class LogLine:
    """One line."""

    at: float
    """When [Unix seconds, to the millisecond]; all programs are on one machine."""
    program: str
    tag: str
    words: str
    """What comes before the first field: `tick`, `first-packet`, `cordon`."""
    fields: dict[str, str] = field(default_factory=dict)
    text: str = ""
    """The line without its date."""

    def has(self, tag: str, words: str, **fields: str) -> bool:
        """It is such a line, with these fields among others."""
        return (self.tag, self.words) == (tag, words) and all(self.fields.get(key) == fields[key] for key in fields)

    def count(self, key: str) -> int:
        """The first number of a field like `hits=3/5`; 0 where there is none."""
        digits = re.match(r"\d+", self.fields.get(key, ""))
        return int(digits[0]) if digits else 0

    def figure(self, key: str) -> float | None:
        """A field as a number; None where it is none, such as `unknown`."""
        try:
            return float(self.fields[key])
        except (KeyError, ValueError):
            return None


def read_log(program: str, text: str) -> list[LogLine]:
    """The tagged lines of a program's log; others are left out."""
    found = (_LINE.match(line) for line in text.splitlines())
    return [_read(program, match) for match in found if match is not None]


def merged(logs: Iterable[Iterable[LogLine]]) -> list[LogLine]:
    """The lines of several programs in order of time; within a program and millisecond they keep their order."""
    return sorted((line for log in logs for line in log), key=lambda line: line.at)


def _read(program: str, match: re.Match[str]) -> LogLine:
    stamp, tag, rest = match.groups()
    words, found = read_fields(rest)
    return LogLine(
        at=datetime.strptime(stamp, "%Y-%m-%d %H:%M:%S,%f").timestamp(),
        program=program,
        tag=tag,
        words=words,
        fields=found,
        text=f"[{tag}] {rest}",
    )
