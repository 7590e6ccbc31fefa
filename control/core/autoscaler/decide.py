"""A tick from end to end: clocks, launches and removals in progress, streaks, the one decision, its record."""

from __future__ import annotations

from dataclasses import replace

import msgspec

from control.core.autoscaler.effects import TakeBack, TickDecision
from control.core.autoscaler.launches import carry_on_launch
from control.core.autoscaler.progress import AuditNote, TickProgress
from control.core.autoscaler.removals import carry_on_removals, sweep
from control.core.autoscaler.rules import AT_THE_MAXIMUM, Choice, Facts, choose
from control.core.autoscaler.streaks import count_tick
from control.core.autoscaler.world import Classed, Moment, NodeKind, World, classify, unheard
from control.core.scaling_settings import ScalingSettings
from shared.load import PoolLoad, pool_load
from shared.scaling_records import (
    Newcomer,
    ScalingFigures,
    ScalingRecord,
    ScalingState,
    Waiting,
)


def decide(
    world: World,
    state: ScalingState,
    settings: ScalingSettings,
    *,
    moment: Moment,
    token: int,
    controller: str = "",
    pool: str = "",
    dry_run: bool = False,
) -> TickDecision:
    """One tick. Store the decision's state and records under `token`, and only then do its effects.

    With `dry_run` the decision is made and recorded as any other, and cooldown and streaks go on as if it had been
    done, but nothing is planned and there are no effects.
    """
    it = _pass_time(TickProgress(state=state), world, settings, moment)
    unheard_now = unheard(world, state)
    if not dry_run:
        # While no node is heard, time does not count against a launch or against an SFU that does not follow.
        waited_s = 0.0 if unheard_now else moment.elapsed_s
        it = carry_on_launch(it, world, settings, replace(moment, elapsed_s=waited_s))
        it = carry_on_removals(it, world, settings, moment, waited_s=waited_s)
        it = _release_orphans(it, world)
    classed = classify(world, it.state, patience_s=settings.launch_timeout_s)
    if world.certain and not unheard_now:
        it = it.set(waiting=_waiting(it.state, classed, moment))
    capacity = [member for member in world.members if classed.kinds[member.node.node] is NodeKind.CAPACITY]
    load = pool_load(member.report.load for member in capacity if member.report)
    mean = load.mean if world.certain else None
    it = count_tick(it, mean, blind=classed.blind, settings=settings, moment=moment)
    counted = it.state
    floor = settings.floor(moment.now_at)
    facts = Facts(
        world=world,
        classed=classed,
        capacity=capacity,
        floor=floor,
        settings=settings,
        moment=moment,
        token=token,
        unheard=unheard_now,
    )
    # A dry run does not continue a launch, so one that it finds would block it for ever.
    choice = choose(it.set(launch=None) if dry_run else it, facts)
    figures = _figures(choice, counted, facts, load)
    choice = _only_thought(choice, counted) if dry_run else _swept(choice, facts)
    it = choice.progress.set(tick=state.tick + 1, ticked_at=moment.now_at, figures=figures)
    base = ScalingRecord(controller=controller, token=token, pool=pool, figures=figures, dry_run=dry_run)
    return TickDecision(
        action=choice.action,
        reason=choice.reason,
        state=it.state,
        records=tuple(_record(base, note) for note in it.notes),
        effects=it.effects,
        figures=figures,
        faults=world.faults,
    )


def confirm_launch(
    state: ScalingState, request: str, *, node: str, sfu: str, settings: ScalingSettings
) -> ScalingState:
    """The state once the pool has made the node of a request: the cooldown counts from here."""
    assert state.launch is not None
    assert state.launch.request == request
    launch = msgspec.structs.replace(state.launch, node=node, sfu=sfu)
    return msgspec.structs.replace(state, launch=launch, cooldown_left_s=settings.cooldown_s)


def _pass_time(it: TickProgress, world: World, settings: ScalingSettings, moment: Moment) -> TickProgress:
    # Never longer than the settings say now, whatever was stored under others.
    left_s = max(0.0, min(it.state.cooldown_left_s, settings.cooldown_s) - max(0.0, moment.elapsed_s))
    return it.set(cooldown_left_s=round(left_s, 3), newcomers=_newcomers(it.state.newcomers, world))


def _newcomers(newcomers: tuple[Newcomer, ...], world: World) -> tuple[Newcomer, ...]:
    """Without those that have their first room or are gone. A node that no router knows at this moment is kept."""
    rooms = {m.node.sfu: (m.report.state.load_parts.rooms or 0) if m.report else 0 for m in world.members}
    return tuple(each for each in newcomers if not (world.certain and rooms.get(each.sfu, 1) > 0))


def _release_orphans(it: TickProgress, world: World) -> TickProgress:
    """Take back cordons of ours that belong to no removal: an uncordon that did not arrive, a state that was lost.

    They would lapse, but only at the end of their lease.
    """
    planned = {removal.node for removal in it.state.removals}
    for member in world.members:
        fresh = member.report is not None and member.report.fresh
        if fresh and member.cordoned_by_us and member.node.node not in planned:
            it = it.effect(TakeBack(sfu=member.node.sfu, node=member.node.node))
    return it


def _waiting(state: ScalingState, classed: Classed, moment: Moment) -> tuple[Waiting, ...]:
    """How long each node has been neither capacity nor draining."""
    before = {each.node: each.waited_s for each in state.waiting}
    waits = (NodeKind.WARMING, NodeKind.UNKNOWN, NodeKind.LOST)
    return tuple(
        Waiting(node=node, waited_s=round(before[node] + moment.elapsed_s, 3) if node in before else 0.0)
        for node, kind in classed.kinds.items()
        if kind in waits
    )


def _swept(choice: Choice, facts: Facts) -> Choice:
    """The choice with one failed node removed, if the floor allows it: not before a replacement is listed. At the
    maximum the removal makes room for the replacement, even where the floor is as high."""
    if not facts.world.certain or facts.unheard:
        return choice
    spare = max(facts.spare(choice.progress.state.removals), int(choice.reason == AT_THE_MAXIMUM))
    return replace(choice, progress=sweep(choice.progress, facts.world.members, spare=spare))


def _only_thought(choice: Choice, before: ScalingState) -> Choice:
    """The choice without its plan and effects. A removal that would be taken back stays where it is as well."""
    kept = TickProgress(state=choice.progress.state, notes=choice.progress.notes)
    kept = kept.set(launch=before.launch, removals=before.removals)
    return Choice(progress=kept, action=choice.action, reason=choice.reason, mean_after=choice.mean_after)


def _figures(choice: Choice, counted: ScalingState, facts: Facts, load: PoolLoad) -> ScalingFigures:
    classed = facts.classed
    return ScalingFigures(
        mean_load=_short(load.mean),
        mean_egress=_short(load.parts.egress),
        mean_streams=_short(load.parts.streams),
        mean_cpu=_short(load.parts.cpu),
        binding=load.binding.value if load.binding else "",
        mean_after=_short(choice.mean_after),
        nodes=len(facts.world.members),
        capacity=classed.count(NodeKind.CAPACITY),
        warming=classed.count(NodeKind.WARMING),
        draining_own=classed.count(NodeKind.DRAINING_OWN),
        draining_other=classed.count(NodeKind.DRAINING_OTHER),
        unknown=classed.count(NodeKind.UNKNOWN),
        lost=classed.count(NodeKind.LOST),
        out_hits=sum(counted.hits),
        out_window=facts.settings.scale_out_window,
        quiet_ticks=counted.quiet_ticks,
        quiet_needed=facts.settings.scale_in_ticks,
        cooldown_left_s=counted.cooldown_left_s,
        floor=facts.floor,
        maximum=facts.settings.max_nodes,
    )


def _record(base: ScalingRecord, note: AuditNote) -> ScalingRecord:
    return msgspec.structs.replace(
        base, action=note.action.value, reason=note.reason, node=note.sfu, detail=note.detail
    )


def _short(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
