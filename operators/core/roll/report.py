"""What a roll came to, for people and for scripts; also told while it goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from shared.placement_records import PlacementRecord
from shared.records import DrainReport
from shared.roll_records import RollRecord, StepStage

MOVES = frozenset({"cordoned", "asked"})
"""Causes of a placement that a drain brings about."""


class RolledRow(msgspec.Struct, frozen=True, kw_only=True):
    """One SFU that went."""

    old: str
    new: str
    stage: str
    drain: DrainReport | None
    """How its drain ended (D10)."""


class RollReport(msgspec.Struct, frozen=True, kw_only=True):
    """A roll, as `--json` prints it."""

    roll: str
    version: str
    state: str
    pause: str
    by: str
    platform: str
    took_s: float
    sfus_rolled: int
    sfus_left: int
    routers_restarted: list[str]
    players_moved: int
    """Players that were on an SFU when it was cordoned and left it on their own."""
    players_evicted: int
    failed_connections: int
    freezes: int
    moves_per_player_max: int | None
    """Most moves that one player made for the roll, as far as the history of placements goes back; None: it does not
    reach back to the beginning."""
    interruptions: int
    steps: list[RolledRow]


def report_of(plan: RollRecord, placements: Iterable[PlacementRecord] = (), *, now: float) -> RollReport:
    """The report; `placements` as the store has them, newest first."""
    drains = [step.report for step in plan.steps if step.report is not None]
    over = sum(step.stage == StepStage.DONE for step in plan.steps)
    return RollReport(
        roll=plan.roll,
        version=plan.version,
        state=plan.state,
        pause=plan.pause,
        by=plan.by,
        platform=plan.platform,
        took_s=round((plan.ended_at or now) - plan.began_at, 1),
        sfus_rolled=over,
        sfus_left=len(plan.steps) - over,
        routers_restarted=[each.router for each in plan.routers if each.stage == "done"],
        players_moved=sum(max(0, each.players_at_cordon - each.evicted) for each in drains),
        players_evicted=sum(each.evicted for each in drains),
        failed_connections=plan.failed_connections,
        freezes=plan.freezes,
        moves_per_player_max=most_moves(list(placements), since_at=plan.began_at),
        interruptions=plan.interruptions,
        steps=[RolledRow(old=each.old, new=each.new, stage=each.stage, drain=each.report) for each in plan.steps],
    )


def most_moves(placements: list[PlacementRecord], *, since_at: float, kept: int = 2000) -> int | None:
    """Most moves of one player since then; None when the history, which keeps so many, begins later."""
    if len(placements) >= kept and placements[-1].at > since_at:
        return None
    moves = Counter(each.player for each in placements if each.at >= since_at and each.cause in MOVES and each.sfu)
    return max(moves.values(), default=0)
