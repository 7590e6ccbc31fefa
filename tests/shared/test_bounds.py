"""Numbers in settings: what is within bounds, and what an error says."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from shared.bounds import check_numbers
from shared.errors import BadSetting


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0, -1])
def test_what_is_not_finite_or_not_over_the_bound_is_refused(value: float) -> None:
    with pytest.raises(BadSetting) as caught:
        check_numbers(SimpleNamespace(fine=1, a_s=value), "fine", "a_s", over=0)
    assert str(caught.value) == f"a_s: must be over 0, not {value}"


@pytest.mark.parametrize("value", [math.nan, -0.1, 3600.1])
def test_bounds_that_belong_to_it_are_told_with_the_flag_and_the_hint(value: float) -> None:
    with pytest.raises(BadSetting) as caught:
        check_numbers(SimpleNamespace(a_s=value), "a_s", least=0, most=3600, flags=True, hint="it is a length of time")
    assert str(caught.value) == f"--a-s: must be at least 0 and at most 3600, not {value}; it is a length of time"


def test_bounds_themselves_and_what_was_not_given_are_allowed() -> None:
    check_numbers(SimpleNamespace(a=0, b=1.0, c=None), "a", "b", "c", least=0, most=1)


def test_a_number_without_bounds_must_be_finite() -> None:
    check_numbers(SimpleNamespace(a=-1e300), "a")
    with pytest.raises(BadSetting, match="must be finite"):
        check_numbers(SimpleNamespace(a=math.nan), "a")


def test_a_whole_number_beyond_all_floats_is_refused() -> None:
    with pytest.raises(BadSetting, match="a: must be over 0"):
        check_numbers(SimpleNamespace(a=10**400), "a", over=0)
