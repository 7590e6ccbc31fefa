"""Two real controllers on a real server: one acts, a paused or cut off one does no harm, nothing is lost (A7)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from cli.main import run as sluice
from shared.embedded import EmbeddedRedis
from shared.errors import StoreUnavailable
from shared.host.child import Child, start
from shared.records import CommandVerb
from shared.scaling_records import AUTOSCALER, ScalingState
from shared.store.store import Store
from tests.fakes.scaling_rig import Sfu

OUTAGE_S = float(os.environ.get("SLUICE_TEST_OUTAGE_S", "5"))
"""How long Redis is away: longer than a lease lasts."""
pytestmark = pytest.mark.timeout(240 + 2 * OUTAGE_S)
WITHIN_S = 90.0
"""For whatever must come about; the machine may be busy with anything."""
SETTINGS = """
scale_out_hits = 2
scale_out_window = 3
scale_in_ticks = 4
tick_s = 0.5
cooldown_s = 4
min_nodes = 2
max_nodes = 4
launch_timeout_s = 60
cordon_lease_s = 3600
lease_s = {lease_s}
report_max_age_s = 5
"""
HOT, WARM, QUIET = 0.9, 0.5, 0.1


class World:
    """Redis, a pool of files, SFUs that report as a router would write it, and controllers."""

    def __init__(self, place: Path, redis: EmbeddedRedis, fleet: str) -> None:
        self.place = place
        self.redis = redis
        self.fleet = fleet
        self.store = Store(redis.url, fleet=fleet, timeout_s=5.0)
        self.sfus: dict[str, Sfu] = {}
        self.controllers: dict[str, Child] = {}
        self.load = WARM
        self.http = aiohttp.ClientSession()

    async def report_for_ever(self) -> None:
        """SFUs report and follow commands, and new nodes of the pool come up."""
        while True:
            with contextlib.suppress(StoreUnavailable):
                await self._report()
            await asyncio.sleep(0.1)

    async def _report(self) -> None:
        nodes = {file.name for file in (self.place / "nodes").iterdir()}
        self.sfus = {name: self.sfus.get(name) or Sfu(name) for name in sorted(nodes)}
        for sfu in self.sfus.values():
            if not sfu.by:
                sfu.streams = int(self.load * 1000)
            sfu.revision += 1
            await self.store.put_sfu(sfu.state())
        for command in await self.store.read_commands(list(self.sfus)):
            sfu = self.sfus[command.sfu]
            if command.verb == CommandVerb.CORDON and not sfu.by:
                assert (command.by, command.lease_s) == (AUTOSCALER, 3600.0)
                sfu.by = command.by
            elif command.verb == CommandVerb.UNCORDON:
                sfu.by = ""

    async def start(self, controller: str) -> None:
        command = [sys.executable, "-m", "tests.fakes.controller_process", str(self.place), self.redis.url, self.fleet]
        self.controllers[controller] = await start(controller, [*command, controller], logs=self.place)

    async def leader(self) -> tuple[str, str]:
        """The one that leads and the other one, once both are up."""
        await self.until(
            lambda: all("standing by" in self.log(c) or "leading" in self.log(c) for c in self.controllers)
        )
        name = ""

        async def found() -> bool:
            nonlocal name
            leader = (await self.store.read_scaling(0)).leader
            name = leader.controller if leader else ""
            return bool(name)

        await self.until(found)
        return name, next(other for other in self.controllers if other != name)

    async def leads(self, controller: str) -> None:
        async def yes() -> bool:
            leader = (await self.store.read_scaling(0)).leader
            return leader is not None and leader.controller == controller

        await self.until(yes)

    async def ticks(self, n: int) -> None:
        """Until the fleet has ticked that often again."""
        begun = (await self.state()).tick

        async def passed() -> bool:
            return (await self.state()).tick >= begun + n

        await self.until(passed)

    async def state(self) -> ScalingState:
        return (await self.store.read_scaling(0)).state or ScalingState()

    async def until(self, condition: Callable[[], bool | Awaitable[bool]]) -> None:
        deadline = time.monotonic() + WITHIN_S
        while True:
            with contextlib.suppress(StoreUnavailable):
                answer = condition()
                if answer is True or (not isinstance(answer, bool) and await answer):
                    return
            assert time.monotonic() < deadline, "\n".join(self.log(each)[-3000:] for each in self.controllers)
            for child in self.controllers.values():
                assert child.running or child.exit_code == 0, child.tail()
            await asyncio.sleep(0.05)

    def journal(self) -> list[dict[str, Any]]:
        path = self.place / "journal"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def launches(self) -> list[str]:
        return [line["by"] for line in self.journal() if line["what"] == "launch"]

    def log(self, controller: str) -> str:
        log = self.controllers[controller].log
        return log.read_text(errors="replace") if log.exists() else ""

    async def metric(self, name: str) -> float:
        """One of Prometheus' samples, summed over the controllers; 0 where it is not there."""
        total = 0.0
        for controller in self.controllers:
            address = next(line for line in self.log(controller).splitlines() if line.startswith("{"))
            async with self.http.get(json.loads(address)["http"] + "/metrics") as response:
                lines = (await response.text()).splitlines()
            total += sum(float(line.split()[-1]) for line in lines if line.startswith(name))
        return total

    async def held(self, call: str, controller: str) -> None:
        """Stop a controller by SIGSTOP while it is within a call to the pool."""
        (self.place / f"hold-{call}-{controller}").touch()
        await self.until((self.place / f"held-{call}-{controller}").exists)
        os.kill(self.controllers[controller].pid, signal.SIGSTOP)
        (self.place / f"hold-{call}-{controller}").unlink()

    def resume(self, controller: str) -> None:
        os.kill(self.controllers[controller].pid, signal.SIGCONT)

    async def actions(self) -> list[tuple[str, str]]:
        """Action and controller of each audit record, oldest first."""
        records = (await self.store.read_scaling(1000)).records
        return [(record.action, record.controller) for record in reversed(records)]


@asynccontextmanager
async def world(place: Path, fleet: str, *, lease_s: float = 2.0, nodes: int = 2) -> AsyncIterator[World]:
    redis = EmbeddedRedis()
    await redis.start()
    (place / "nodes").mkdir()
    (place / "scaling.toml").write_text(SETTINGS.format(lease_s=lease_s))
    for number in range(nodes):
        (place / "nodes" / f"s{number}").touch()
    made = World(place, redis, fleet)
    reports = asyncio.create_task(made.report_for_ever())
    try:
        for controller in ("ann", "bob"):
            await made.start(controller)
        yield made
    finally:
        for child in made.controllers.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGCONT)
            child.kill_group()
            await child.wait()
        reports.cancel()
        await asyncio.wait([reports])
        await made.http.close()
        await made.store.close()
        await redis.stop()


async def test_a_leader_paused_before_it_stores_is_refused_when_it_wakes(tmp_path: Path, fleet: str) -> None:
    async with world(tmp_path, fleet) as it:
        leader, other = await it.leader()
        await it.ticks(2)
        it.load = HOT
        await it.held("list", leader)
        await it.leads(other)
        await it.until(lambda: it.launches() == [other])
        it.load = WARM
        it.resume(leader)
        await it.until(lambda: "late write refused" in it.log(leader))
        await it.until(lambda: "standing by" in it.log(leader))
        await it.ticks(6)
        assert it.launches() == [other]
        actions = await it.actions()
        assert actions.count(("scale-out", other)) == 1
        assert ("launched", other) in actions
        assert ("scale-out", leader) not in actions
        assert (await it.store.read_scaling(0)).leader.controller == other  # type: ignore[union-attr]


async def test_a_leader_paused_between_storing_and_acting_launches_nothing_twice(tmp_path: Path, fleet: str) -> None:
    async with world(tmp_path, fleet) as it:
        leader, other = await it.leader()
        await it.ticks(2)
        it.load = HOT
        await it.held("launch", leader)
        assert it.launches() == []
        await it.until(lambda: it.launches() == [other])
        it.load = WARM
        it.resume(leader)
        await it.until(lambda: "late write refused" in it.log(leader))
        await it.ticks(6)
        assert it.launches() == [other]
        actions = await it.actions()
        # Decided once, by the one that was paused; finished by the other.
        assert [action for action in actions if action[0] == "scale-out"] == [("scale-out", leader)]
        assert ("launched", other) in actions
        assert len(list((it.place / "nodes").iterdir())) == 3


async def test_while_redis_is_away_nothing_is_scaled_and_then_it_goes_on(tmp_path: Path, fleet: str) -> None:
    async with world(tmp_path, fleet) as it:
        await it.leader()
        for launched, keeps_its_data in enumerate([True, False]):
            await it.ticks(3)
            token = (await it.store.read_scaling(0)).leader.token  # type: ignore[union-attr]
            it.load = HOT
            await outage(it, keeps_its_data)
            assert len(it.launches()) == launched, "scaled on what it could not know"
            await it.until(lambda n=launched + 1: len(it.launches()) == n)  # type: ignore[misc]
            it.load = WARM
            await it.ticks(6)
            assert len(it.launches()) == launched + 1
            now = (await it.store.read_scaling(0)).leader
            assert now is not None
            assert now.token > token, "a token was given twice"
            assert await it.metric('sluice_control_store_trouble{kind="unavailable"}') > 0


async def outage(it: World, keeps_its_data: bool) -> None:
    """Redis is away for longer than a lease lasts and a plan would take; no controller could tick meanwhile."""
    if keeps_its_data:
        assert it.redis.pid is not None
        os.kill(it.redis.pid, signal.SIGSTOP)
    else:
        await it.redis.stop()
    try:
        await asyncio.sleep(OUTAGE_S)  # the outage itself, not a wait for anything
    finally:
        if keeps_its_data:
            os.kill(it.redis.pid, signal.SIGCONT)  # type: ignore[arg-type]
        else:
            await it.redis.start()


async def test_a_leader_that_ends_gives_the_lease_back(tmp_path: Path, fleet: str) -> None:
    async with world(tmp_path, fleet, lease_s=600.0) as it:
        leader, other = await it.leader()
        it.controllers[leader].send_signal(signal.SIGTERM)
        assert await it.controllers[leader].wait(WITHIN_S) == 0
        # Long before the lease of ten minutes would have ended; the other asks again at a third of it, so a fresh one.
        await it.start("eve")
        await it.leads("eve")
        assert other != "eve"


async def test_a_quiet_pool_loses_one_node_and_only_when_it_is_empty(
    tmp_path: Path, fleet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with world(tmp_path, fleet, nodes=3) as it:
        await it.leader()
        it.load = QUIET
        await it.until(lambda: any(sfu.by == AUTOSCALER for sfu in it.sfus.values()))
        (victim,) = [sfu for sfu in it.sfus.values() if sfu.by]
        await it.ticks(8)
        assert it.journal() == []
        victim.empty()
        await it.until(lambda: [line["node"] for line in it.journal()] == [victim.sfu])
        await it.ticks(8)
        assert len(it.journal()) == 1, "under the floor"
        where = ["--redis", it.redis.url, "--fleet", fleet]
        assert await asyncio.to_thread(sluice, ["scaling", *where]) == 0
        shown = capsys.readouterr().out
        assert await asyncio.to_thread(sluice, ["scaling", "--json", "--last", "2", *where]) == 0
        answer = json.loads(capsys.readouterr().out)
        assert [record["action"] for record in answer["records"]][-1] in ("terminated", "held")
        assert answer["leader"]["controller"] in it.controllers
        for words in ("scale-in", "terminated", victim.sfu, "at the floor", "token", "cpu binds"):
            assert words in shown


async def test_a_key_of_another_type_stops_scaling_and_not_the_controllers(tmp_path: Path, fleet: str) -> None:
    async with world(tmp_path, fleet) as it:
        await it.leader()
        await it.ticks(2)
        client: Any = it.store._client
        keys = it.store.keys
        await client.execute_command("SADD", keys.scaling_lease + "-spare", "what")
        for name in (keys.scaling_audit, keys.scaling_state, keys.scaling_lease):
            await client.execute_command("COPY", keys.scaling_lease + "-spare", name, "REPLACE")
            before = await it.metric('sluice_control_bad_input_total{kind="wrong-type"}')

            async def met(more_than: float = before + 3) -> bool:
                return await it.metric('sluice_control_bad_input_total{kind="wrong-type"}') > more_than

            await it.until(met)

            async def powerless(lease: bool = name == keys.scaling_lease) -> bool:
                # A lease that is still running is still good; without the key it can't be renewed.
                return not lease or await it.metric("sluice_control_leader ") == 0

            await it.until(powerless)
            it.load = HOT
            assert await client.execute_command("TYPE", name) == b"set", "written over"
            assert it.launches() == []
            it.load = WARM
            await client.execute_command("DEL", name)
        it.load = HOT
        await it.until(lambda: len(it.launches()) == 1)
