"""A local fleet's pool: what becomes of nodes and a controller that do not come up."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cli.up import notes
from localfleet.config import LocalFleet
from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet
from localfleet.scaled_fleet import ScaledFleet
from shared.host.child import Child, start

SECRET = "0123456789abcdef0123456789abcdef"


class PlaceableFleet:
    """A fleet whose routers take every node of the pool for placeable."""

    redis_url = "redis://127.0.0.1:1/0"
    page = "http://127.0.0.1:8080/"

    def __init__(self, place: Path, **environ: str) -> None:
        self.spec = SimpleNamespace(fleet="f")
        self.logs = place
        self.others: dict[str, Child] = {}
        self.scaled: ScaledFleet | None = None
        self._environ = {**os.environ, **environ}

    def say(self, text: str) -> None:
        """No progress is shown."""

    def router_urls(self) -> list[str]:
        return ["ws://127.0.0.1:1"]

    def environment(self) -> dict[str, str]:
        return self._environ

    async def sfu_states(self) -> dict[str, Any]:
        assert self.scaled is not None
        return {node.sfu: {"placeable": True} for node in (await self.scaled.pool.list()).nodes}

    async def start_other(self, name: str, command: list[str], *, env: dict[str, str]) -> Child:
        child = self.others[name] = await start(name, command, logs=self.logs, env={**self._environ, **env})
        return child


class UnheardFleet(PlaceableFleet):
    """The same, but no router has heard of any node."""

    async def sfu_states(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "scaling.toml"
    file.write_text(f'[pool]\nstate_dir = "{tmp_path / "pool"}"\n')
    return file


def scaled(fleet: PlaceableFleet, file: Path) -> ScaledFleet:
    fleet.scaled = ScaledFleet(cast(Fleet, fleet), file, nodes=1)
    return fleet.scaled


async def test_a_node_that_ends_while_it_starts_is_told_at_once_with_its_own_words(file: Path) -> None:
    fleet = UnheardFleet(file.parent, SLUICE_SECRET=SECRET)
    file.write_text(file.read_text() + 'env = {SLUICE_DRAIN_MAX_S = "9999"}')
    with pytest.raises(FleetFailed, match="ended unasked with status 2 while starting") as failed:
        await scaled(fleet, file).__aenter__()
    assert "drain_max_s: 9999 s must be less than" in failed.value.log


async def test_a_controller_that_does_not_come_up_fails_the_start_with_its_own_words(file: Path) -> None:
    fleet = PlaceableFleet(file.parent, SLUICE_SECRET=SECRET, SLUICE_CONTROLLER="two words")
    with pytest.raises(FleetFailed, match=r"control ended with status 2 while starting, .* SLUICE_…") as failed:
        await scaled(fleet, file).__aenter__()
    assert "controller: give an id" in failed.value.log
    assert fleet.scaled is not None
    assert not (await fleet.scaled.pool.list()).nodes, "nothing is left running"


async def test_the_logs_of_a_pool_are_where_the_notes_say(file: Path) -> None:
    fleet = PlaceableFleet(file.parent, SLUICE_SECRET=SECRET)
    async with scaled(fleet, file) as running:
        (node,) = (await running.pool.list()).nodes
        assert (running.pool.logs / f"{node.node}.log").exists()
        told = notes(cast(Fleet, fleet), LocalFleet(), running.pool)
    assert any(f"{running.pool.logs} for the SFUs" in line for line in told)
    assert any(str(fleet.logs) in line for line in told)
