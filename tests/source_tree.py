"""What the source says without being run: imports, arrows between packages, names of classes, what a core touches."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGES = (
    *("shared", "player", "router", "sfu", "client_sim", "control"),
    *("localfleet", "operators", "rehearse", "bench", "cli", "web"),
)

IMPURE = {
    **dict.fromkeys(("asyncio", "threading", "signal"), "waits"),
    "time": "reads a clock",
    "socket": "opens a socket",
    "secrets": "takes chance that no argument gave it",
    "os": "asks the system",
    "subprocess": "starts a process",
}
"""Modules that no core imports, and why. `random` is there for the type `Random`, which comes as an argument."""
OPENS = {"open", "read_text", "read_bytes", "write_text", "write_bytes"}
"""Calls that open a file, of a name or a method."""
READS_CLOCK = {"now", "utcnow", "today"}
"""Of `datetime` and `date`."""
ALL = "all"
"""In ARCHITECTURE's table: a package that may import every other one."""


@dataclass(frozen=True, slots=True)
class Source:
    """A module: its path relative to the root, and its syntax."""

    path: str
    tree: ast.Module

    @property
    def package(self) -> str:
        return self.path.partition("/")[0]

    def imports(self) -> Iterator[str]:
        """Whole names of what it imports, inside functions too: `a.b` and `a.b.c` for `from a.b import c`."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                module = self._absolute(node)
                yield module
                yield from (f"{module}.{alias.name}" for alias in node.names)

    def _absolute(self, node: ast.ImportFrom) -> str:
        above = self.path.split("/")[: -node.level] if node.level else []
        return ".".join([*above, *filter(None, [node.module])])


def sources(root: Path) -> Iterator[Source]:
    """Every Python module of the product below this root."""
    for package in PACKAGES:
        for file in sorted((root / package).rglob("*.py")):
            yield Source(file.relative_to(root).as_posix(), _parsed(file.read_text()))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def arrows(root: Path) -> dict[tuple[str, str], list[str]]:
    """Which package imports which other one, and the files that do it."""
    found: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source in sources(root):
        for package in {name.partition(".")[0] for name in source.imports()} & set(PACKAGES) - {source.package}:
            found[source.package, package].append(source.path)
    return dict(found)


def table(text: str) -> dict[str, set[str]]:
    """Of ARCHITECTURE.md: each package and what it may import."""
    lines = iter(text.splitlines())
    for line in lines:
        if [cell.strip() for cell in line.strip("|").split("|")] == ["package", "is", "may import"]:
            break
    next(lines)
    told: dict[str, set[str]] = {}
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 3:
            break
        told[cells[0].strip("`")] = {ALL} if cells[2] == ALL else set(re.findall(r"`(\w+)`", cells[2]))
    return told


def wrong_arrows(root: Path, told: Mapping[str, set[str]]) -> list[str]:
    """Arrows that the table does not have, and those that only the table has."""
    real = arrows(root)
    wrong = [
        f"{one} imports {other}, which the table does not say: {', '.join(sorted(files))}"
        for (one, other), files in sorted(real.items())
        if not told[one] & {other, ALL}
    ]
    for one, others in told.items():
        unused = sorted(other for other in others - {ALL} if (one, other) not in real)
        wrong += [f"the table says that {one} imports {other}: it does not" for other in unused]
    return wrong


def circles(root: Path) -> list[str]:
    """Packages that import one another, directly or by way of others."""
    left = set(arrows(root))
    while True:
        within = {one for one, _ in left} & {other for _, other in left}
        inner = {(one, other) for one, other in left if one in within and other in within}
        if inner == left:
            return sorted(within)
        left = inner


def impurities(root: Path) -> list[str]:
    """What the files of a `core/` do that only a shell may, as `path: what`."""
    found = []
    for source in sources(root):
        if "/core/" in source.path:
            found += [f"{source.path}: {what}" for what in sorted(set(_impurities(source)))]
    return found


def _impurities(source: Source) -> Iterator[str]:
    for name in source.imports():
        first, *rest = name.split(".")
        if first in IMPURE:
            yield f"{first} {IMPURE[first]}"
        if first == "random" and rest not in ([], ["Random"]):
            yield f"{name} takes chance that no argument gave it"
        if first in PACKAGES and "shell" in rest:
            yield f"{'.'.join([first, *rest[: rest.index('shell') + 1]])} is a shell"
    for node in ast.walk(source.tree):
        match node:
            case ast.Attribute(value=ast.Name(id="random"), attr=name) if name != "Random":
                yield f"random.{name} takes chance that no argument gave it"
            case ast.Call(func=ast.Attribute(attr=name)) if name in READS_CLOCK:
                yield f"{name} reads a clock"
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in OPENS:
                yield f"{name} opens a file"
            case ast.Await() | ast.AsyncFor() | ast.AsyncWith():  # a Protocol may declare what a shell awaits
                yield "awaits"


def unseeded(root: Path) -> set[str]:
    """Files that begin chance of their own: an unseeded generator, or the module's."""
    return {source.path for source in sources(root) if any(map(_begins_chance, ast.walk(source.tree)))}


def _begins_chance(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="random"), attr="Random"), args=args):
            return not args
        case ast.Attribute(value=ast.Name(id="random"), attr=name):
            return name != "Random"
    return False


def classes(root: Path) -> dict[str, list[str]]:
    """Names of public classes, and the files that define each."""
    found: dict[str, list[str]] = defaultdict(list)
    for source in sources(root):
        for node in ast.walk(source.tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(source.path)
    return dict(found)


def folders(root: Path) -> set[str]:
    """Folders below this root that have Python modules, relative to it."""
    return {file.parent.relative_to(root).as_posix() for file in root.rglob("*.py")} - {"."}
