"""Every test of the plane runs over the reference and over the compiled one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fakes.plane_rig import PLANES, Rig


@pytest.fixture(params=PLANES, autouse=True, scope="module")
def plane_kind(request: pytest.FixtureRequest) -> Iterator[str]:
    """What `Rig` makes."""
    before, Rig.kind = Rig.kind, request.param
    yield request.param
    Rig.kind = before
