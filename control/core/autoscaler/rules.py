"""The ladder of a tick's one decision (A4): what the pool needs, what prevents it, what is done."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from control.core.autoscaler.effects import Launch, LeaseCordon, PreferVictim
from control.core.autoscaler.progress import TickProgress
from control.core.autoscaler.removals import take_back
from control.core.autoscaler.streaks import changed, is_hot, is_quiet
from control.core.autoscaler.victim import choose_victim, mean_after
from control.core.autoscaler.world import Classed, Member, Moment, NodeKind, World
from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import Launching, Removing, ScaleAction

AT_THE_MAXIMUM = "at-the-maximum"


@dataclass(frozen=True, kw_only=True, slots=True)
class Facts:
    """What the rules look at."""

    world: World
    classed: Classed
    capacity: Sequence[Member]
    floor: int
    settings: ScalingSettings
    moment: Moment
    token: int
    unheard: bool = False
    """No node has reported lately although some should have."""

    @property
    def coming(self) -> int:
        """Nodes that are there or on their way, other people's removals included: those are planned, not lost."""
        kinds = (NodeKind.CAPACITY, NodeKind.WARMING, NodeKind.UNKNOWN, NodeKind.DRAINING_OTHER)
        return sum(self.classed.count(kind) for kind in kinds)

    @property
    def none_left(self) -> bool:
        """Certainly no capacity, and none on its way: no player can be placed."""
        kinds = (NodeKind.CAPACITY, NodeKind.WARMING, NodeKind.UNKNOWN)
        return not any(self.classed.count(kind) for kind in kinds)

    @property
    def leaving(self) -> list[Member]:
        """Nodes that drain, on any order, and whose work is still to come to the others."""
        kinds = (NodeKind.DRAINING_OWN, NodeKind.DRAINING_OTHER)
        drain = [member for member in self.world.members if self.classed.kinds[member.node.node] in kinds]
        return [member for member in drain if member.report is not None and not member.report.empty]

    def spare(self, removals: Collection[Removing]) -> int:
        """Listed nodes over the floor, those that the autoscaler removes not counted."""
        going = {removal.node for removal in removals}
        return sum(member.node.node not in going for member in self.world.members) - self.floor

    def unlisted(self, launch: Launching | None) -> int:
        """1 for a launch that the pool does not list yet."""
        return int(launch is not None and self.world.by_request(launch.request) is None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """The result of the ladder."""

    progress: TickProgress
    action: ScaleAction
    reason: str
    mean_after: float | None = None


def choose(it: TickProgress, facts: Facts) -> Choice:
    """The tick's decision: at most one change of the pool, and a reason in any case."""
    if not facts.world.certain:
        return _held(it, "pool-unknown")
    if facts.unheard:
        return _held(it, "fleet-unheard")
    if facts.coming + facts.unlisted(it.state.launch) < facts.floor:
        return _out(it, facts, "under-the-floor")
    if facts.none_left:
        return _out(it, facts, "no-capacity")
    if is_hot(it, facts.settings):
        return _out(it, facts, "hot")
    if is_quiet(it, facts.settings):
        return _in(it, facts)
    return Choice(progress=it.set(held=""), action=ScaleAction.NONE, reason="within-limits")


def _out(it: TickProgress, facts: Facts, reason: str) -> Choice:
    """One more node: by taking a removal back, else by a launch."""
    if it.state.launch is not None:
        return _held(it, "launch-in-progress")
    if it.state.cooldown_left_s > 0:
        return _held(it, "cooldown")
    taken_back = take_back(it, facts.world, reason)
    if taken_back is not None:
        taken_back = changed(taken_back, facts.settings, facts.moment)
        return Choice(progress=taken_back.set(held=""), action=ScaleAction.CANCELLED, reason=reason)
    if len(facts.world.members) >= facts.settings.max_nodes:
        return _held(it, AT_THE_MAXIMUM)
    # Unique: over leaders by the token, within a term by the tick, and after a loss of the state by the time.
    request = f"{facts.token}-{facts.moment.now_at:.0f}-{it.state.tick}"
    launch = Launching(request=request, since_at=facts.moment.now_at)
    it = changed(it, facts.settings, facts.moment).set(launch=launch, held="")
    it = it.note(ScaleAction.SCALE_OUT, reason, detail=f"request {launch.request}")
    return Choice(progress=it.effect(Launch(request=launch.request)), action=ScaleAction.SCALE_OUT, reason=reason)


def _in(it: TickProgress, facts: Facts) -> Choice:
    """One node fewer, if nothing prevents it."""
    if it.state.launch is not None:
        return _held(it, "launch-in-progress")
    if len(facts.capacity) <= facts.floor:
        return _held(it, "at-the-floor")
    victim = choose_victim(facts.capacity)
    after = mean_after(facts.capacity, victim, leaving=facts.leaving)
    if after is None or after >= facts.settings.scale_out_at:
        return replace(_held(it, "would-be-hot"), mean_after=after)
    if it.state.cooldown_left_s > 0:
        return replace(_held(it, "cooldown"), mean_after=after)
    assert victim.report is not None
    node, sfu = victim.node.node, victim.node.sfu
    removal = Removing(node=node, sfu=sfu, since_at=facts.moment.now_at)
    it = changed(it, facts.settings, facts.moment).set(removals=(*it.state.removals, removal), held="")
    it = it.note(ScaleAction.SCALE_IN, "quiet", sfu=sfu, detail=f"streams {victim.report.streams}")
    it = it.effect(PreferVictim(node=node), LeaseCordon(sfu=sfu, node=node, streams=victim.report.streams))
    return Choice(progress=it, action=ScaleAction.SCALE_IN, reason="quiet", mean_after=after)


def _held(it: TickProgress, reason: str) -> Choice:
    """Not done; recorded in the audit once, not at each tick."""
    if it.state.held != reason:
        it = it.note(ScaleAction.HELD, reason)
    return Choice(progress=it.set(held=reason), action=ScaleAction.HELD, reason=reason)
