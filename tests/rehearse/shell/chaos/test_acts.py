"""What a chaos run makes of a fleet that does not do as it is told."""

from __future__ import annotations

import asyncio

import pytest

from localfleet.errors import FleetFailed
from rehearse.core.chaos.events import ChaosEvent, ChaosKind
from rehearse.shell.chaos import acts as module
from rehearse.shell.chaos.acts import ChaosActs
from rehearse.shell.chaos.rehearsal import _failures_alone
from shared.errors import StoreUnavailable

CORDON = ChaosEvent(number=1, round=1, kind=ChaosKind.CORDON, target="sfu-1", offset_s=0.0, lasts_s=1.0)


async def test_an_operator_tries_on_while_redis_is_away_and_says_why_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It gave up after 30 s, and a Redis may be away for 40."""
    said: list[str] = []
    tries = 0

    async def command(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        if tries < 50:
            raise StoreUnavailable(operation="read_sfus", detail="refused")

    async def sleep(_: float) -> None:
        pass

    monkeypatch.setattr(module, "command", command)
    monkeypatch.setattr(module.asyncio, "sleep", sleep)
    await ChaosActs(None, None, None, said.append).begin(CORDON)  # type: ignore[arg-type]
    assert (tries, len(said)) == (50, 1)
    monkeypatch.setattr(module, "ORDERED_WITHIN_S", -1.0)
    tries = 0
    with pytest.raises(FleetFailed, match="did not follow"):
        await ChaosActs(None, None, None, said.append).begin(CORDON)  # type: ignore[arg-type]


async def test_a_test_bed_that_fails_says_so_in_a_sentence() -> None:
    async def fail() -> None:
        raise FleetFailed(program="sfu-1", detail="still runs")

    with pytest.raises(FleetFailed, match="still runs"), _failures_alone():
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(fail())
    with pytest.raises(ExceptionGroup), _failures_alone():
        raise ExceptionGroup("other", [ValueError()])
