"""What a test can't do without: on a developer's machine it is skipped then, in continuous integration it fails."""

from __future__ import annotations

import os

import pytest


def need(there: bool, what: str) -> None:
    """Go on if it is there; `what` says what is missing. Where `CI` is set nothing may be."""
    if there:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{what}: continuous integration must have it")
    pytest.skip(what)
