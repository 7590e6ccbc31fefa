"""The stage of a scale rehearsal: a fleet whose SFUs a controller launches and drains, bots on it, and a recorder."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from localfleet.config import FleetSize
from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet, FleetSpec
from localfleet.scaled_fleet import ScaledFleet
from operators.shell.operations import open_store
from operators.shell.target import Target
from rehearse.config import CrowdSize
from rehearse.core.crowd_view import CrowdView
from rehearse.core.scale.log import LogLine, merged, read_log
from rehearse.core.scale.plan import PAIR, ScalePlan
from rehearse.shell.crowd import Crowd
from rehearse.shell.scale.recorder import LOOK_EVERY_S, Recorder
from shared.scaling_records import ScaleAction
from shared.store.store import Store

ALL_HEAR_WITHIN_S = 90.0
WITHIN_S = 60.0
"""For whatever must come about; generous, because a busy machine does all of it late."""
LEAST_OF_A_PAIR, MOST_OF_AN_EMPTY_ONE = 0.2, 0.1
"""Load of a node with a pair on it, which is 0.25, and of one without players."""


class Stuck(Exception):
    """Something did not come about in time, and the play ends there."""


@dataclass(slots=True, kw_only=True)
class ScaleStage:
    """All that the play needs. Its waits raise `Stuck`, and `FleetFailed` when a program has ended."""

    plan: ScalePlan
    fleet: Fleet
    scaled: ScaledFleet
    crowd: Crowd
    store: Store
    recorder: Recorder
    say: Callable[[str], None]
    players: int
    """Players that should be there now."""
    took_part: int = 0
    began_at: float = field(default_factory=time.time)
    began: float = field(default_factory=time.monotonic)

    @property
    def view(self) -> CrowdView:
        """What the bots have said so far."""
        return self.crowd.view

    # --- the players ---

    async def join(self, room: str, bots: int) -> None:
        """More players come."""
        self.players += bots
        self.took_part += bots
        await self.crowd.tell(cmd="join", room=room, bots=bots)

    async def leave(self, bot: str) -> None:
        """One leaves for good."""
        self.players -= 1
        await self.crowd.tell(cmd="leave", bot=bot)

    async def all_hear(self) -> None:
        """Wait until all that should be there hear each other, and no other bot is there."""
        if not await self._until(lambda: self.view.all_hear(self.players), ALL_HEAR_WITHIN_S):
            missing = self.view.missing(self.players)
            raise Stuck(f"players did not all hear each other within {ALL_HEAR_WITHIN_S:.0f} s: {missing}")

    # --- the autoscaler ---

    async def decided(self, action: ScaleAction, *, ticks: int = 0, within_s: float = WITHIN_S) -> str:
        """Wait for a decision that takes so many ticks; the SFU that it is about."""
        await self.until(
            lambda: self.recorder.record(action) is not None,
            f"the controller did not come to {action}",
            within_s=within_s + 2 * ticks * self.plan.tick_s,
        )
        record = self.recorder.record(action)
        assert record is not None
        return record.node

    async def ticks(self, ticks: int) -> None:
        """Wait for so many ticks."""
        goal = self.recorder.state.tick + ticks
        within_s = WITHIN_S + 2 * ticks * self.plan.tick_s
        await self.until(lambda: self.recorder.state.tick >= goal, "the controller did not tick", within_s=within_s)

    async def routers_skip(self, sfu: str) -> None:
        """Wait until no router would place new players on an SFU."""
        await self._routers_see(
            lambda rows: not rows.get(sfu, {}).get("placeable", False), f"still placed players on {sfu}"
        )

    async def routers_know_loads(self) -> None:
        """Wait until every router has heard of the load of every node, so that a new room goes to an empty one: a
        process that has just started is busy with itself for a moment."""

        def known(rows: dict[str, Any]) -> bool:
            return bool(self.recorder.states) and all(
                self._load_is_known(rows.get(sfu)) for sfu in self.recorder.states
            )

        await self._routers_see(known, "did not know what each node carries")

    def _load_is_known(self, row: dict[str, Any] | None) -> bool:
        load = row.get("load") if row and row.get("placeable") and row.get("warmed_up") else None
        if row is None or load is None:
            return False
        return bool(load >= LEAST_OF_A_PAIR if self.view.on(row["sfu"]) else load < MOST_OF_AN_EMPTY_ONE)

    async def _routers_see(self, test: Callable[[dict[str, Any]], bool], otherwise: str) -> None:
        deadline = time.monotonic() + WITHIN_S
        for router in self.fleet.routers:
            while not test(await self.fleet.sfu_states(router) or {}):
                if time.monotonic() > deadline:
                    raise Stuck(f"{router} {otherwise} for {WITHIN_S:.0f} s")
                await asyncio.sleep(LOOK_EVERY_S)

    async def gone(self, sfu: str) -> None:
        """Wait until neither the fleet nor the pool knows a node any more."""
        what = f"{sfu} was told to end and did not"
        await self.until(lambda: sfu not in self.recorder.states, what, within_s=WITHIN_S)
        deadline = time.monotonic() + WITHIN_S
        while any(node.sfu == sfu for node in (await self.scaled.pool.list()).nodes):
            if time.monotonic() > deadline:
                raise Stuck(what)
            await asyncio.sleep(LOOK_EVERY_S)

    async def until(self, condition: Callable[[], bool], otherwise: str, *, within_s: float = WITHIN_S) -> None:
        """Wait until `condition` holds; `otherwise` says what did not come about."""
        if not await self._until(condition, within_s):
            raise Stuck(f"{otherwise} within {within_s:.0f} s")

    async def _until(self, condition: Callable[[], bool], within_s: float) -> bool:
        deadline = time.monotonic() + within_s
        while not condition():
            if not self.crowd.running:
                raise FleetFailed(program="bots", detail="ended in the middle of it", log=self.crowd.tail())
            if not self.fleet.others["control"].running:
                raise FleetFailed(program="control", detail="has ended", log=self.fleet.others["control"].tail())
            if time.monotonic() > deadline:
                return False
            await self.crowd.next_word(within_s=LOOK_EVERY_S)
        return True

    # --- what is left of it ---

    def lines(self) -> list[LogLine]:
        """The tagged log lines of the controller and the routers so far, in order of time."""
        children = [self.fleet.others["control"], *(router.child for router in self.fleet.routers.values())]
        return merged(read_log(child.name, child.log.read_text(errors="replace")) for child in children)


@asynccontextmanager
async def scale_stage(
    plan: ScalePlan, *, size: FleetSize, seed: int, say: Callable[[str], None]
) -> AsyncIterator[ScaleStage]:
    """A private fleet with a controller and a first pair of bots on its way to it. Raises `FleetFailed`."""
    spec = FleetSpec(**asdict(replace(size, sfus=0)), fleet=f"rehearsal-{secrets.token_hex(4)}")
    crowd = CrowdSize(bots=PAIR, rooms=1, seed=seed)
    async with Fleet(spec, say=say) as fleet:
        file = fleet.logs / "scaling.toml"
        file.write_text(plan.toml(state_dir=str(fleet.logs / "pool")))
        async with (
            ScaledFleet(fleet, file, nodes=plan.nodes) as scaled,
            open_store(Target(redis=fleet.redis_url, fleet=spec.fleet)) as store,
            Recorder(store, plan.settings(), say=say) as recorder,
            Crowd(fleet, crowd) as players,
        ):
            yield ScaleStage(
                plan=plan,
                fleet=fleet,
                scaled=scaled,
                crowd=players,
                store=store,
                recorder=recorder,
                say=say,
                players=crowd.bots,
                took_part=crowd.bots,
            )
