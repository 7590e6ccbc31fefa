"""Settings of local fleets."""

from __future__ import annotations

from control.config import LocalFleet


def test_local_fleet_has_an_sfu_per_core_and_two_at_least() -> None:
    assert [LocalFleet().sized(cores).sfus for cores in (1, 2, 8)] == [2, 2, 8]


def test_number_of_sfus_that_was_given_stands() -> None:
    assert LocalFleet(sfus=1).sized(8).sfus == 1
