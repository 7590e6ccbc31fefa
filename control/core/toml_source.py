"""A TOML file that can say on which line a key stands, so that every error about it names key and line."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import BadSetting

_HEADER = re.compile(r"^\s*(\[\[?)\s*([\w.\"'-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([\w.\"'-]+)\s*=")


@dataclass(frozen=True, slots=True)
class TomlSource:
    """What a file holds, and where. Paths are dotted: `tick_s`, `pool.kind`, `floors.1.from`."""

    name: str
    data: Mapping[str, Any]
    lines: Mapping[str, int]

    def bad(self, path: str, detail: str) -> BadSetting:
        """An error about the key at `path`; one that is absent is placed at the table it should stand in."""
        line = next((self.lines[each] for each in _outwards(path) if each in self.lines), 1)
        return BadSetting(setting=f"{self.name}:{line} {path}", detail=detail)

    def check_known(self, found: Iterable[str], known: Iterable[str], *, under: str = "") -> None:
        """Raise `BadSetting` for a key that nobody reads, with the one that was probably meant."""
        known = sorted(known)
        for key in found:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                raise self.bad(f"{under}{key}", f"no such key; {meant}")

    def number(self, path: str, value: object, *, whole: bool = False) -> float:
        """The value as a finite number; True and False are none."""
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)):
            raise self.bad(path, f"must be a {'whole ' if whole else ''}number, not {value!r}"[:200])
        if not math.isfinite(value):
            raise self.bad(path, f"must be a finite number, not {value}")
        return value

    def text(self, path: str, value: object) -> str:
        """The value as text."""
        if not isinstance(value, str):
            raise self.bad(path, f"must be text in quotes, not {value!r}"[:200])
        return value


def parse(text: str, *, name: str) -> TomlSource:
    """Read a file's text. Raises `BadSetting` with the line when it is no TOML."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        number = int(line[1]) if line else len(text.splitlines())  # else it says "at end of document"
        raise BadSetting(setting=f"{name}:{number}", detail=f"no TOML: {error}"[:200]) from None
    return TomlSource(name, data, _lines(text))


def _lines(text: str) -> dict[str, int]:
    """The first line of each key and table; what stands within an inline table is found by its key's line."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            name = _bare(header[2])
            if header[1] == "[[":
                index = counts[name] = counts.get(name, -1) + 1
                lines.setdefault(name, number)
                name = f"{name}.{index}"
            table = f"{name}."
            lines.setdefault(name, number)
        elif key := _KEY.match(line):
            lines.setdefault(table + _bare(key[1]), number)
    return lines


def _bare(name: str) -> str:
    return name.replace('"', "").replace("'", "")


def _outwards(path: str) -> Iterable[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]
