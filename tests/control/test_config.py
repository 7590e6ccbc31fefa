"""Settings of local fleets."""

from __future__ import annotations

import pytest

from localfleet.config import LocalFleet
from shared.errors import BadSetting


def test_local_fleet_has_an_sfu_per_core_and_two_at_least() -> None:
    assert [LocalFleet().sized(cores).sfus for cores in (1, 2, 8)] == [2, 2, 8]


def test_number_of_sfus_that_was_given_stands() -> None:
    assert LocalFleet(sfus=1).sized(8).sfus == 1


def test_more_sfus_than_a_pool_may_have_are_an_error_only_where_they_were_asked_for() -> None:
    with pytest.raises(BadSetting, match="--sfus: 6 SFUs are more than the scaling file's max_nodes, which is 4"):
        LocalFleet(sfus=6).sized(8, most=4)
    assert LocalFleet(sfus=4).sized(8, most=4).sfus == 4
    assert LocalFleet().sized(8, most=4).sfus == 4
    assert LocalFleet().sized(1, most=4).sfus == 2
