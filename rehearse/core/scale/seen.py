"""What is seen of a scale rehearsal, before it is judged."""

from __future__ import annotations

from dataclasses import dataclass, field

from rehearse.core.crowd_view import BotMoved
from rehearse.core.ending import Failure
from rehearse.core.gaps import LongestGaps
from rehearse.core.scale.log import LogLine
from rehearse.core.scale.replay import TickSeen
from shared.records import DrainReport, SfuState
from shared.scaling_records import ScaleAction, ScalingRecord


@dataclass(slots=True, kw_only=True)
class Seen:
    """What was seen. Times `at` are Unix seconds; those of players are one monotonic clock's."""

    began_at: float
    began: float
    """The same moment by the monotonic clock."""
    stuck: str = ""
    """What did not come about, so that the play ended early."""
    lines: list[LogLine] = field(default_factory=list)
    records: list[ScalingRecord] = field(default_factory=list)
    """The audit, oldest first."""
    ticks: list[TickSeen] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    moves: list[BotMoved] = field(default_factory=list)
    on_victim: frozenset[str] = frozenset()
    """Who published there when its removal was decided."""
    left_on_victim: frozenset[str] = frozenset()
    """Who still did when it was told to end."""
    last_report: SfuState | None = None
    """The last that the removed node reported."""
    drain: DrainReport | None = None
    """What it said of its own drain."""
    gone: bool = False
    """Neither its pool nor its fleet knows it any more."""
    gaps: LongestGaps = field(default_factory=LongestGaps)

    def record(self, action: ScaleAction) -> ScalingRecord | None:
        """The first record of that action."""
        return next((record for record in self.records if record.action == action), None)

    @property
    def victim(self) -> str:
        """The node that was removed; empty while none is chosen."""
        record = self.record(ScaleAction.SCALE_IN)
        return record.node if record else ""
