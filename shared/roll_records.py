"""A roll as it is kept in Redis: its plan, how far it has come, and at its end its report (D13)."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from shared.records import DrainReport, Int, Record


class RollState(StrEnum):
    """How a roll stands."""

    RUNNING = "running"
    """A command goes on with it, or was interrupted."""
    PAUSED = "paused"
    """It waits for an operator; `RollRecord.pause` says why."""
    DONE = "done"
    ABORTED = "aborted"


class StepStage(StrEnum):
    """How far one replacement has come, in this order."""

    WAITING = "waiting"
    STARTING = "starting"
    """The replacement was asked for and is not seen yet."""
    WARMING = "warming"
    """The replacement is seen and has not warmed up (A5)."""
    DRAINING = "draining"
    """The old SFU is cordoned and ends when its last player has left."""
    STOPPING = "stopping"
    """It has ended; what its platform keeps of it is being cleared away."""
    DONE = "done"


class RollStep(Record, frozen=True, kw_only=True):
    """One SFU that comes, and the one that goes for it."""

    old: str
    new: str = ""
    """Id of the replacement. It may be the id of an SFU that an earlier step has ended; empty: the platform's own."""
    stage: str = StepStage.WAITING.value
    """A `StepStage`."""
    since_at: float = 0.0
    """When the stage began, by Redis' clock [Unix seconds]."""
    old_run: Int = 0
    """Incarnation of the SFU that goes."""
    above: Int = 0
    """The replacement is what has this incarnation exceeded: the last one known under its id when the roll began."""
    cordoned: bool = False
    """The old one has been seen cordoned."""
    forgiven: bool = False
    """An operator has gone on with the roll although the old SFU died or the replacement is gone."""
    before: DrainReport | None = None
    """The newest drain report under the old one's id when its drain began."""
    report: DrainReport | None = None
    """How its drain ended (D10)."""


class RouterStage(StrEnum):
    """How far one router has come."""

    WAITING = "waiting"
    RESTARTING = "restarting"
    """It ends and comes back; its players resume on others."""
    SETTLING = "settling"
    """It is back; players that lost their websocket have time to resume."""
    DONE = "done"


class RollRouter(Record, frozen=True, kw_only=True):
    """One router that is started again."""

    router: str
    stage: str = RouterStage.WAITING.value
    since_at: float = 0.0
    boot: str = ""
    """Of the process that ends."""
    players: Int = 0
    """Sessions on all routers before it ended."""


class RollRecord(Record, frozen=True, kw_only=True):
    """The plan of a roll and all that is known of it."""

    roll: str
    version: str
    """The label that replacements carry."""
    by: str = ""
    platform: str = ""
    """What starts and stops SFUs: `local`, `hooks`, `compose`, `follow`."""
    start: str = ""
    """The hooks' commands."""
    stop: str = ""
    restart: str = ""
    surge: Int = 1
    """Steps at a time."""
    warm_up_within_s: float = 120.0
    state: str = RollState.RUNNING.value
    """A `RollState`."""
    pause: str = ""
    """Why it waits, a sentence."""
    began_at: float = 0.0
    ended_at: float = 0.0
    interruptions: Int = 0
    """How often another command went on with it."""
    failed_connections: Int = 0
    """Players that could not connect to the SFU they were sent to, since it began."""
    freezes: Int = 0
    """Gaps of moves beyond the bound, since it began."""
    without_media: Int = 0
    """Players whose media did not get through when it began or was gone on with."""
    more_without_since_at: float = 0.0
    """Since when there are more of them [Unix seconds by Redis' clock]; 0: there are not."""
    routers: tuple[RollRouter, ...] = ()
    steps: tuple[RollStep, ...] = ()
    extra: dict[str, Any] | None = None
