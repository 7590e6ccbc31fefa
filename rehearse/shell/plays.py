"""The three plays of a rehearsal. Each ends SFUs on a stage; what came of it is in the stage's endings."""

from __future__ import annotations

import signal
import time
from collections.abc import Awaitable, Callable

from operators.shell.operations import command, order_exit
from rehearse.core.ending import Ending
from rehearse.core.rehearsal import REJOIN_BOUND_S, RehearsalKind
from rehearse.shell.roll_play import roll
from rehearse.shell.stage import Stage
from shared.records import CommandVerb, ExitScope

DRAINED_WITHIN_S = 60.0
"""Everybody moves at once and the SFU ends when the last has left; a minute is for a very slow machine."""
TOLD_WITHIN_S = 15.0


async def drain(stage: Stage) -> None:
    """SIGTERM to the SFU with the most players."""
    await _terminate(stage, stage.fullest_sfu())


async def exit_(stage: Stage) -> None:
    """A hand cordon of the SFU with the most players, who stay, and then a forced exit."""
    await stage.crowd.stay_all()
    sfu = stage.fullest_sfu()
    ending = stage.begin(sfu, at=time.monotonic())
    stage.say(f"cordon {sfu} by hand; its {len(ending.on_it)} players stay")
    await command(stage.store, CommandVerb.CORDON, sfu, reason="rehearsal")
    await stage.until(lambda: not ending.never_told, within_s=TOLD_WITHIN_S)
    ending.ordered = time.monotonic()
    stage.say(f"order {sfu} to exit")
    await order_exit(stage.store, ExitScope.SFU, sfu)
    await stage.wait_ended(ending, within_s=DRAINED_WITHIN_S)
    # Longer than allowed, so that the report can say who was late and by how much.
    await stage.until(lambda: not ending.left_behind, within_s=3 * REJOIN_BOUND_S)


async def _terminate(stage: Stage, sfu: str) -> Ending:
    ending = stage.begin(sfu, at=time.monotonic())
    stage.say(f"SIGTERM to {sfu}, which {len(ending.on_it)} players publish to")
    ending.began = stage.fleet.signal_sfu(sfu, signal.SIGTERM)
    await stage.wait_ended(ending, within_s=DRAINED_WITHIN_S)
    await stage.until(lambda: not ending.left_behind, within_s=3 * REJOIN_BOUND_S)
    if ending.ended is not None:
        stage.say(f"{sfu} ended with status {ending.exit_code} after {ending.ended - ending.began:.1f} s")
    return ending


PLAYS: dict[RehearsalKind, Callable[[Stage], Awaitable[None]]] = {
    RehearsalKind.DRAIN: drain,
    RehearsalKind.EXIT: exit_,
    RehearsalKind.ROLL: roll,
}
