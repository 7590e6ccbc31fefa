"""A roll that another program carries out, as Kubernetes does: what it has done so far is read off the fleet.

The plan names the SFUs of other releases, so that placement puts them last, and collects their drain reports.
"""

from __future__ import annotations

from msgspec.structs import replace

from operators.core.roll.seen import RolledSfu, RollSeen
from operators.core.roll.troubles import GONE_WITHIN_S
from shared.records import SfuStatus
from shared.roll_records import RollRecord, RollState, RollStep, StepStage


def follow(plan: RollRecord, seen: RollSeen, *, now: float) -> RollRecord:
    """The plan after one look. Done when no SFU of another release is left and one of this release takes players."""
    if plan.state != RollState.RUNNING:
        return plan
    known = {(step.old, step.old_run) for step in plan.steps}
    others = {sfu: each for sfu, each in seen.sfus.items() if each.version != plan.version}
    added = tuple(
        RollStep(old=sfu, old_run=each.run, since_at=now, before=seen.newest_report(sfu))
        for sfu, each in sorted(others.items())
        if (sfu, each.run) not in known
    )
    steps = tuple(_step(step, seen, now=now) for step in (*plan.steps, *added))
    plan = replace(
        plan,
        steps=steps,
        failed_connections=plan.failed_connections + seen.failed,
        freezes=plan.freezes + seen.freezes,
    )
    up = any(each.version == plan.version and each.ready for each in seen.sfus.values())
    if up and not others and all(step.stage == StepStage.DONE for step in steps):
        return replace(plan, state=RollState.DONE.value, ended_at=now)
    return plan


def _step(step: RollStep, seen: RollSeen, *, now: float) -> RollStep:
    if step.stage == StepStage.DONE:
        return step
    old = seen.sfus.get(step.old)
    if old is not None and old.run == step.old_run:
        return replace(step, stage=_stage(old).value, since_at=now)
    report = seen.newest_report(step.old)
    if report is not None and report != step.before:
        return replace(step, stage=StepStage.DONE.value, since_at=now, report=report)
    return replace(step, stage=StepStage.DONE.value) if now - step.since_at > GONE_WITHIN_S else step


def _stage(old: RolledSfu) -> StepStage:
    return StepStage.WAITING if old.status is SfuStatus.ONLINE else StepStage.DRAINING
