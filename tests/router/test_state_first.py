"""Invariant 1 under random histories, and proof that the same machine notices when it is broken on purpose."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from router.core.assignment import Assigner
from router.core.claims import Claims
from router.core.directory import Directory
from router.core.facts import Fact
from router.core.plan import PlacementPlan
from router.core.selector.decision import PlacementDecision
from router.core.selector.node_selector import NodeSelector
from shared.placing import PlacedRoom, Version
from shared.records import SfuState
from tests.budget import examples
from tests.router.fleet_machine import FleetMachine

_QUIET = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
HISTORIES = int(os.environ.get("SLUICE_TEST_HISTORIES", "60"))
"""Random histories of 60 steps each; a nightly run can ask for many more."""
HOLDS = settings(max_examples=examples(HISTORIES), stateful_step_count=60, deadline=None, suppress_health_check=_QUIET)
BREAKS = settings(
    max_examples=1000,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    report_multiple_bugs=False,
    suppress_health_check=_QUIET,
)


@pytest.mark.hypothesis
def test_after_a_player_heard_of_a_cordon_no_assignment_returns_that_sfu() -> None:
    FleetMachine.assignments = 0
    run_state_machine_as_test(FleetMachine, settings=HOLDS)  # type: ignore[no-untyped-call]
    assert FleetMachine.assignments >= 10, "a machine that never assigns proves nothing; about 200 is usual"


class TellFirst(Directory):
    """Players hear of a state at once; it is applied when the next one arrives."""

    def __init__(self) -> None:
        super().__init__()
        self._late: list[SfuState] = []

    def hear(self, state: SfuState, *, now: float, direct: bool = True) -> list[Fact]:
        late, self._late = self._late, [state]
        for each in late:
            super().hear(each, now=now, direct=direct)
        shadow = Directory()
        known = self.state(state.sfu)
        if known is not None:
            shadow.hear(known, now=now)
        return shadow.hear(state, now=now)


class LastArrivalWins(Directory):
    """Merges by the order of arrival instead of by `(incarnation, revision)`."""

    def hear(self, state: SfuState, *, now: float, direct: bool = True) -> list[Fact]:
        entry = self._entries.get(state.sfu)
        if entry is not None:
            entry.state = SfuState(address=state.address, incarnation=-1)
        return super().hear(state, now=now, direct=direct)


class Deaf(Claims):
    """Does not heed the version that a player names when it asks to leave."""

    def heed(self, room: str, sfu: str, version: Version, *, now: float) -> None:
        return None


class DeafToPlayers(Assigner):
    """Does not believe players that know more than its router."""

    def __init__(self, directory: Directory, selector: NodeSelector) -> None:
        super().__init__(directory, selector)
        self.claims = Deaf(directory)


class NoSecondLook(Assigner):
    """Answers with what the store said, though the fleet may have changed meanwhile."""

    def settle(
        self, plan: PlacementPlan, placed: PlacedRoom | None, *, carrying: Any, now: float
    ) -> PlacementDecision | None:
        if placed is None or self._directory.state(placed.placement.sfu) is None:
            return super().settle(plan, placed, carrying=carrying, now=now)
        return self._decision(plan, placed.placement.sfu, self._why(plan, placed))


@pytest.mark.parametrize(
    "parts",
    [
        {"directory_class": TellFirst},
        {"directory_class": LastArrivalWins},
        {"assigner_class": DeafToPlayers},
        {"assigner_class": NoSecondLook},
    ],
    ids=lambda parts: next(iter(parts.values())).__name__,
)
def test_the_machine_notices_a_broken_router(parts: dict[str, Any]) -> None:
    broken = type("Broken", (FleetMachine,), parts)
    with pytest.raises(AssertionError, match=r"assigned|told|given back"):
        run_state_machine_as_test(broken, settings=BREAKS)  # type: ignore[no-untyped-call]
