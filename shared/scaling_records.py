"""What the autoscaler keeps in Redis: a state that outlives every controller, and one audit record a decision (A7)."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import msgspec

from shared.records import Int, Record

AUTOSCALER = "autoscaler"
"""The `by` of the autoscaler's commands, and so of the drains that are its own."""
MOST_LEASE_S = 86_400.0
"""An SFU grants no cordon for longer: a lease of more than a day is a fault of the sender."""


class ScaleAction(StrEnum):
    """What a tick decided."""

    NONE = "none"
    """Nothing to do. Never in the audit."""
    SCALE_OUT = "scale-out"
    """One more node was decided on."""
    LAUNCHED = "launched"
    """The node that was launched has become capacity."""
    LAUNCH_FAILED = "launch-failed"
    """The pool refused or could not say; the same request is made again until the time-out."""
    LAUNCH_GIVEN_UP = "launch-given-up"
    """It never became capacity: it is removed, and replaced as soon as the cooldown allows."""
    SCALE_IN = "scale-in"
    """One node is to drain."""
    CORDON_RENEWED = "cordon-renewed"
    """The flag of a draining node was given a new lifetime."""
    TERMINATED = "terminated"
    """A drained node, empty, is told to end; or it has ended on its own."""
    CANCELLED = "cancelled"
    """A removal is over before its end: taken back, or taken over by an operator."""
    HELD = "held"
    """Something would be done, but for the reason given."""


class ScalingFigures(Record, frozen=True, kw_only=True):
    """The figures that a tick decided on. Loads are normalised: 1.0 is a node's ceiling. None means unknown."""

    mean_load: float | None = None
    """Mean over capacity of each node's fullest part."""
    mean_egress: float | None = None
    mean_streams: float | None = None
    mean_cpu: float | None = None
    binding: str = ""
    """The `shared.load.Part` with the greatest mean; empty while unknown."""
    mean_after: float | None = None
    """Upper bound of the mean without the node that would go; None when none would."""
    nodes: Int = 0
    """All that the pool lists."""
    capacity: Int = 0
    """Healthy, not cordoned, warmed up, with a report (A5)."""
    warming: Int = 0
    draining_own: Int = 0
    draining_other: Int = 0
    """Cordoned by an operator: a planned removal, neither lost nor capacity."""
    unknown: Int = 0
    """Without a report that can be believed; not zero."""
    lost: Int = 0
    """Failed, or not capacity for longer than a launch may take: no longer counted for the floor."""
    out_hits: Int = 0
    """Ticks at or over `scale_out_at` among the last `out_window`."""
    out_window: Int = 0
    quiet_ticks: Int = 0
    """Ticks in a row at or under `scale_in_at`."""
    quiet_needed: Int = 0
    cooldown_left_s: float = 0.0
    floor: Int = 0
    """The least nodes now, scheduled floors included."""
    maximum: Int = 0


class ScalingRecord(Record, frozen=True, kw_only=True):
    """One audit record."""

    id: Int = 0
    """Grows with each record of a fleet."""
    at: float = 0.0
    """By the Redis server's clock [Unix seconds]."""
    controller: str = ""
    token: Int = 0
    """Fencing token under which it was written."""
    action: str = ScaleAction.NONE.value
    """A `ScaleAction`."""
    reason: str = ""
    """The rule that decided, in kebab-case."""
    node: str = ""
    """SFU id; empty when none is concerned or known."""
    pool: str = ""
    """The pool's name."""
    detail: str = ""
    """More for people: an error, seconds, a launch request."""
    figures: ScalingFigures = ScalingFigures()
    dry_run: bool = False
    """It would have been done."""


class Launching(Record, frozen=True, kw_only=True):
    """A node on its way to being capacity."""

    request: Annotated[str, msgspec.Meta(min_length=1)]
    """Id of the launch; a pool makes one node of it however often it is asked."""
    node: str = ""
    """The pool's name for it; empty until the pool has confirmed."""
    sfu: str = ""
    since_at: float = 0.0
    """When it was decided, by Redis' clock; for people and stages."""
    waited_s: float = 0.0
    """What decides the time-out: seconds as controllers have seen them pass."""
    stages: tuple[str, ...] = ()
    """What it has reached so far of `healthy` (a router knows its SFU) and `first_packet`."""


class RemovalStage(StrEnum):
    """How far a removal has come."""

    ORDERED = "ordered"
    """Decided and stored; the SFU does not say CORDONED yet."""
    DRAINING = "draining"
    """It says so; its players leave on their own."""
    ENDING = "ending"
    """Empty, and ordered to end."""


class Removing(Record, frozen=True, kw_only=True):
    """A node on its way out."""

    node: str
    sfu: str = ""
    stage: str = RemovalStage.ORDERED.value
    since_at: float = 0.0
    """When it was decided, by Redis' clock."""
    waited_s: float = 0.0
    """Seconds in this stage, as controllers have seen them pass."""
    renewed_s: float = 0.0
    """Seconds since the cordon was last ordered."""
    reason: str = "scale-in"
    """`scale-in`, or `gave-up` for a launch that never became capacity, which is never taken back."""
    registered: bool = True
    """False: a launch that was given up before any router knew its SFU, so no player can be on it."""


class Newcomer(Record, frozen=True, kw_only=True):
    """A launched node that is capacity and waits for its first room."""

    sfu: str
    launched_at: float = 0.0


class Waiting(Record, frozen=True, kw_only=True):
    """A node that is neither capacity nor draining."""

    node: str
    waited_s: float = 0.0


class ScalingState(Record, frozen=True, kw_only=True):
    """All that must survive a controller; written only under the newest fencing token."""

    tick: Int = 0
    """Ticks so far."""
    ticked_at: float = 0.0
    """The last one, by Redis' clock [Unix seconds]."""
    hits: tuple[bool, ...] = ()
    """For each of the last ticks, oldest first: at or over `scale_out_at`."""
    quiet_ticks: Int = 0
    cooldown_left_s: float = 0.0
    """What is left of the cooldown at the last tick [s]. A remainder, not a date, so that no clock's jump ends it."""
    last_change_at: float | None = None
    """The last change of the pool, by Redis' clock; for people."""
    launch: Launching | None = None
    """The launch in progress; there is one at a time."""
    removals: tuple[Removing, ...] = ()
    """The autoscaler's own drains."""
    newcomers: tuple[Newcomer, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    held: str = ""
    """The reason why nothing was done, so that it is recorded once and not each tick."""
    figures: ScalingFigures = ScalingFigures()
    extra: dict[str, Any] | None = None
