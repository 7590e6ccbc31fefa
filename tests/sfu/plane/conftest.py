"""Every test of the plane runs over the reference and over the compiled one, but for those that choose planes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.plane_rig import PLANES, Rig

CHOOSE = {"test_map", "test_narrow_path", "test_priority", "test_thread", "test_twins"}
"""Modules whose tests make the planes they need: both at once, or the compiled one with its thread."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "plane_kind" in metafunc.fixturenames and metafunc.module.__name__.rpartition(".")[2] not in CHOOSE:
        metafunc.parametrize("plane_kind", PLANES, indirect=True, scope="module")


@pytest.fixture(autouse=True, scope="module")
def plane_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """What `Rig` makes."""
    before, Rig.kind = Rig.kind, getattr(request, "param", Rig.kind)
    yield Rig.kind
    Rig.kind = before
