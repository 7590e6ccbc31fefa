"""Which node is removed, and what the mean would be afterwards (A6)."""

from __future__ import annotations

from collections.abc import Sequence

from control.core.autoscaler.world import Member
from shared.load import PLACES, Ceilings


def choose_victim(capacity: Sequence[Member]) -> Member:
    """The node with the fewest forwarded streams; of equals the one with fewer players, then by name."""
    return min(capacity, key=_burden)


def _burden(member: Member) -> tuple[int, int, str]:
    assert member.report is not None
    state = member.report.state
    return (state.load_parts.streams or 0, state.players or 0, member.node.node)


def mean_after(capacity: Sequence[Member], victim: Member, *, leaving: Sequence[Member] = ()) -> float | None:
    """The most that the mean load can be once the victim's work is on the others; None when no node would be left, or
    when the work of a node that drains already is not known.

    An upper bound. All of the victim's work goes to the others, that of nodes which still drain as well, and none of it
    ends. A node's load is the greatest of its parts, and the greatest of sums is at most the sum of the greatests: so a
    node that takes a share of the work grows by at most that share of the work's own greatest part, by the ceilings of
    the node that takes it. With equal ceilings and no node draining the bound is mean * n / (n - 1), reached when the
    same part is the greatest on all nodes.
    """
    rest = [member for member in capacity if member is not victim]
    going = [victim, *leaving]
    if not rest or not all(member.report and member.report.known for member in going):
        return None
    loads = [_load(member) + sum(_as_seen_by(member, each) for each in going) / len(rest) for member in rest]
    return round(sum(loads) / len(loads), PLACES)


def _load(member: Member) -> float:
    assert member.report is not None
    return member.report.load.node or 0.0


def _as_seen_by(taker: Member, victim: Member) -> float:
    """The greatest part of a leaving node's work, by the ceilings of the node that takes it."""
    assert victim.report is not None
    load, theirs, ours = victim.report.load, _ceilings(victim), _ceilings(taker)
    return max(
        (load.egress or 0.0) * theirs.egress_bps / ours.egress_bps,
        (load.streams or 0.0) * theirs.streams / ours.streams,
        # A core is a core: CPU work counts by cores, and the guard is a share of them.
        (load.cpu or 0.0) * theirs.cpu_guard * _cores(victim) / (ours.cpu_guard * _cores(taker)),
    )


def _ceilings(member: Member) -> Ceilings:
    assert member.report is not None
    assert member.report.ceilings is not None
    return member.report.ceilings


def _cores(member: Member) -> int:
    """At least 1: a node that reports less is not believed and so is not capacity."""
    assert member.report is not None
    return member.report.state.capacities.cores
