"""What a tick knows: the pool's nodes joined with the reports of the SFUs they run, each with what it counts as."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from control.core.autoscaler.samples import NodeReport
from control.core.autoscaler.stages import LaunchStage
from control.core.pool import Listing, NodePhase, PoolNode, without_oddities
from shared.records import SfuStatus, status_of
from shared.scaling_records import AUTOSCALER, RemovalStage, Removing, ScalingState


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    """The time of a tick. No decision depends on the difference of two clocks, so a clock that jumps does no harm."""

    now_at: float
    """By Redis' clock [Unix seconds]: for schedules, records and people."""
    elapsed_s: float
    """Seconds since the last tick that certainly passed; 0 at a leader's first tick, which can't know."""
    first: bool = False
    """The leader's first tick."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """A node of the pool and the report of its SFU; None: no router knows it."""

    node: PoolNode
    report: NodeReport | None
    seen: bool = False
    """A router has known it at some moment since the last tick, so a player may be on it."""

    @property
    def status(self) -> SfuStatus | None:
        """What its SFU last said."""
        return None if self.report is None else status_of(self.report.state)

    @property
    def heard(self) -> bool:
        """Its SFU has reported lately."""
        return self.report is not None and self.report.fresh

    @property
    def cordoned_by_us(self) -> bool:
        """CORDONED, and only by the autoscaler."""
        drain = self.report.state.drain if self.report else None
        return self.status is SfuStatus.CORDONED and drain is not None and drain.by == AUTOSCALER


@dataclass(frozen=True, kw_only=True, slots=True)
class World:
    """The pool and its reports at one tick."""

    members: tuple[Member, ...]
    certain: bool
    """The listing is complete; when not, a node that is missing is unknown and nothing is decided (invariant 4)."""
    reports: Mapping[str, NodeReport] = field(default_factory=dict)
    """The reports by SFU id, with those of SFUs that the pool does not list."""
    seen: Collection[str] = ()
    """SFUs that routers have known since the last tick, those that are gone by now included."""
    faults: tuple[tuple[str, str], ...] = ()

    def by_node(self, node: str) -> Member | None:
        """The member of that name."""
        return next((member for member in self.members if node and member.node.node == node), None)

    def by_request(self, request: str) -> Member | None:
        """The member that a launch request made."""
        return next((member for member in self.members if request and member.node.request == request), None)

    def removed(self, removal: Removing) -> Member | None:
        """The member that a removal is about. While the listing is not certain, its SFU's report is enough: the cordon
        must not lapse because a platform's API is away."""
        member = self.by_node(removal.node)
        if member is None and not self.certain and removal.sfu in self.reports:
            node = PoolNode(node=removal.node, sfu=removal.sfu, phase=NodePhase.RUNNING)
            return Member(node=node, report=self.reports[removal.sfu], seen=True)
        return member


def join(listing: Listing | None, reports: Mapping[str, NodeReport], *, seen: Collection[str] = ()) -> World:
    """The world; `listing` is None when the pool did not answer."""
    seen = frozenset(reports).union(seen)
    bad = [(f"report-{fault}", sfu) for sfu, report in reports.items() for fault in report.faults]
    if listing is None:
        return World(members=(), certain=False, reports=reports, seen=seen, faults=tuple(bad))
    clean = without_oddities(listing.nodes, complete=listing.complete, odd=listing.oddities)
    bad += [(f"pool-{odd.kind.value}", odd.node) for odd in clean.oddities]
    members = tuple(Member(node=node, report=reports.get(node.sfu), seen=node.sfu in seen) for node in clean.nodes)
    if clean.complete:
        ours = {node.sfu for node in clean.nodes}
        bad += [("sfu-unlisted", sfu) for sfu in reports if sfu not in ours]
    return World(members=members, certain=clean.complete, reports=reports, seen=seen, faults=tuple(bad))


def unheard(world: World, state: ScalingState) -> bool:
    """No node has reported lately although some should have: the fault is between the nodes and us, perhaps all
    routers, and says nothing about any node.

    A pool whose only nodes are still coming up, have ended or were told by us to end is not unheard, only new.
    """
    return not any(member.heard for member in world.members) and any(
        _should_report(member, state) for member in world.members
    )


def _should_report(member: Member, state: ScalingState) -> bool:
    launch, node = state.launch, member.node
    if node.phase is not NodePhase.RUNNING:
        return False
    if launch is not None and node.request == launch.request and LaunchStage.HEALTHY.value not in launch.stages:
        return False
    removal = next((each for each in state.removals if each.node == node.node), None)
    return removal is None or (removal.registered and removal.stage != RemovalStage.ENDING)


class NodeKind(StrEnum):
    """What a node counts as."""

    CAPACITY = "capacity"
    """Healthy, not cordoned, warmed up, with a report (A5)."""
    WARMING = "warming"
    """On its way to being capacity."""
    DRAINING_OWN = "draining_own"
    """The autoscaler's own removal."""
    DRAINING_OTHER = "draining_other"
    """Cordoned by a person, a deploy or a signal: planned, so neither lost nor capacity."""
    UNKNOWN = "unknown"
    """It runs, but its report is missing, old or absurd."""
    LOST = "lost"
    """Failed, or not capacity for longer than a launch may take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Classed:
    """The members by what they count as."""

    kinds: Mapping[str, NodeKind]
    """Each member's kind, by its node."""
    blind: bool
    """A node that runs is unknown, so it is not known how much the pool carries."""

    def count(self, kind: NodeKind) -> int:
        """How many count as that."""
        return Counter(self.kinds.values())[kind]


def classify(world: World, state: ScalingState, *, patience_s: float) -> Classed:
    """What every member counts as. `patience_s`: how long one may be neither capacity nor draining until it is lost."""
    late = {each.node for each in state.waiting if each.waited_s >= patience_s}
    kinds: dict[str, NodeKind] = {}
    blind = False
    for member in world.members:
        kind = _kind(member, state)
        blind = blind or kind is NodeKind.UNKNOWN
        if kind in (NodeKind.UNKNOWN, NodeKind.WARMING) and member.node.node in late:
            kind = NodeKind.LOST
        kinds[member.node.node] = kind
    return Classed(kinds=kinds, blind=blind)


def _kind(member: Member, state: ScalingState) -> NodeKind:
    node, report = member.node, member.report
    if node.phase is NodePhase.FAILED:
        return NodeKind.LOST
    if any(removal.node == node.node for removal in state.removals):
        return NodeKind.DRAINING_OWN
    if member.status in (SfuStatus.CORDONED, SfuStatus.TERMINATING):
        return NodeKind.DRAINING_OWN if member.cordoned_by_us else NodeKind.DRAINING_OTHER
    if node.phase is NodePhase.ENDING:
        return NodeKind.DRAINING_OTHER
    if report is None:
        launched = state.launch is not None and node.request == state.launch.request
        return NodeKind.WARMING if launched or node.phase is NodePhase.STARTING else NodeKind.UNKNOWN
    if member.status is SfuStatus.UNKNOWN:
        return NodeKind.UNKNOWN
    if not report.state.warmed_up:
        return NodeKind.WARMING
    return NodeKind.CAPACITY if report.known else NodeKind.UNKNOWN
