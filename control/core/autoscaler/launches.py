"""The launch in progress: asked for until the pool confirms, watched until it is capacity or given up (A5, A8)."""

from __future__ import annotations

import msgspec

from control.core.autoscaler.effects import Launch
from control.core.autoscaler.progress import TickProgress
from control.core.autoscaler.world import Member, Moment, NodeKind, World, classify
from control.core.pool import NodePhase
from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import Launching, Newcomer, RemovalStage, Removing, ScaleAction

MOST_NEWCOMERS = 20
GAVE_UP = "gave-up"
HEALTHY, FIRST_PACKET = "healthy", "first_packet"
"""Stages of a launch: a router knows its SFU; it has forwarded a packet."""


def carry_on_launch(it: TickProgress, world: World, settings: ScalingSettings, moment: Moment) -> TickProgress:
    """Take the launch one tick further. While the pool's listing is not certain, only its SFU's reports are noted."""
    launch = it.state.launch
    if launch is None:
        return it
    if not world.certain:
        return it.set(launch=_with_stages(launch, world))
    member = world.by_request(launch.request) or world.by_node(launch.node)
    if member is not None and not launch.node:
        # Made by a call whose answer was lost: the pool has changed since the decision, so the cooldown starts again.
        it = it.set(cooldown_left_s=settings.cooldown_s)
    launch = _with_stages(_known_better(launch, member, moment), world)
    it = it.set(launch=launch)
    if member is not None and _is_capacity(it, member, world, settings):
        newcomer = Newcomer(sfu=launch.sfu, launched_at=launch.since_at)
        took = f"request {launch.request}, {max(0.0, moment.now_at - launch.since_at):.0f} s"
        it = it.set(launch=None, newcomers=(*it.state.newcomers, newcomer)[-MOST_NEWCOMERS:])
        return it.note(ScaleAction.LAUNCHED, "capacity", sfu=launch.sfu, detail=took)
    if member is not None and member.report is not None and member.report.state.drain is not None:
        return it.set(launch=None).note(ScaleAction.CANCELLED, "cordoned-while-warming", sfu=launch.sfu)
    if member is not None and member.node.phase is NodePhase.FAILED and not member.heard:
        return _give_up(it, launch, member, "failed", member.node.detail)
    if launch.waited_s >= settings.launch_timeout_s:
        probe = member.report.state.probe_failure if member and member.report else ""
        return _give_up(it, launch, member, "timed-out", probe and f"its probe call failed: {probe}")
    # The pool has not confirmed, or a leader died before it could store that it had: the same request once more.
    return it if launch.node else it.effect(Launch(request=launch.request))


def _known_better(launch: Launching, member: Member | None, moment: Moment) -> Launching:
    """The launch with the time that has passed and the names the pool has given."""
    launch = msgspec.structs.replace(launch, waited_s=launch.waited_s + moment.elapsed_s)
    if member is None:
        return launch
    return msgspec.structs.replace(launch, node=member.node.node, sfu=member.node.sfu or launch.sfu)


def _with_stages(launch: Launching, world: World) -> Launching:
    """The launch with what its SFU has reached; that a router has known it stays known: players may be on it."""
    report = world.reports.get(launch.sfu)
    reached = {HEALTHY: launch.sfu in world.seen, FIRST_PACKET: report is not None and report.state.warmed_up}
    new = tuple(stage for stage, now in reached.items() if now and stage not in launch.stages)
    return msgspec.structs.replace(launch, stages=launch.stages + new) if new else launch


def _is_capacity(it: TickProgress, member: Member, world: World, settings: ScalingSettings) -> bool:
    kinds = classify(world, it.state, patience_s=settings.launch_timeout_s).kinds
    return kinds[member.node.node] is NodeKind.CAPACITY


def _give_up(it: TickProgress, launch: Launching, member: Member | None, reason: str, detail: str) -> TickProgress:
    """It becomes a removal like any other: cordoned, and ended once it is certain that no player is on it."""
    it = it.set(launch=None).note(ScaleAction.LAUNCH_GIVEN_UP, reason, sfu=launch.sfu, detail=detail[:200])
    if member is None or member.node.phase is NodePhase.FAILED:
        return it  # nothing runs; a node that the pool lists as failed is removed elsewhere
    removal = Removing(
        node=launch.node,
        sfu=launch.sfu,
        stage=RemovalStage.ORDERED.value,
        reason=GAVE_UP,
        registered=HEALTHY in launch.stages,
    )
    return it.set(removals=(*it.state.removals, removal))
