"""The roll as a machine: one look at the fleet in, the next plan and what to do out.

The plan is written before anything is done, and what to do follows from the plan alone. So a command that is killed at
any point leaves a plan that the next command goes on with; an act whose answer was lost is done again, and every act
may be done twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from operators.core.roll.planning import BEFORE_DRAIN
from operators.core.roll.routers import advance_routers
from operators.core.roll.seen import RolledSfu, RollSeen
from operators.core.roll.troubles import trouble
from shared.records import SfuStatus
from shared.roll_records import RollRecord, RollState, RollStep, StepStage


@dataclass(frozen=True, slots=True)
class StartSfu:
    """Start an SFU of the plan's release under this id, unless it runs."""

    sfu: str
    run_above: int = 0
    """What runs under this id with a greater incarnation is the one that is wanted."""


@dataclass(frozen=True, slots=True)
class DrainSfu:
    """Cordon it, and let it end when its last player has left."""

    sfu: str
    run: int = 0


@dataclass(frozen=True, slots=True)
class StopSfu:
    """Clear away what the platform keeps of an SFU that has ended."""

    sfu: str
    run: int = 0


@dataclass(frozen=True, slots=True)
class RestartRouter:
    """End a router and start it again, unless this run of it has ended already."""

    router: str
    boot: str = ""


RollAct = StartSfu | DrainSfu | StopSfu | RestartRouter


def advance(plan: RollRecord, seen: RollSeen, *, now: float) -> RollRecord:
    """The plan after one look. `now` is Redis' clock [Unix seconds]. A plan that is not running stays as it is."""
    if plan.state != RollState.RUNNING:
        return plan
    plan = replace(
        plan,
        failed_connections=plan.failed_connections + seen.failed,
        freezes=plan.freezes + seen.freezes,
        more_without_since_at=(plan.more_without_since_at or now) if seen.without_media > plan.without_media else 0.0,
        routers=advance_routers(plan.routers, seen, now=now),
    )
    steps = tuple(_step(step, seen, now=now) for step in plan.steps)
    plan = replace(plan, steps=steps)
    if why := trouble(plan, seen, now=now):
        return replace(plan, state=RollState.PAUSED.value, pause=why)
    plan = _begin(plan, now=now)
    if all(step.stage == StepStage.DONE for step in plan.steps) and _routers_done(plan):
        return replace(plan, state=RollState.DONE.value, ended_at=now)
    return plan


def acts(plan: RollRecord) -> list[RollAct]:
    """What is to be done as long as the plan stands like this."""
    if plan.state != RollState.RUNNING:
        return []
    wanted: list[RollAct] = [
        RestartRouter(each.router, each.boot) for each in plan.routers if each.stage == "restarting"
    ]
    for step in plan.steps:
        match step.stage:
            case StepStage.STARTING:
                wanted.append(StartSfu(step.new, step.above))
            case StepStage.DRAINING if not step.cordoned:
                wanted.append(DrainSfu(step.old, step.old_run))
            case StepStage.STOPPING:
                wanted.append(StopSfu(step.old, step.old_run))
    return wanted


def done(plan: RollRecord, act: RollAct, *, now: float) -> RollRecord:
    """An act has succeeded. Only what no record in Redis shows is noted: that a place was cleared."""
    if not isinstance(act, StopSfu):
        return plan
    steps = (
        _at(step, StepStage.DONE, now) if step.stage == StepStage.STOPPING and step.old == act.sfu else step
        for step in plan.steps
    )
    return replace(plan, steps=tuple(steps))


def failed(plan: RollRecord, act: RollAct, why: str) -> RollRecord:
    """An act has failed: the roll pauses."""
    if plan.state != RollState.RUNNING:
        return plan
    match act:
        case StartSfu():
            what = f"{act.sfu} could not be started"
        case DrainSfu():
            what = f"{act.sfu} could not be drained"
        case StopSfu():
            what = f"what is left of {act.sfu} could not be cleared away"
        case RestartRouter():
            what = f"{act.router} could not be started again"
    return replace(plan, state=RollState.PAUSED.value, pause=f"{what}: {why}")


def go_on(plan: RollRecord, seen: RollSeen, *, now: float) -> RollRecord:
    """The plan for the command that goes on with it: waits begin again, and what an operator has read is forgiven."""
    steps = tuple(_forgiven(step, seen, now=now) for step in plan.steps)
    routers = tuple(replace(each, since_at=now) if each.stage == "restarting" else each for each in plan.routers)
    return replace(
        plan,
        state=RollState.RUNNING.value,
        pause="",
        steps=steps,
        routers=routers,
        interruptions=plan.interruptions + 1,
        without_media=seen.without_media,
        more_without_since_at=0.0,
    )


def _forgiven(step: RollStep, seen: RollSeen, *, now: float) -> RollStep:
    if step.stage in (StepStage.STARTING, StepStage.WARMING):
        return _at(step, StepStage.STARTING, now)
    old = seen.sfus.get(step.old)
    again = step.cordoned and old is not None and old.run == step.old_run and old.status is SfuStatus.ONLINE
    lost = step.stage == StepStage.WAITING and old is None
    gone = step.stage == StepStage.DRAINING and not _runs(old, step) and step.report is None
    unreplaced = step.stage not in BEFORE_DRAIN and seen.sfus.get(step.new) is None
    evicted = step.report is not None and step.report.evicted > 0
    return replace(
        step,
        cordoned=step.cordoned and not again,
        forgiven=step.forgiven or lost or gone or unreplaced or evicted,
    )


def _begin(plan: RollRecord, *, now: float) -> RollRecord:
    """Start as many steps as the surge allows, in order; a place that is kept must be free first."""
    if not _routers_done(plan):
        return plan
    steps = list(plan.steps)
    for at, step in enumerate(steps):
        active = sum(each.stage not in (StepStage.WAITING, StepStage.DONE) for each in steps)
        if step.stage != StepStage.WAITING or active >= plan.surge:
            continue
        if any(each.old == step.new and each.stage != StepStage.DONE for each in steps[:at]):
            break
        steps[at] = _at(step, StepStage.STARTING, now)
    return replace(plan, steps=tuple(steps))


def _step(step: RollStep, seen: RollSeen, *, now: float) -> RollStep:
    """One step after one look."""
    new, old = seen.sfus.get(step.new), seen.sfus.get(step.old)
    match step.stage:
        case StepStage.WAITING:
            return _waits(step, seen, old)
        case StepStage.STARTING if new is not None and new.run > step.above and not new.silent:
            return replace(step, stage=StepStage.WARMING.value)  # the wait goes on from the start
        case StepStage.WARMING if new is not None and new.run > step.above and new.ready:
            run = old.run if old is not None and step.old_run == 0 else step.old_run
            before = seen.newest_report(step.old)
            return replace(_at(step, StepStage.DRAINING, now), old_run=run, before=step.before or before)
        case StepStage.DRAINING:
            return _drains(step, seen, old, now=now)
    return step


def _waits(step: RollStep, seen: RollSeen, old: RolledSfu | None) -> RollStep:
    """Before its turn an SFU may start again, or an operator may drain it."""
    if old is not None and old.run != step.old_run and step.old_run:
        return replace(step, old_run=old.run)
    report = seen.newest_report(step.old)
    if old is None and step.old_run and report is not None and not report.evicted:
        return replace(step, forgiven=True)
    return step


def _drains(step: RollStep, seen: RollSeen, old: RolledSfu | None, *, now: float) -> RollStep:
    if _runs(old, step):
        assert old is not None
        if old.status is not SfuStatus.ONLINE and not step.cordoned:
            step = replace(step, cordoned=True)
        return replace(step, since_at=now)  # from its end on the report is waited for
    report = seen.newest_report(step.old)
    if report is not None and report != step.before:
        return _at(replace(step, report=report, cordoned=True), StepStage.STOPPING, now)
    return _at(step, StepStage.STOPPING, now) if step.forgiven else step


def _runs(old: RolledSfu | None, step: RollStep) -> bool:
    return old is not None and (not step.old_run or old.run == step.old_run)


def _routers_done(plan: RollRecord) -> bool:
    return all(each.stage == "done" for each in plan.routers)


def _at(step: RollStep, stage: StepStage, now: float) -> RollStep:
    return replace(step, stage=stage.value, since_at=now)
