"""The play of a roll: `sluice roll` itself works on the stage's fleet, is killed if wanted, and is watched."""

from __future__ import annotations

import os
import time

from localfleet import runfiles
from localfleet.door import FleetDoor
from rehearse.core.ending import Ending
from rehearse.core.rehearsal import REJOIN_BOUND_S
from rehearse.shell.stage import Stage
from shared.host.child import Child, python
from shared.host.state import state_directory
from shared.roll_records import RollRecord, RollState, RollStep, StepStage

NEXT_VERSION = "next"
LOOK_EVERY_S = 0.1
A_STEP_WITHIN_S = 120.0
"""A replacement starts and warms up, and the old one's players move at once; that is for a very slow machine."""
ENDED_WITHIN_S = 30.0
MOST_PAUSES = 6
AFTER_DRAIN = (StepStage.STOPPING, StepStage.DONE)


async def roll(stage: Stage) -> None:
    """Every SFU is replaced and every router started again, by the command as an operator gives it."""
    async with FleetDoor(stage.fleet) as door:
        environment = {"XDG_STATE_HOME": str(stage.fleet.logs / "state")}
        runfiles.write(_run_file(stage, door), where=state_directory(environment))
        await _Watch(stage, environment).run()


class _Watch:
    """Sees the roll through, by its plan in Redis."""

    def __init__(self, stage: Stage, environment: dict[str, str]) -> None:
        self._stage = stage
        self._environment = environment
        self._endings: dict[str, Ending] = {}
        self._draining: set[str] = set()
        self._commands = 0

    async def run(self) -> None:
        """Until the roll is done, has paused too often, or is far too late. A pause is told, and gone on from."""
        stage = self._stage
        sfus = list(stage.fleet.sfus)
        deadline = time.monotonic() + A_STEP_WITHIN_S * (len(sfus) + len(stage.fleet.routers))
        for _ in range(MOST_PAUSES):
            command = await self._see_through(deadline)
            plan = (await stage.store.read_roll()).plan
            if plan is None or plan.state != RollState.PAUSED:
                break
            stage.say(f"the roll paused: {plan.pause}")
            stage.roll_troubles.append(f"the roll paused: {plan.pause}")
        await self._finish(sfus, command)

    async def _see_through(self, deadline: float) -> Child:
        """Until the command has ended without being killed."""
        stage = self._stage
        command = await self._give()
        while command.running:
            if time.monotonic() > deadline:
                stage.roll_troubles.append("the roll did not end in time")
                await command.stop()
                break
            plan = (await stage.store.read_roll()).plan
            if plan is not None:
                self._note(plan)
                if self._kill_now(plan):
                    stage.say(f"SIGKILL to the command, with {self._at(plan)}")
                    command.kill_group()
                    await command.wait()
                    stage.interruptions += 1
                    command = await self._give()
            await stage.until(lambda: False, within_s=LOOK_EVERY_S)
        return command

    async def _give(self) -> Child:
        self._commands += 1
        stage = self._stage
        arguments = ["roll", "--version", NEXT_VERSION, "--surge", str(stage.roll.surge)]
        arguments += ["--fleet", stage.fleet.spec.fleet]
        stage.say(f"sluice {' '.join(arguments)}")
        name = f"roll-{self._commands}"
        return await stage.fleet.start_other(name, python("cli", *arguments), env=self._environment)

    def _note(self, plan: RollRecord) -> None:
        for step in plan.steps:
            if step.stage == StepStage.WAITING:
                continue
            ending = self._endings.get(step.old)
            if ending is None:
                ending = self._endings[step.old] = self._stage.begin(step.old, at=time.monotonic())
            if step.stage in (StepStage.STARTING, StepStage.WARMING):  # players come and go until it is cordoned
                ending.on_it, ending.began = frozenset(self._stage.view.on(step.old)), time.monotonic()
            elif step.old not in self._draining:
                self._draining.add(step.old)
                self._stage.say(f"{step.new} is up; {step.old} drains, which {len(ending.on_it)} players publish to")

    def _kill_now(self, plan: RollRecord) -> bool:
        """In turn: while an SFU drains, and while a replacement starts."""
        killed = self._stage.interruptions
        if killed >= self._stage.roll.kills:
            return False
        stage = StepStage.STARTING if killed % 2 else StepStage.DRAINING
        over = sum(step.stage in AFTER_DRAIN for step in plan.steps)
        return over >= killed and any(step.stage == stage for step in plan.steps)

    @staticmethod
    def _at(plan: RollRecord) -> str:
        under_way: list[RollStep] = [step for step in plan.steps if step.stage not in ("waiting", "done")]
        return ", ".join(f"{step.old} {step.stage}" for step in under_way) or "nothing under way"

    async def _finish(self, sfus: list[str], command: Child) -> None:
        stage = self._stage
        plan = (await stage.store.read_roll()).plan
        if plan is not None:
            self._note(plan)
        for ending in self._endings.values():
            await stage.wait_ended(ending, within_s=ENDED_WITHIN_S)
        await stage.until(lambda: not any(each.left_behind for each in stage.endings), within_s=3 * REJOIN_BOUND_S)
        if plan is None or plan.state != RollState.DONE:
            stage.roll_troubles.append(f"the roll did not come to its end; {command.tail().strip()[-300:]}")
        if left := [name for name in sfus if stage.fleet.sfus[name].child.running]:
            stage.roll_troubles.append(f"{', '.join(left)} still runs")


def _run_file(stage: Stage, door: FleetDoor) -> runfiles.RunFile:
    fleet = stage.fleet
    return runfiles.RunFile(
        fleet=fleet.spec.fleet,
        redis=fleet.redis_url,
        secret=fleet.secret,
        page=fleet.page,
        door=door.path,
        logs=str(fleet.logs),
        pid=os.getpid(),
        pid_started=runfiles.started_ticks(os.getpid()),
    )
