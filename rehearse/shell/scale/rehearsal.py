"""A scale rehearsal from start to report."""

from __future__ import annotations

import time
from collections.abc import Callable

from localfleet.config import FleetSize
from rehearse.core.scale.plan import ScalePlan
from rehearse.core.scale.rehearsal import ScaleReport, Setting, summarize
from rehearse.core.scale.seen import Seen
from rehearse.shell.scale.play import play
from rehearse.shell.scale.stage import ScaleStage, scale_stage
from rehearse.shell.stage import drain_report
from rehearse.shell.stall import StallMeter
from shared.errors import BadSetting
from shared.host.ports import check_host
from shared.store.server_name import server_name

REPORT_WITHIN_S = 5.0
LOOK_EVERY_S = 0.1


async def rehearse_scale(*, size: FleetSize, tick_s: float, seed: int, say: Callable[[str], None]) -> ScaleReport:
    """Run it. Raises `BadSetting` for sizes that make no sense, `FleetFailed` when a program fails."""
    check_host(size.host)
    if size.routers < 1:
        raise BadSetting(setting="--routers", detail="must be at least 1")
    plan = ScalePlan(nodes=size.sfus, tick_s=tick_s)
    began = time.monotonic()
    async with scale_stage(plan, size=size, seed=seed, say=say) as stage:
        server = await server_name(stage.fleet.redis_url)
        seen = Seen(began_at=stage.began_at, began=stage.began)
        async with StallMeter() as stall:
            await play(stage, seen)
        await _collect(stage, seen)
        setting = Setting(
            settings=plan.settings(),
            nodes=plan.nodes,
            routers=size.routers,
            bots=stage.took_part,
            seed=seed,
            redis_server=server,
            stall_ms=stall.worst_ms,
            took_s=time.monotonic() - began,
            logs=str(stage.fleet.logs),
        )
        report = summarize(seen, setting)
        stage.fleet.keep_logs = not report.passed
    return report


async def _collect(stage: ScaleStage, seen: Seen) -> None:
    """What logs, Redis and the bots tell at the end of the play."""
    seen.records, seen.ticks = list(stage.recorder.records), list(stage.recorder.ticks)
    seen.last_report = stage.recorder.last.get(seen.victim)
    if seen.gone:
        seen.drain = await drain_report(stage.store, seen.victim)
    seen.gaps, seen.failures = await stage.crowd.measured()
    seen.evicted, seen.moves = list(stage.view.evicted), list(stage.view.moves)
    seen.lines = stage.lines()
