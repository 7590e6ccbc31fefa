"""How many random examples a test gets: a few in each run, all of them in `make test-slow`.

A failure is shown with a line `@reproduce_failure(...)`: put it above the test and run that test alone. On the same
machine `.hypothesis/` keeps the example, and the next run begins with it. Where `CI` is set examples are the same ones
in each run (Hypothesis' own profile for CI): `CI=true make test-slow ARGS=tests/...` finds a failure of CI again.
"""

from __future__ import annotations

from hypothesis import settings

QUICK, FULL = "quick", "full"
SHARE = 4
"""A quick run has one example of so many."""
LEAST = 5
USUAL = 100
"""Hypothesis' own number, for tests that name none."""


def register_profiles() -> None:
    """Make both known and load the quick one; `--hypothesis-profile=full` loads the other."""
    settings.register_profile(FULL, settings.default, max_examples=USUAL, print_blob=True)
    settings.register_profile(QUICK, settings.default, max_examples=USUAL // SHARE, print_blob=True)
    settings.load_profile(QUICK)


def examples(full: int) -> int:
    """So many in a full run, a share of them in a quick one."""
    return full if settings.get_current_profile_name() == FULL else max(LEAST, full // SHARE)
