"""Runs the steps of `sluice capacity`: a fresh SFU and fresh players for each."""

from __future__ import annotations

from bench.capacity.figures import StepFigures
from bench.capacity.search import Finding, conclude, search
from bench.capacity.settings import CapacitySettings
from bench.capacity.sfu import RealSfu, Silent
from bench.capacity.text import step_text
from bench.capacity.workload import count_streams, workload
from bench.machine import Cores
from bench.relay.measure import measure
from bench.relay.run import RunSettings, Say
from bench.relay.settings import PROFILES


async def find(settings: CapacitySettings, cores: Cores, *, say: Say) -> Finding:
    """Raises `NothingHeld`, and `FleetFailed` when the SFU does not run or admits no player."""

    async def probe(streams: int) -> StepFigures:
        return await measure_step(settings, streams, cores, say=say)

    return conclude(await search(probe, settings.plan, on_step=lambda step: say(step_text(step))))


async def measure_step(settings: CapacitySettings, streams: int, cores: Cores, *, say: Say) -> StepFigures:
    """One size. Raises `FleetFailed`."""
    chosen = RunSettings(
        workload=workload(room_size=settings.room_size, kbps=settings.kbps, cameras=settings.cameras),
        size=streams,
        seconds=settings.step_s,
        joins=0,
        profile=PROFILES[settings.profile],
        cores=cores,
    )
    sfu = RealSfu()
    setup = chosen.workload.setup(streams)
    count, players = count_streams(setup), len(setup.publishers)
    try:
        told = await measure(chosen, sfu, say=say)
    except TimeoutError:
        return StepFigures(streams=count, players=players, silent="the SFU did not let all players in in time")
    except Silent as error:
        return StepFigures(streams=count, players=players, silent=error.sentence())
    finally:
        await sfu.stop()  # also after a start that failed
    return StepFigures(
        streams=count,
        players=players,
        packets_per_s=told.packets_out_per_s,
        egress_mbps=sfu.egress_mbps,
        loss=told.loss,
        delay_ms_p50=told.delay_ms_p50,
        delay_ms_p99=told.delay_ms_p99,
        sfu_cpu=told.server_core_share,
        generator_cpu=told.generator_core_share,
        others_cpu=told.others_core_share,
        generator_drops=told.generator_drops,
        late_frames=told.late_frames,
    )
