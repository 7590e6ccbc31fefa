"""What an SFU reports of itself: the probe's bytes are no load, and what is on it is counted (A2, A5)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from sfu.config import SfuConfig
from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.machine import DrainMachine
from sfu.core.load.warm_up import ComingUp
from sfu.core.room import SfuRoom
from sfu.plane.api import PeerSnapshot, PlaneSnapshot, PlaneTotals
from sfu.plane.choice import PlaneKind, make_plane
from sfu.shell import probe as probe_module
from sfu.shell import probe_end
from sfu.shell.media import PortMedia
from sfu.shell.metrics import SfuMetrics
from sfu.shell.parts import SfuParts
from sfu.shell.player import Player
from sfu.shell.probe import Probe
from sfu.shell.reporting import Reporting
from sfu.shell.udp import MediaPort


@dataclass
class Counters:
    """What a plane has counted."""

    out: int = 0
    into: int = 0

    def snapshot(self) -> PlaneSnapshot:
        totals = PlaneTotals(bytes_out=self.out, bytes_in=self.into)
        peer = PeerSnapshot(peer=7, packets_in=0, bytes_in=0, packets_out=0, bytes_out=0, last_heard=12.5)
        return PlaneSnapshot(totals=totals, peers=(peer,), producers=(), consumers=())


@contextmanager
def reporting(*, clock: Callable[[], float]) -> Iterator[tuple[Reporting, SfuParts]]:
    rng = random.Random(1)
    metrics = SfuMetrics(CollectorRegistry(), version="1")
    parts = SfuParts(config=SfuConfig(machine_cpu=False), metrics=metrics, rng=rng, clock=clock)
    made = Reporting(parts, DrainMachine(DrainBounds(), rng=rng), ComingUp(), ws_port=7101)
    yield made, parts
    made.stop()


async def test_bytes_of_the_probe_are_neither_egress_nor_ingress() -> None:
    now = 0.0
    counters = Counters(out=5000, into=4000)
    with reporting(clock=lambda: now) as (it, _):
        it.sample(counters.snapshot(), hidden=(4000, 5000))
        now = 2.0
        counters.out += 1_000 + 300
        counters.into += 2_000 + 70
        it.sample(counters.snapshot(), hidden=(4070, 5300))
        parts = it.refresh().load_parts
    assert (parts.egress_bps, parts.ingress_bps) == (4_000, 8_000)


async def test_who_was_heard_when_is_known_as_of_the_last_snapshot() -> None:
    media = PortMedia(cast(MediaPort, None), candidates=())
    media.note_heard(Counters().snapshot())
    assert media.heard == {7: 12.5}


@pytest.mark.parametrize("kind", [PlaneKind.COMPILED, PlaneKind.REFERENCE])
async def test_a_real_probe_call_is_no_load(kind: PlaneKind, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, within in (
        (probe_end, "ANSWER_WITHIN_S"),
        (probe_end, "HANDSHAKE_WITHIN_S"),
        (probe_module, "FORWARDED_WITHIN_S"),
    ):
        monkeypatch.setattr(module, within, 30.0)  # a busy machine may stall for seconds
    ids = iter(range(1, 100))
    now = 0.0
    port = MediaPort.open(
        "127.0.0.1", 0, on_events=lambda _: None, make_plane=lambda send: make_plane(send, kind=kind, gso=True)
    )
    probe = Probe(port, next_id=lambda: next(ids), rng=random.Random(3))
    try:
        with reporting(clock=lambda: now) as (it, _):
            for now in (0.0, 1.0):
                snapshot = port.plane.snapshot()
                it.sample(snapshot, hidden=probe.hidden(snapshot))
                if now == 0.0:
                    await probe.call(port.address)
            parts = it.refresh().load_parts
        totals = port.plane.snapshot().totals
    finally:
        port.close()
    assert min(totals.bytes_in, totals.bytes_out) > 0
    assert (parts.egress_bps, parts.ingress_bps) == (0.0, 0.0)


async def test_rates_are_unknown_in_the_first_report_and_what_is_here_is_not() -> None:
    with reporting(clock=lambda: 0.0) as (it, here):
        here.consumers |= set(range(5))
        here.rooms["r"] = SfuRoom("r")
        here.players |= dict.fromkeys("ab", cast(Player, None))
        here.producers |= dict.fromkeys(range(3), (cast(Player, None), "mic"))
        it.sample(Counters().snapshot(), hidden=(0, 0))
        state = it.refresh()
    parts = state.load_parts
    assert (state.load, parts.egress_bps, parts.ingress_bps, parts.cpu) == (None, None, None, None)
    assert (parts.streams, parts.rooms, parts.clients, parts.tracks) == (5, 1, 2, 3)
    assert (state.players, state.producers, state.consumers) == (2, 3, 5)
