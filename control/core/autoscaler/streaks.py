"""Hot ticks within a window, quiet ticks in a row (A4): one strange half minute changes nothing."""

from __future__ import annotations

from control.core.autoscaler.progress import TickProgress
from control.core.autoscaler.world import Moment
from control.core.scaling_settings import ScalingSettings


def count_tick(
    it: TickProgress, mean: float | None, *, blind: bool, settings: ScalingSettings, moment: Moment
) -> TickProgress:
    """Take this tick's mean into the streaks.

    An unknown mean, that of a pool which did not answer included, is neither a hot tick nor a quiet one; it takes its
    place in the window and ends the quiet streak, because "in each of 20 ticks" must be known of each. A pool with an
    unknown node is not quiet either (invariant 4). When ticks are too far apart to be in a row, the streaks start
    again.
    """
    hits, quiet = it.state.hits, it.state.quiet_ticks
    if _gap(it, settings, moment):
        hits, quiet = (), 0
    hot = mean is not None and mean >= settings.scale_out_at
    calm = mean is not None and mean <= settings.scale_in_at and not blind
    return it.set(hits=(*hits, hot)[-settings.scale_out_window :], quiet_ticks=quiet + 1 if calm else 0)


def _gap(it: TickProgress, settings: ScalingSettings, moment: Moment) -> bool:
    """Whether too much time has passed since the last tick; across leaders only Redis' clock can tell, and if it has
    gone backwards it tells nothing."""
    if it.state.tick == 0:
        return False
    passed_s = moment.now_at - it.state.ticked_at if moment.first else moment.elapsed_s
    return passed_s > settings.longest_gap_s or passed_s < 0


def is_hot(it: TickProgress, settings: ScalingSettings) -> bool:
    """Enough hot ticks in the window, and the last is one.

    That the last must be hot loses nothing: if it is not, enough hot ticks came together earlier, and a rule held the
    decision. A node that has warmed up meanwhile is in the mean now, and if that is enough, no other is needed.
    """
    return it.state.hits[-1:] == (True,) and sum(it.state.hits) >= settings.scale_out_hits


def is_quiet(it: TickProgress, settings: ScalingSettings) -> bool:
    """Enough quiet ticks in a row."""
    return it.state.quiet_ticks >= settings.scale_in_ticks


def changed(it: TickProgress, settings: ScalingSettings, moment: Moment) -> TickProgress:
    """The pool changes now: the cooldown begins, and ticks of the old pool say nothing about the new one."""
    return it.set(hits=(), quiet_ticks=0, cooldown_left_s=settings.cooldown_s, last_change_at=moment.now_at)
