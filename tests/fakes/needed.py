"""What a test can't do without: on a developer's machine it is left out then, in continuous integration it fails."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable

import pytest

_LEFT_OUT = re.compile(r"not installed: (?P<what>.+); install with: (?P<command>.+)$")


def need(there: object, what: str) -> None:
    """Go on if it is there; `what` says what is missing. Where `CI` is set nothing may be."""
    if there:
        return
    if os.environ.get("CI"):
        pytest.fail(f"{what}: continuous integration must have it")
    pytest.skip(what)


def need_installed(there: object, what: str, command: str, *, also_in_ci: bool = True) -> None:
    """As `need`, for a program or a library that `command` installs; what a run left out is told in its last lines."""
    reason = f"not installed: {what}; install with: {command}"
    if also_in_ci:
        need(there, reason)
    elif not there:
        pytest.skip(reason)


def left_out(reasons: Iterable[str]) -> str:
    """One line on the tests left out for what is not installed; empty when there are none."""
    found = Counter(told.groups() for told in map(_LEFT_OUT.search, reasons) if told)
    parts = [f"{count} without {what} ({command})" for (what, command), count in found.items()]
    return f"sluice: tests left out: {', '.join(parts)}" if parts else ""
