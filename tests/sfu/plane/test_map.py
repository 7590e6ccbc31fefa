"""The plane's map: each native file is named after the Python module with the same rules, whose numbers it reads."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from sfu.core.media import arrivals, delivery
from sfu.plane import compiled as compiled_module
from sfu.plane.drops import DropReason
from sfu.plane.encoding import KEYFRAME_CODECS

ROOT = Path(__file__).parents[3]
NATIVE = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "sfu/plane/native").glob("*.pxi")}
PACKAGES = ("sfu.plane", "sfu.core.media", "shared.rtc")

PLATFORM = {
    "control": "what Python's calls do, with the lock held",
    "crypto": "libcrypto and libsrtp by address",
    "egress": "batches of what leaves",
    "gso": "runs of datagrams in one send",
    "pktinfo": "which of our addresses was asked; its twin is in the shell",
    "system": "the C library and the kernel",
    "table": "a hash table and a vector",
    "thread": "the thread and its socket",
    "values": "text and addresses",
}
"""Native files without a Python module: the reference plane has the standard library there."""

PYTHON_ONLY = {
    "choice": "which plane runs",
    "reference": "its twin is compiled.pyx",
    "symbols": "where libsrtp and libcrypto are",
}
NOT_NATIVE = {"DEFAULT_REMB_BPS": "part of each spec"}
UNITS = {"0.0", "1.0", "1000.0", "256.0", "65536.0", "262144.0"}
"""Decimal fractions that are no rule's: none and one, milliseconds, fixed-point formats."""

compiled: ModuleType = compiled_module


def namesakes() -> dict[str, ModuleType]:
    found = {}
    for name in NATIVE:
        paths = [
            f"{package}.{name}" for package in PACKAGES if (ROOT / package.replace(".", "/") / f"{name}.py").exists()
        ]
        if name not in PLATFORM:
            assert len(paths) == 1, f"native/{name}.pxi is named after {paths or 'no module'}"
            found[name] = import_module(paths[0])
    return found


TWINS = namesakes()


def own_numbers(module: ModuleType) -> dict[str, float]:
    """Constants that the module itself says."""
    assert module.__file__
    text = Path(module.__file__).read_text(encoding="utf-8")
    names = re.findall(r"^([A-Z][A-Z0-9_]+)(?::[^=]*)? = ", text, re.M)
    return {name: value for name in names if isinstance(value := getattr(module, name), int | float)}


def sizes(text: str) -> dict[str, int]:
    """Sizes of arrays in a native file: what its `cpdef enum` says."""
    blocks = re.findall(r"^cpdef enum:\n((?: {4}.*\n)+)", text, re.M)
    return {name: int(value) for block in blocks for name, value in re.findall(r"(\w+) = (\d+)", block)}


def test_every_module_of_the_reference_has_a_native_file_of_its_name() -> None:
    modules = {path.stem for folder in ("sfu/plane", "sfu/core/media") for path in (ROOT / folder).glob("*.py")}
    assert modules - {"__init__"} - NATIVE.keys() == PYTHON_ONLY.keys()
    assert PLATFORM.keys() <= NATIVE.keys()


def test_the_compiled_plane_is_made_of_all_of_them() -> None:
    text = (ROOT / "sfu/plane/compiled.pyx").read_text(encoding="utf-8")
    assert sorted(re.findall(r'^include "native/(\w+)\.pxi"$', text, re.M)) == sorted(NATIVE)


@pytest.mark.parametrize("name", sorted(TWINS))
def test_sizes_of_arrays_are_those_of_the_python_module(name: str) -> None:
    for size, value in sizes(NATIVE[name]).items():
        assert getattr(compiled, size) == value == getattr(TWINS[name], size), size


def test_there_are_sizes_of_arrays_to_compare() -> None:
    assert sizes(NATIVE["ring"]) == {"RING_SIZE": 1000}
    assert sizes(NATIVE["arrivals"]).keys() == {"WINDOW", "MAX_RECEIVED"}


@pytest.mark.parametrize("name", sorted(name for name in TWINS if TWINS[name].__name__.startswith("sfu.")))
def test_each_number_of_the_python_module_is_read_from_it(name: str) -> None:
    for number in own_numbers(TWINS[name]).keys() - sizes(NATIVE[name]).keys() - NOT_NATIVE.keys():
        read = re.compile(rf"^cdef \w+ {number} = {name}\.{number}\b", re.M)
        assert any(read.search(text) for text in NATIVE.values()), number


@pytest.mark.parametrize("name", sorted(TWINS))
def test_no_number_of_a_rule_is_written_again(name: str) -> None:
    code = re.sub(r'"{3}(?:.|\n)*?"{3}|#.*', "", NATIVE[name])
    assert set(re.findall(r"(?<![\w.])\d+\.\d+", code)) <= UNITS


def test_masked_sizes_are_powers_of_two() -> None:
    for size in (arrivals.WINDOW, delivery.FEWEST, delivery.MOST):
        assert size & (size - 1) == 0


def test_every_reason_to_drop_is_one_of_drop_reason() -> None:
    assert len(DropReason) == compiled.DROP_KINDS
    assert {getattr(compiled, reason.name) for reason in DropReason} == set(range(len(DropReason)))


def test_the_words_of_reasons_stand_in_drop_reason_alone() -> None:
    for reason in DropReason:
        assert not any(f'"{reason.value}"' in text for text in NATIVE.values()), reason


def test_both_planes_know_the_same_codecs_by_their_key_frames() -> None:
    assert compiled._KEYFRAME_CODECS.keys() == KEYFRAME_CODECS
