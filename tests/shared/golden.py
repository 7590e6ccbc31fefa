"""The pinned bytes of protocol version 1: for each message and record an example with every field, one with the least,
and one with what the fields mean that are left out.

`golden/v1.link.jsonl` has those of the link's messages, and so on: a line each, its name and then the bytes as they are
written. `python -m tests.shared.golden` appends lines that are missing. It never touches one that is there: what a
released program has written must stay readable, so never edit such a line.
"""

from __future__ import annotations

import types
import typing
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from shared import placement_records, records, scaling_records
from shared.messages import link, media, player
from shared.messages.base import Message, encode, kebab
from shared.records import Record, read_record, write_record

FOLDER = Path(__file__).parent / "golden"
FILES = ("link", "media", "player", "record")
"""A file each: three of messages and one of records."""


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One line of a file; `raw` keeps the very bytes, blanks and the order of fields included."""

    name: str
    raw: msgspec.Raw


def path_of(which: str) -> Path:
    return FOLDER / f"v1.{which}.jsonl"


@cache
def pinned() -> dict[str, bytes]:
    """All examples by their whole names, as `link.hello.full-2`, in the order of the files."""
    found: dict[str, bytes] = {}
    for which in FILES:
        for text in path_of(which).read_bytes().splitlines():
            line = msgspec.json.decode(text, type=Line)
            name = f"{which}.{line.name}"
            assert name not in found, f"{name} is pinned twice"
            found[name] = bytes(line.raw)
    return found


@dataclass(frozen=True, slots=True)
class Kind:
    """A message or a record, by the name of its examples."""

    name: str
    type: type[msgspec.Struct]

    def examples(self) -> dict[str, bytes]:
        """Its pinned examples, the one with the least first."""
        return self._pinned("min") | self._pinned("full")

    def defaults(self) -> dict[str, bytes]:
        """Its pinned defaults."""
        return self._pinned("defaults")

    def _pinned(self, what: str) -> dict[str, bytes]:
        start = f"{self.name}.{what}"
        return {name: raw for name, raw in pinned().items() if name == start or name.startswith(f"{start}-")}

    def encode(self, value: Any) -> bytes:
        return encode(value).encode() if issubclass(self.type, Message) else write_record(value)

    def decode(self, raw: bytes) -> Any:
        """Read as a program does: a record by `read_record`, a message by the reader of every direction it takes."""
        if issubclass(self.type, Record):
            return read_record(self.type, raw)
        if not self.readers():
            return msgspec.json.decode(raw, type=self.type)  # a part of messages
        read = [reader.read(raw) for reader in self.readers()]
        assert all(value == read[0] for value in read)
        return read[0]

    def readers(self) -> list[Any]:
        return [reader for reader, union in READERS if self.type in typing.get_args(union)]


READERS: list[tuple[Any, Any]] = [
    (player.to_router, player.ToRouter),
    (player.to_player, player.ToPlayer),
    (media.to_sfu, media.ToSfu),
    (media.from_sfu, media.ToMedia),
    (link.to_router, link.ToRouter),
    (link.to_sfu, link.ToSfu),
]


def kinds() -> Iterator[Kind]:
    """Every message that a module of messages defines, and every record."""
    for module in (player, media, link):
        short = module.__name__.rpartition(".")[2]
        for found in _defined_in(module, Message):
            yield Kind(f"{short}.{found.__struct_config__.tag}", found)
    for module in (records, scaling_records, placement_records):
        for found in _defined_in(module, Record):
            yield Kind(f"record.{kebab(found.__name__)}", found)


def _defined_in(module: types.ModuleType, base: type[msgspec.Struct]) -> Iterator[type[msgspec.Struct]]:
    for value in vars(module).values():
        is_ours = isinstance(value, type) and issubclass(value, base) and value.__module__ == module.__name__
        if is_ours and value is not base:
            yield value


def fields_in(raw: bytes) -> set[str]:
    """The names of the fields that stand in an example, its tag left out."""
    return set(msgspec.json.decode(raw, type=dict[str, Any])) - {"type"}


def fields_of(kind: Kind) -> set[str]:
    """The names of the fields that go over the wire or into Redis."""
    return set(kind.type.__struct_encode_fields__) - {"extra"}


def defaults_of(kind: Kind) -> dict[str, Any]:
    """What each field that may be left out means then."""
    least = _least(kind.type)
    optional = [field.name for field in msgspec.structs.fields(kind.type) if not field.required]
    values = {name: getattr(least, name) for name in optional if name != "extra"}
    return {name: _plain(value) for name, value in values.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        return {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
    return list(value) if isinstance(value, tuple) else value


def missing() -> dict[str, bytes]:
    """Names and bytes that are missing: a new kind's, and an example of fields that none of a kind has."""
    made: dict[str, bytes] = {}
    for kind in kinds():
        names = [name.removeprefix(f"{kind.name}.") for name in kind.examples()]
        if "min" not in names:
            made[f"{kind.name}.min"] = kind.encode(_least(kind.type))
        pinned_defaults = {name for raw in kind.defaults().values() for name in fields_in(raw)}
        unpinned = {name: value for name, value in defaults_of(kind).items() if name not in pinned_defaults}
        if unpinned:
            made[f"{kind.name}.defaults{_suffix(len(kind.defaults()))}"] = msgspec.json.encode(unpinned)
        seen = {name for raw in kind.examples().values() for name in fields_in(raw)}
        full = sum(name.startswith("full") for name in names)
        if not fields_of(kind) <= seen or not full:
            made[f"{kind.name}.full{_suffix(full)}"] = kind.encode(_full(kind.type))
    return made


def _suffix(before: int) -> str:
    return f"-{before + 1}" if before else ""


def _least(kind: type[msgspec.Struct]) -> Any:
    hints = typing.get_type_hints(kind)
    return kind(**{f.name: _sample(f.name, hints[f.name]) for f in msgspec.structs.fields(kind) if f.required})


def _full(kind: type[msgspec.Struct]) -> Any:
    hints = typing.get_type_hints(kind)
    values = {}
    for field in msgspec.structs.fields(kind):
        if field.name == "extra":
            continue
        value = _sample(field.name, hints[field.name])
        values[field.name] = (not field.default) if isinstance(value, bool) else value
    return kind(**values)


def _sample(name: str, hint: Any) -> Any:
    """A value that is no default, by the type of a field."""
    arguments = typing.get_args(hint)
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return _sample(name, next(each for each in arguments if each is not type(None)))
    if typing.get_origin(hint) is tuple:
        return (_sample(name, arguments[0]),)
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return _full(hint)
    if hint is msgspec.Raw:
        return link.pack_state(_full(records.SfuState))
    samples: dict[Any, Any] = {str: f'{name} "é" 名', bool: True, int: 2**53 + 1, float: 0.1}
    return samples[hint]


def main() -> None:
    added = defaultdict(list)
    for name, raw in missing().items():
        which, _, rest = name.partition(".")
        added[which].append(msgspec.json.encode(Line(name=rest, raw=msgspec.Raw(raw))) + b"\n")
        print(f"added {name}")
    for which, lines in added.items():
        with path_of(which).open("ab") as file:
            file.writelines(lines)


if __name__ == "__main__":
    main()
