"""Runs of `sluice bench relay` in rounds, our server and another in turn, and searches for the knee."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bench.machine import Cores
from bench.relay.figures import RelayFigures, median
from bench.relay.floor import measure_floor
from bench.relay.knee import Knee, KneeStep, find_knee
from bench.relay.measure import WARM_UP_JOINS, measure
from bench.relay.peers import Peer, peer_named
from bench.relay.run import RunSettings, Say
from bench.relay.settings import MOST, PROFILES, RelaySettings
from bench.relay.sluice import SluicePeer
from bench.relay.text import step_text
from bench.relay.workloads import WORKLOADS, Course, unit

RUN_S, STEP_S = 8.0, 4.0
ROUNDS = 3


def run_settings(workload: str, settings: RelaySettings, cores: Cores, *, seconds: float) -> RunSettings:
    """What one run needs; `seconds` unless told otherwise."""
    chosen = WORKLOADS[workload]
    joins = chosen.joins if settings.joins is None else settings.joins
    return RunSettings(
        workload=chosen,
        size=settings.subscribers or chosen.size,
        seconds=settings.seconds or seconds,
        joins=(1 + WARM_UP_JOINS) * joins
        if chosen.course is Course.CHURN
        else joins
        if chosen.course is Course.STORM
        else 0,
        profile=PROFILES[settings.profile],
        cores=cores,
        gso=settings.sender_gso,
        gro=settings.gro,
    )


def servers(settings: RelaySettings) -> list[Callable[[], Peer]]:
    """Ours, and the one to compare with. Raises `PeerMissing`."""
    made: list[Callable[[], Peer]] = [lambda: SluicePeer(plane=settings.plane, gso=settings.gso)]
    if (name := settings.peer) is not None:
        peer_named(name)
        made.append(lambda: peer_named(name))
    return made


async def measure_rounds(workload: str, settings: RelaySettings, cores: Cores, *, say: Say) -> list[RelayFigures]:
    """The medians, ours first."""
    chosen = run_settings(workload, settings, cores, seconds=RUN_S)
    made = servers(settings)
    rounds = settings.rounds or (ROUNDS if settings.peer else 1)
    told: list[list[RelayFigures]] = [[] for _ in made]
    for number in range(rounds):
        for server, make in enumerate(made):
            peer = make()
            say(f"round {number + 1}/{rounds}: {peer.name}, {workload}, {chosen.size:,} {unit(workload)}")
            told[server].append(await measure(replace(chosen, seed=number + 1), peer, say=say))
    figures = [median(one) for one in told]
    if settings.floor:
        say("what the kernel alone takes for the same sends")
        figures[0] = replace(figures[0], floor_us_per_packet=await measure_floor(chosen, gso=settings.gso))
    return figures


async def search(workload: str, settings: RelaySettings, cores: Cores, *, say: Say) -> list[tuple[str, Knee]]:
    """Each server's knee, ours first."""
    chosen = run_settings(workload, settings, cores, seconds=STEP_S)
    told = []
    for make in servers(settings):
        name = make().name

        async def probe(size: int, make: Callable[[], Peer] = make) -> RelayFigures:
            return await measure(replace(chosen, size=size), make(), say=say)

        def on_step(step: KneeStep, name: str = name) -> None:
            say(f"{name}, {step_text(step)}")

        told.append((name, await find_knee(probe, start=chosen.size, most=MOST * chosen.size, on_step=on_step)))
    return told
