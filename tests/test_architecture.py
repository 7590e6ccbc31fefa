"""The picture in ARCHITECTURE.md is what the source does: arrows between packages, pure cores, one name one class."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.source_tree import (
    ALL,
    PACKAGES,
    arrows,
    circles,
    classes,
    folders,
    impurities,
    table,
    unseeded,
    wrong_arrows,
)

ROOT = Path(__file__).parents[1]
TESTS = Path(__file__).parent

IMPURE_FOR_A_REASON = {
    "sfu/core/ice_lite.py: secrets takes chance that no argument gave it",
}
"""Credentials must be beyond guessing: no seeded `Random` may make them."""

BEGIN_CHANCE = {
    "router/command.py",
    "sfu/shell/program.py",
    "sfu/plane/reference.py",
    "player/shell/join.py",
    "shared/host/ports.py",
}
"""Where programs and the client library begin, and where ports are drawn."""

WITHOUT_A_PRODUCT_FOLDER = set(
    "browser deploy docs fakes integration interop movers mutants stories".split()  # noqa: SIM905
)
"""Test folders for more than one package, or for what is not Python."""


def test_packages_import_what_architecture_s_table_says_and_nothing_else() -> None:
    told = table((ROOT / "ARCHITECTURE.md").read_text())
    assert set(told) == set(PACKAGES)
    assert wrong_arrows(ROOT, told) == []


def test_no_packages_import_one_another() -> None:
    assert circles(ROOT) == []


def test_only_the_command_line_imports_benchmarks() -> None:
    assert {one for one, other in arrows(ROOT) if other == "bench"} == {"cli"}


def test_the_command_line_loads_benchmarks_only_when_one_is_run() -> None:
    script = "import sys, cli.main; print(*sorted(name for name in sys.modules if name.split('.')[0] == 'bench'))"
    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert told.stdout.split() == []


def test_a_core_only_decides() -> None:
    assert set(impurities(ROOT)) == IMPURE_FOR_A_REASON


def test_chance_is_an_argument_but_where_a_program_begins() -> None:
    assert unseeded(ROOT) == BEGIN_CHANCE


def test_a_public_class_name_stands_for_one_class() -> None:
    assert {name for name, files in classes(ROOT).items() if len(files) > 1} == set()


def test_test_folders_are_those_of_the_product() -> None:
    ours = {folder for folder in folders(TESTS) if folder.partition("/")[0] not in WITHOUT_A_PRODUCT_FOLDER}
    assert sorted(ours - folders(ROOT)) == []
    top = {folder.partition("/")[0] for folder in folders(TESTS)}
    assert top >= WITHOUT_A_PRODUCT_FOLDER, "an exception without a folder"


@pytest.fixture
def fake(tmp_path: Path) -> Path:
    """A tree of three packages in which all is well: `bench` imports `sfu`, which imports `shared`."""
    write(tmp_path, "shared/keys.py", "class Keys: ...\n")
    write(tmp_path, "sfu/core/room.py", "import random\nfrom shared.keys import Keys\n\nrng: random.Random\n")
    write(tmp_path, "sfu/shell/port.py", "import asyncio, socket\nfrom sfu.core import room\n")
    write(tmp_path, "bench/run.py", "import sfu.shell.port\n")
    assert wrong_arrows(tmp_path, FAKE_TABLE) == []
    assert circles(tmp_path) == []
    assert impurities(tmp_path) == []
    return tmp_path


FAKE = """
| package | is | may import |
|---|---|---|
| `shared` | what two programs must agree on | nothing of ours |
| `sfu` | `forwards` | `shared` |
| `bench` | measures | `sfu` |
| `cli` | the command line | all |
"""
FAKE_TABLE = table(FAKE)


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text)


def test_the_table_is_read() -> None:
    assert {"shared": set(), "sfu": {"shared"}, "bench": {"sfu"}, "cli": {ALL}} == FAKE_TABLE


@pytest.mark.parametrize(
    "line",
    [
        "from bench.run import x",
        "import bench",
        "def late() -> None:\n    import bench.run",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from bench import run",
    ],
)
def test_an_arrow_that_the_table_does_not_have_is_found(fake: Path, line: str) -> None:
    write(fake, "sfu/more.py", f"{line}\n")
    assert wrong_arrows(fake, FAKE_TABLE) == ["sfu imports bench, which the table does not say: sfu/more.py"]
    assert circles(fake) == ["bench", "sfu"]


def test_an_arrow_that_only_the_table_has_is_found(fake: Path) -> None:
    write(fake, "bench/run.py", "")
    assert wrong_arrows(fake, FAKE_TABLE) == ["the table says that bench imports sfu: it does not"]


def test_who_may_import_all_may_import_each(fake: Path) -> None:
    write(fake, "cli/main.py", "import shared.keys\n")
    assert wrong_arrows(fake, FAKE_TABLE) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("import asyncio", "asyncio waits"),
        ("from time import monotonic", "time reads a clock"),
        ("import socket as s", "socket opens a socket"),
        ("def late() -> None:\n    import time", "time reads a clock"),
        ("import os.path", "os asks the system"),
        ("from random import choice", "random.choice takes chance that no argument gave it"),
        ("import random\nrandom.random()", "random.random takes chance that no argument gave it"),
        ("from datetime import datetime\ndatetime.now()", "now reads a clock"),
        ("import datetime\ndatetime.datetime.now()", "now reads a clock"),
        ("open('x')", "open opens a file"),
        ("from pathlib import Path\nPath('x').read_text()", "read_text opens a file"),
        ("from sfu.shell.port import Port", "sfu.shell is a shell"),
        ("from sfu import shell", "sfu.shell is a shell"),
        ("from ..shell import port", "sfu.shell is a shell"),
        ("async def wait(what) -> None:\n    await what", "awaits"),
    ],
)
def test_a_core_that_does_more_is_found(fake: Path, line: str, found: str) -> None:
    write(fake, "sfu/core/more.py", f"{line}\n")
    assert impurities(fake) == [f"sfu/core/more.py: {found}"]
    write(fake, "sfu/core/deep/more.py", f"{line}\n".replace("from ..shell", "from ...shell"))
    assert f"sfu/core/deep/more.py: {found}" in impurities(fake)


@pytest.mark.parametrize("begins", ["random.Random()", "random.SystemRandom()", "random.random()"])
def test_chance_of_a_file_s_own_is_found(fake: Path, begins: str) -> None:
    write(fake, "sfu/shell/seeded.py", "import random\nrng = random.Random(1)\n")
    write(fake, "sfu/shell/more.py", f"import random\nx = {begins}\n")
    assert unseeded(fake) == {"sfu/shell/more.py"}


def test_a_class_name_that_is_there_twice_is_found(fake: Path) -> None:
    write(fake, "sfu/more.py", "class Keys: ...\nclass _Keys: ...\nclass More: ...\n")
    assert {name: len(files) for name, files in classes(fake).items()} == {"Keys": 2, "More": 1}
