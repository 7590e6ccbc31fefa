"""The bounds of a drain fit into each other, or the setting to change is named."""

from __future__ import annotations

import pytest

from sfu.core.drain.bounds import DrainBounds
from shared.errors import BadSetting


def test_the_defaults_are_those_of_the_requirements() -> None:
    bounds = DrainBounds()
    assert (bounds.drain_max_s, bounds.grace_s, bounds.lead_s, bounds.final_after_s) == (1800, 3600, 60, 3540)
    assert bounds.final_bound_s == 10


def test_a_short_grace_keeps_a_quarter_for_the_end() -> None:
    bounds = DrainBounds(drain_max_s=2, grace_s=10)
    assert (bounds.lead_s, bounds.final_after_s, bounds.final_bound_s) == (2.5, 7.5, 2.0)


@pytest.mark.parametrize(
    ("settings", "named", "fix"),
    [
        ({"drain_max_s": 3540.0}, "drain_max_s", "lower drain_max_s or raise grace_s"),
        ({"grace_s": 30.0}, "drain_max_s", "grace_s - final_lead_s = 22.5 s"),
        ({"grace_s": 0.0, "drain_max_s": 0.0}, "grace_s", "at least 1 s"),
        ({"grace_s": float("nan")}, "grace_s", "seconds"),
        ({"drain_max_s": -1.0}, "drain_max_s", "seconds"),
        ({"final_lead_s": 0.0}, "final_lead_s", "more than 0 s"),
    ],
)
def test_bounds_that_do_not_fit_name_the_fix(settings: dict[str, float], named: str, fix: str) -> None:
    with pytest.raises(BadSetting, match=fix) as caught:
        DrainBounds(**settings)
    assert caught.value.setting == named
