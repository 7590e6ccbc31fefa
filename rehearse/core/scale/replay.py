"""What the autoscaler would have done on other figures: recorded ticks, decided again by the same core."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from control.core.autoscaler.decide import decide
from control.core.autoscaler.samples import NodeReport
from control.core.autoscaler.world import Member, Moment, World
from control.core.pool import NodePhase, PoolNode
from control.core.scaling_settings import ScalingSettings
from shared.load import Load, Part
from shared.records import SfuState
from shared.scaling_records import ScaleAction, ScalingState

CHANGES = (ScaleAction.SCALE_OUT, ScaleAction.SCALE_IN, ScaleAction.CANCELLED)


@dataclass(frozen=True, kw_only=True, slots=True)
class TickSeen:
    """What the nodes reported over one tick."""

    tick: int
    at: float
    """By Redis' clock [Unix seconds]."""
    loads: Mapping[str, Load]
    """The mean over the tick of each SFU that reported, draining ones included."""


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What would have been decided."""

    parts: list[str]
    """The parts of the load that counted."""
    nodes: int
    """The nodes that carried everything."""
    ticks: int
    hot_ticks: int
    peak: float | None
    """Highest mean of a tick; 1.0 is full."""
    changed: str
    """The first change of the pool that would have been made; empty: none."""
    changed_at_tick: int | None


def replay(ticks: Sequence[TickSeen], settings: ScalingSettings, *, nodes: int, parts: Collection[Part]) -> Replay:
    """Decide recorded ticks again, as if only some parts of the load were measured, up to the first change.

    The pool is the one of the beginning, which would have had to carry everything, so each node gets an equal share of
    the sum over all SFUs: a change that was not made can't have spared it anything. The other parts count as nothing.
    """
    state, before, peak, hot = ScalingState(), 0.0, None, 0
    for number, tick in enumerate(ticks):
        load = _share(tick, nodes, parts)
        moment = Moment(now_at=tick.at, elapsed_s=tick.at - before if number else 0.0, first=not number)
        decision = decide(_world(nodes, load), state, settings, moment=moment, token=1)
        state, before = decision.state, tick.at
        mean = decision.figures.mean_load
        peak = max((each for each in (peak, mean) if each is not None), default=None)
        hot += mean is not None and mean >= settings.scale_out_at
        if decision.action in CHANGES:
            return _result(parts, nodes, number + 1, hot, peak, decision.action.value, tick.tick)
    return _result(parts, nodes, len(ticks), hot, peak, "", None)


def _share(tick: TickSeen, nodes: int, parts: Collection[Part]) -> Load:
    known = [load for load in tick.loads.values() if load.known]
    if not known:
        return Load()
    sums = {part.value: sum(load.part(part) or 0.0 for load in known) / nodes for part in Part}
    return Load(**{name: share if name in parts else 0.0 for name, share in sums.items()})


def _world(nodes: int, load: Load) -> World:
    names = [f"node-{number + 1}" for number in range(nodes)]
    members = [
        Member(
            node=PoolNode(node=name, sfu=name, phase=NodePhase.RUNNING),
            report=NodeReport(state=SfuState(address="", sfu=name, warmed_up=True), load=load),
        )
        for name in names
    ]
    return World(members=tuple(members), certain=True)


def _result(
    parts: Collection[Part], nodes: int, ticks: int, hot: int, peak: float | None, changed: str, at_tick: int | None
) -> Replay:
    return Replay(
        parts=sorted(part.value for part in parts),
        nodes=nodes,
        ticks=ticks,
        hot_ticks=hot,
        peak=None if peak is None else round(peak, 4),
        changed=changed,
        changed_at_tick=at_tick,
    )
