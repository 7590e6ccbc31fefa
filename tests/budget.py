"""How many random examples a test gets: a few in each run, all of them in `make test-slow`.

A failure is shown with a line `@reproduce_failure(...)`: put it above the test and run that test alone. On the same
machine `.hypothesis/` keeps the example, and the next run begins with it. Where `CI` is set examples are the same ones
in each run (Hypothesis' own profile for CI): `CI=true make test-slow ARGS=tests/...` finds a failure of CI again.
"""

from __future__ import annotations

from hypothesis import Phase, settings

QUICK, FULL, MUTANTS = "quick", "full", "mutants"
SHARE = 4
"""A quick run has one example of so many."""
LEAST = 5
USUAL = 100
"""Hypothesis' own number, for tests that name none."""


def register_profiles() -> None:
    """Make all known and load the quick one; `--hypothesis-profile=full` loads another.

    For mutants examples are the same in each run, and a failure is not made smaller.
    """
    settings.register_profile(FULL, settings.default, max_examples=USUAL, print_blob=True)
    settings.register_profile(QUICK, settings.default, max_examples=USUAL // SHARE, print_blob=True)
    quick = settings.get_profile(QUICK)
    settings.register_profile(MUTANTS, quick, derandomize=True, database=None, phases=[Phase.explicit, Phase.generate])
    settings.load_profile(QUICK)


def examples(full: int) -> int:
    """So many in a full run, a share of them in a quick one."""
    return full if settings.get_current_profile_name() == FULL else max(LEAST, full // SHARE)
