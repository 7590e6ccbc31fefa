"""Spot checks of the tests themselves: a rule is broken in a copy of the source, and the named tests must notice.

A mutant is one piece of text, found once, and what stands there instead. When a file was rewritten and the text is no
longer found, break the same rule where it stands now.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from sfu.plane import compiled
from tests.budget import MUTANTS as MUTANTS_PROFILE
from tests.source_tree import PACKAGES

ROOT = Path(__file__).parents[2]
COMPILED = Path(compiled.__file__)
WITHIN_S = 300
TESTS_FAILED = 1
"""pytest's exit status; others mean that no test was run, or that one could not be imported."""

pytestmark = pytest.mark.timeout(2 * WITHIN_S)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A broken rule, and where that must be noticed."""

    rule: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


STATE_FIRST = (
    "tests/router/core/test_directory.py",
    "tests/router/core/test_claims.py",
    "tests/router/test_state_first.py",
)
DRAIN = ("tests/sfu/core/drain/test_machine.py", "tests/sfu/core/drain/test_leased_cordon.py")
AUTOSCALER = ("tests/control/core/test_unknown.py", "tests/control/core/test_victim.py")
LEASES = ("tests/shared/test_store_scaling.py",)
MUTANTS = [
    Mutant(
        "a cordon excludes the SFU before a player hears of it",
        "router/core/directory.py",
        "if entry.status is not SfuStatus.ONLINE:",
        "if entry.status is SfuStatus.TERMINATING:",
        STATE_FIRST,
    ),
    Mutant(
        "the newest state wins, not the last to arrive",
        "router/core/directory.py",
        "        if new < known:\n",
        "        if new < (0, 0):\n",
        STATE_FIRST,
    ),
    Mutant(
        "a router that lags behind believes the player about the cordon",
        "router/core/claims.py",
        "if version <= (0, 0) or not self._holds(sfu, version, now=now):",
        "if version <= (0, 0) or self._directory.state(sfu):",
        STATE_FIRST,
    ),
    Mutant(
        "a router looks at its directory once more after the store has decided",
        "router/core/assignment.py",
        "        if not self._usable(plan, sfu, now=now):\n            return None\n",
        "",
        STATE_FIRST,
    ),
    Mutant(
        "an SFU that was not heard of for a while gets no new work",
        "router/core/directory.py",
        ">= NOT_PLACEABLE_AFTER_S",
        ">= 10 * NOT_PLACEABLE_AFTER_S",
        ("tests/router/core/test_directory.py",),
    ),
    Mutant(
        "a repeated SIGTERM changes nothing",
        "sfu/core/drain/machine.py",
        "        elif cordon.cause is DrainCause.SIGTERM:\n",
        "        elif False:\n",
        DRAIN,
    ),
    Mutant(
        "an order of a replaced controller is refused",
        "sfu/core/drain/machine.py",
        "return token < newest",
        "return token < 0",
        DRAIN,
    ),
    Mutant(
        "a room does not stay on the SFU that its player refuses",
        "shared/store/lua/place_room.lua",
        "if sfu == ARGV[i] then sfu = nil end",
        "",
        ("tests/shared/test_place_room_twins.py",),
    ),
    Mutant(
        "nothing is scaled while it is not known which nodes there are",
        "control/core/autoscaler/rules.py",
        "if not facts.world.certain:",
        "if False:",
        AUTOSCALER,
    ),
    Mutant(
        "the node with the fewest streams goes",
        "control/core/autoscaler/victim.py",
        "return min(capacity, key=_burden)",
        "return max(capacity, key=_burden)",
        AUTOSCALER,
    ),
    Mutant(
        "a mover refuses an SFU that it knows to be cordoned",
        "player/core/mover.py",
        "if self.heard.forbids(event):",
        "if False:",
        ("tests/player/core/test_mover.py",),
    ),
    Mutant(
        "an SFU answers an offer as the passive side of DTLS",
        "sfu/core/sdp/publish.py",
        'setup="passive"',
        'setup="active"',
        ("tests/sfu/core/sdp/test_publish.py",),
    ),
    Mutant(
        "a sent packet may be sent again",
        "shared/rtc/srtp.py",
        "policy.allow_repeat_tx = True",
        "policy.allow_repeat_tx = False",
        ("tests/shared/rtc/test_srtp.py",),
    ),
    Mutant(
        "a replayed packet is refused",
        "sfu/plane/native/srtp.pxi",
        "if index < 0 or not replay_fresh(stream, delta[0]):",
        "if index < 0:",
        ("tests/sfu/plane/test_twins.py", "tests/sfu/plane/test_planes.py"),
    ),
    Mutant(
        "a lease is renewed only for the newest token",
        "shared/store/lua/take_lease.lua",
        "holder[2] == ARGV[2] and newest == tonumber(ARGV[2])",
        "true",
        LEASES,
    ),
    Mutant(
        "state is written under the newest fencing token only",
        "shared/store/lua/put_scaling.lua",
        "if newest ~= tonumber(ARGV[1]) then",
        "if false then",
        LEASES,
    ),
    Mutant(
        "an expired token is refused",
        "shared/tokens.py",
        "if expires <= now_at:",
        "if expires <= 0:",
        ("tests/shared/test_tokens.py",),
    ),
]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source and its tests, with what is compiled."""
    root = tmp_path_factory.mktemp("mutants")
    unwanted = shutil.ignore_patterns("__pycache__", "node_modules")
    for folder in (*PACKAGES, "tests", "deploy", "docs"):
        shutil.copytree(ROOT / folder, root / folder, ignore=unwanted)
    for file in ("pyproject.toml", "ARCHITECTURE.md", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, root)
    return root


@contextmanager
def applied(mutant: Mutant, root: Path) -> Iterator[None]:
    """The copy is broken within, and whole again after."""
    file = root / mutant.file
    whole = file.read_text()
    assert whole.count(mutant.old) == 1, f"{mutant.old!r} is {whole.count(mutant.old)} times in {mutant.file}"
    file.write_text(whole.replace(mutant.old, mutant.new))
    whole_plane = COMPILED.read_bytes()
    try:
        if file.suffix == ".pxi":
            compile_plane(root)
        yield
    finally:
        file.write_text(whole)
        (root / COMPILED.relative_to(ROOT)).write_bytes(whole_plane)


def compile_plane(root: Path) -> None:
    """As the installation does, but as quickly as the compiler can."""
    source = root / "sfu/plane/compiled.pyx"
    made = run(root, sys.executable, "-m", "cython", str(source))
    assert made.returncode == 0, made.stderr
    flags = ("-O0", "-fPIC", "-shared", "-fno-strict-aliasing", "-w", f"-I{sysconfig.get_path('include')}")
    made = run(root, "cc", *flags, str(source.with_suffix(".c")), "-o", str(root / COMPILED.relative_to(ROOT)))
    assert made.returncode == 0, made.stderr


def run(root: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """In the copy, without files of byte code: two versions of one length in one second would be taken for one."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        command,
        cwd=root,
        env={**plain, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def outcome(root: Path, files: Sequence[str]) -> subprocess.CompletedProcess[str]:
    profile = f"--hypothesis-profile={MUTANTS_PROFILE}"
    return run(root, sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", profile, *files)


def test_without_a_mutant_all_named_tests_pass(copy: Path) -> None:
    """Else they would notice anything."""
    done = outcome(copy, sorted({file for mutant in MUTANTS for file in mutant.tests}))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.rule)
def test_a_broken_rule_is_noticed(mutant: Mutant, copy: Path) -> None:
    with applied(mutant, copy):
        done = outcome(copy, mutant.tests)
    assert done.returncode == TESTS_FAILED, done.stdout
