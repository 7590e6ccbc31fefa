"""`sluice roll` against a real Redis, with SFUs that follow commands: begun, killed, gone on with, taken back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest

import cli.roll as roll_module
import cli.roll_view as view_module
import operators.shell.roll.runner as runner_module
import shared.store.rolls as rolls_module
from cli.roll import Platform, RollSettings, commands_of, roll
from operators.config import Where
from shared.errors import BadSetting, Fenced, Refused
from shared.records import CommandVerb, Drain, DrainReport, RouterRecord, SfuState
from shared.roll_records import RollRecord, RollState
from shared.store.store import Store

pytestmark = pytest.mark.process  # it waits for seconds


@dataclass
class Fleet:
    """SFUs in Redis that report, follow commands, and end when they are told to; a file starts one."""

    store: Store
    where: Where
    orders: Path
    states: dict[str, SfuState] = field(default_factory=dict)
    stays: set[str] = field(default_factory=set)
    cold: set[str] = field(default_factory=set)

    def online(self, sfu: str, version: str, incarnation: int) -> None:
        warm = sfu not in self.cold
        self.states[sfu] = SfuState(
            address=f"ws://{sfu}",
            sfu=sfu,
            version=version,
            incarnation=incarnation,
            revision=1,
            warmed_up=warm,
            load=0.1,
        )

    @property
    def hooks(self) -> Platform:
        return Platform(start=f'touch "{self.orders}/$SLUICE_ROLL_SFU@$SLUICE_ROLL_VERSION"')

    async def live(self) -> None:
        """For ever."""
        await self.store.put_router(RouterRecord(router="router-1", boot="x"))
        while True:
            for order in sorted(self.orders.iterdir()):
                sfu, _, version = order.name.partition("@")
                if sfu not in self.states:
                    self.online(sfu, version, 10)
                order.unlink()
            for command in await self.store.read_commands(list(self.states)):
                await self._follow(command.sfu, command.verb)
            for sfu, state in list(self.states.items()):
                self.states[sfu] = msgspec.structs.replace(state, revision=state.revision + 1)
                await self.store.put_sfu(self.states[sfu])
            await self.store.put_router(RouterRecord(router="router-1", boot="x"))
            await asyncio.sleep(0.05)

    async def _follow(self, sfu: str, verb: str) -> None:
        state = self.states.get(sfu)
        if state is None:
            return
        cordoned = state.status == "CORDONED"
        if verb == CommandVerb.UNCORDON and cordoned:
            self.states[sfu] = msgspec.structs.replace(state, status=None, drain=None)
        elif verb == CommandVerb.DRAIN and not cordoned:
            self.states[sfu] = msgspec.structs.replace(state, status="CORDONED", drain=Drain())
        elif verb == CommandVerb.DRAIN and sfu not in self.stays:
            await self.store.push_drain_report(
                DrainReport(sfu=sfu, outcome="empty", to_exit_s=1.0, players_at_cordon=2)
            )
            del self.states[sfu]
            await self.store.remove_sfu(sfu, state.incarnation)

    async def plan(self) -> RollRecord:
        plan = (await self.store.read_roll()).plan
        assert plan is not None
        return plan

    async def until(self, stage: str, step: int = 0) -> None:
        async with asyncio.timeout(30):
            while True:
                kept = await self.store.read_roll()
                if kept.plan is not None and kept.plan.steps[step].stage == stage:
                    return
                await asyncio.sleep(0.05)

    async def roll(self, **more: object) -> int:
        settings = RollSettings(version="v2", routers=False, warm_up_within_s=2.0)
        return await roll(**{"where": self.where, "settings": settings, "platform": self.hooks, **more})  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def faster(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same, ten times as often."""
    monkeypatch.setattr(runner_module, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(view_module, "LOOK_EVERY_S", 0.05)
    monkeypatch.setattr(roll_module, "RENEWED_WITHIN_S", 0.6)
    for module in (roll_module, rolls_module):
        monkeypatch.setattr(module, "ROLL_LEASE_S", 3.0)


@pytest.fixture
async def it(redis_url: str, fleet: str, tmp_path: Path) -> AsyncIterator[Fleet]:
    store = Store(redis_url, fleet=fleet, timeout_s=10.0)
    orders = tmp_path / "orders"
    orders.mkdir()
    made = Fleet(store, Where(redis=redis_url, fleet=fleet), orders)
    made.online("a", "v1", 1)
    made.online("b", "v1", 1)
    for state in made.states.values():
        await store.put_sfu(state)
    living = asyncio.create_task(made.live())
    yield made
    living.cancel()
    await asyncio.gather(living, return_exceptions=True)
    await store.close()


async def test_it_replaces_every_sfu_and_reports(it: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert await it.roll() == 0
    assert sorted(it.states) == ["a-v2", "b-v2"]
    said = capsys.readouterr()
    assert "a: a-v2 takes players; a is being drained" in said.err
    assert "2 SFUs rolled, 0 left" in said.out
    assert "4 moves" in said.out
    with pytest.raises(Refused, match="every SFU runs 'v2' already"):
        await it.roll()


async def test_json_is_a_document_for_each_change_and_the_report_last(
    it: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await it.roll(json=True) == 0
    decoder, text, documents = json.JSONDecoder(), capsys.readouterr().out, []
    while text.strip():
        document, end = decoder.raw_decode(text.lstrip())
        documents.append(document)
        text = text.lstrip()[end:]
    assert len(documents) > 4
    assert documents[-1]["state"] == "done"
    assert documents[-1]["moves_per_player_max"] == 0
    assert documents[-1]["steps"][0]["drain"]["outcome"] == "empty"


async def test_a_command_that_is_cut_off_is_gone_on_with(
    it: Fleet, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def give_nothing_back(*_: object) -> None:
        """As a command that got SIGKILL."""

    it.stays = {"a"}
    with monkeypatch.context() as killed:
        killed.setattr(Store, "release_roll", give_nothing_back)
        first = asyncio.create_task(it.roll())
        await it.until("draining")
        assert await it.store.read_roll_next() == {"b"}
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
    it.stays = set()
    async with asyncio.timeout(60):
        assert await it.roll() == 0
    said = capsys.readouterr().err
    assert "was killed while it held the roll" in said
    assert (await it.plan()).interruptions == 1
    assert sorted(it.states) == ["a-v2", "b-v2"]


async def test_a_redis_that_loses_its_data_is_given_the_plan_again(it: Fleet) -> None:
    it.stays = {"a"}
    rolling = asyncio.create_task(it.roll())
    await it.until("draining")
    for key in (it.store.keys.roll, it.store.keys.roll_lease, it.store.keys.roll_token, it.store.keys.roll_next):
        await it.store._send("lose", "DEL", key)
    await it.until("draining")
    it.stays = set()
    async with asyncio.timeout(60):
        assert await rolling == 0
    assert (await it.plan()).state == RollState.DONE
    assert (await it.store.read_roll()).holder is None, "the lease was given back"


async def test_a_second_command_is_refused_and_may_look_or_take_back(
    it: Fleet, capsys: pytest.CaptureFixture[str]
) -> None:
    it.stays = {"a"}
    first = asyncio.create_task(it.roll())
    await it.until("draining")
    with pytest.raises(Refused, match="goes on with a roll; 'sluice roll --watch' looks at it"):
        await it.roll()
    watching = asyncio.create_task(it.roll(watch=True))
    await asyncio.sleep(0.5)
    assert await roll(where=it.where, abort=True) == 0
    assert await watching == 0
    with pytest.raises(Fenced):
        await first
    assert it.states["a"].status is None, "its cordon was lifted"
    assert (await it.plan()).state == RollState.ABORTED
    said = capsys.readouterr().err
    assert "a takes players again" in said
    assert "a-v2 stays and takes players" in said
    with pytest.raises(Refused, match="no roll goes on"):
        await roll(where=it.where, abort=True)


async def test_another_release_is_refused_while_one_is_open(it: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    it.cold = {"a-v2"}
    assert await it.roll() == 1
    said = capsys.readouterr().err
    assert "paused: a-v2 has not warmed up within" in said
    assert "To go on: 'sluice roll'" in said
    assert await it.store.read_roll_next() == frozenset(), "placement goes on as usual while it is paused"
    with pytest.raises(Refused, match="this would roll to 'v3'"):
        await it.roll(settings=RollSettings(version="v3"))
    it.states["a-v2"] = msgspec.structs.replace(it.states["a-v2"], warmed_up=True)
    assert await it.roll() == 0


async def test_a_hook_that_fails_pauses_the_roll(it: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert await it.roll(platform=Platform(start="echo disk full; false")) == 1
    assert "a-v2 could not be started" in (await it.plan()).pause
    assert "disk full" in capsys.readouterr().err
    assert sorted(it.states) == ["a", "b"]


async def test_a_rollout_of_another_program_is_followed(it: Fleet) -> None:
    following = asyncio.create_task(it.roll(platform=Platform(follow=True)))
    async with asyncio.timeout(20):
        while await it.store.read_roll_next() != {"a", "b"}:  # noqa: ASYNC110 - Redis sets no event
            await asyncio.sleep(0.05)
    it.online("c", "v2", 1)
    for sfu in ("a", "b"):
        await it.store.command_sfu(CommandVerb.DRAIN, sfu, "kubernetes", "")
    async with asyncio.timeout(60):
        assert await following == 0


def test_platforms_don_t_mix_and_compose_has_both_spellings() -> None:
    for wrong in (Platform(start="x", follow=True), Platform(compose="x", follow=True), Platform(stop="x")):
        with pytest.raises(BadSetting):
            commands_of(wrong)
    for spelling in ("docker compose", "docker-compose -f fleet.yml"):
        kind, start, stop, restart = commands_of(Platform(compose=spelling))
        assert kind == "compose"
        assert f'{spelling} --profile roll up -d --no-deps --force-recreate "$SLUICE_ROLL_SFU"' in start
        assert 'SLUICE_IMAGE="$SLUICE_ROLL_VERSION"' in start
        assert stop == f'{spelling} --profile roll stop "$SLUICE_ROLL_SFU"'
        assert restart.endswith('"$SLUICE_ROLL_ROUTER"')
