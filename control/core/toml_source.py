"""A TOML file that can say on which line a key stands, so that every error about it names key and line."""

from __future__ import annotations

import difflib
import math
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import BadSetting

_HEADER = re.compile(r"^\s*(\[\[?)\s*([\w.\"'-]+)\s*\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"^\s*([\w.\"'-]+)\s*=")
_DIGITS = re.compile(r"[0-9][0-9_]*")
MOST_DEEP = 16
"""Tables and lists within each other; a deeper file is not a settings file, and could not be printed in an error."""
_64_BITS = range(-(2**63), 2**63)
"""TOML 1.0: the integers that every reader must accept; none of our settings needs more."""


@dataclass(frozen=True, slots=True)
class TomlSource:
    """What a file holds, and where. Paths are dotted: `tick_s`, `pool.kind`, `floors.1.from`."""

    name: str
    data: Mapping[str, Any]
    lines: Mapping[str, int]

    def bad(self, path: str, detail: str) -> BadSetting:
        """An error about the key at `path`; one that is absent is placed at the table it should stand in, and without
        a line when that is absent as well."""
        line = next(filter(None, map(self._line, _outwards(path))), None)
        return BadSetting(setting=f"{self.name}{f':{line}' if line else ''} {path}", detail=detail)

    def clash(self, *blames: tuple[str, str]) -> BadSetting:
        """An error about keys that contradict each other; each one comes with what is wrong with it.

        The first one in the file is named: the reader of the error can change that one, not a default.
        """
        return self.bad(*next((each for each in blames if each[0] in self), blames[0]))

    def __contains__(self, path: str) -> bool:
        """Whether the file itself has this key; it must be neither a list nor within one."""
        table: object = self.data
        for key in path.split("."):
            if not isinstance(table, Mapping) or key not in table:
                return False
            table = table[key]
        return True

    def _line(self, path: str) -> int | None:
        """The line of a key, or of the first one that makes it a table by its dots."""
        within = (line for key, line in self.lines.items() if key.startswith(f"{path}."))
        return self.lines.get(path) or next(within, None)

    def check_known(self, found: Iterable[str], known: Iterable[str], *, under: str = "") -> None:
        """Raise `BadSetting` for an unknown key, with the one that was probably meant."""
        known = sorted(known)
        for key in found:
            if key not in known:
                near = difflib.get_close_matches(key, known, n=1)
                meant = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
                raise self.bad(f"{under}{key}", f"no such key; {meant}")

    def number(self, path: str, value: object, *, whole: bool = False) -> float:
        """The value as a finite number; True and False are not numbers."""
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
    """Read a file's text. Raises `BadSetting` with the line when it is not TOML, or holds a value that no setting can
    have."""
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        line = re.search(r"at line (\d+)", str(error))
        number = int(line[1]) if line else len(_split(text.removesuffix("\n")))  # else it says "at end of document"
        raise BadSetting(setting=f"{name}:{number}", detail=f"not TOML: {error}"[:200]) from None
    except ValueError:  # Python converts no integer of thousands of digits
        raise _endless(text, name=name) from None
    source = TomlSource(name, data, _lines(text))
    _check_values(source)
    return source


def _endless(text: str, *, name: str) -> BadSetting:
    """The error about an integer that Python refuses to read, without saying on which line."""
    most = sys.get_int_max_str_digits()
    runs = (run for run in _DIGITS.finditer(text) if len(run[0].replace("_", "")) > most)
    number = text.count("\n", 0, next(runs).start()) + 1
    lines = _lines(text)
    path = max((each for each in lines if lines[each] <= number), key=lambda each: lines[each], default="")
    return BadSetting(setting=f"{name}:{number} {path}".rstrip(), detail=f"a number of more than {most} digits")


def _check_values(source: TomlSource) -> None:
    """Raise `BadSetting` for a value that would break arithmetic or the text of an error."""
    waiting: list[tuple[str, object, int]] = [("", source.data, 0)]
    while waiting:
        path, value, deep = waiting.pop()
        if deep > MOST_DEEP:
            raise source.bad(path, f"stands within more than {MOST_DEEP} others")
        if isinstance(value, int) and value not in _64_BITS:
            raise source.bad(path, "is out of range: TOML's whole numbers have 64 bits")
        inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        waiting += [(f"{path}.{key}".lstrip("."), each, deep + 1) for key, each in inner]


def _lines(text: str) -> dict[str, int]:
    """The first line of each key and table; what stands within an inline table is found by its key's line."""
    lines: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(_split(text), start=1):
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


def _split(text: str) -> list[str]:
    """The lines as TOML has them. `str.splitlines` knows further ends of a line, which may stand within a comment."""
    return text.split("\n")


def _bare(name: str) -> str:
    return name.replace('"', "").replace("'", "")


def _outwards(path: str) -> Iterable[str]:
    while path:
        yield path
        path = path.rpartition(".")[0]
