"""What an SFU reports of itself: the probe's bytes are no load, and what is on it is counted (A2, A5)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from sfu.config import SfuConfig
from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.machine import DrainMachine
from sfu.plane.api import PeerSnapshot, PlaneSnapshot, PlaneTotals
from sfu.plane.choice import PlaneKind, make_plane
from sfu.shell import probe as probe_module
from sfu.shell import probe_end
from sfu.shell.hub import Hub
from sfu.shell.media import PortMedia
from sfu.shell.metrics import SfuMetrics
from sfu.shell.probe import Probe
from sfu.shell.reporting import Reporting
from sfu.shell.udp import MediaPort


@dataclass
class Counters:
    """A plane, and a probe beside it, of which nothing but the counters is there."""

    out: int = 0
    into: int = 0
    probe_out: int = 0
    probe_in: int = 0

    def snapshot(self) -> PlaneSnapshot:
        totals = PlaneTotals(bytes_out=self.out, bytes_in=self.into)
        peer = PeerSnapshot(peer=7, packets_in=0, bytes_in=0, packets_out=0, bytes_out=0, last_heard=12.5)
        return PlaneSnapshot(totals=totals, peers=(peer,), producers=(), consumers=())

    def hidden(self, snapshot: PlaneSnapshot) -> tuple[int, int]:
        assert snapshot.totals.bytes_out == self.out, "both of one moment"
        return self.probe_in, self.probe_out


@contextmanager
def reporting(media: object, probe: object, *, clock: Callable[[], float], hub: object = None) -> Iterator[Reporting]:
    machine = DrainMachine(DrainBounds(), rng=random.Random(1))
    nobody = SimpleNamespace(consumers=0, rooms={}, players={}, producers={})
    made = Reporting(
        SfuConfig(machine_cpu=False),
        ws_port=7101,
        media=cast(PortMedia, media),
        hub=cast(Hub, hub or nobody),
        machine=machine,
        probe=cast(Probe, probe),
        metrics=SfuMetrics(CollectorRegistry(), version="1"),
        clock=clock,
    )
    yield made
    made.stop()


async def test_bytes_of_the_probe_are_neither_egress_nor_ingress() -> None:
    now = 0.0
    counters = Counters(out=5000, into=4000, probe_out=5000, probe_in=4000)
    media = SimpleNamespace(plane=counters, heard={})
    with reporting(media, counters, clock=lambda: now) as it:
        it.sample()
        now = 2.0
        counters.out, counters.probe_out = counters.out + 1_000 + 300, counters.probe_out + 300
        counters.into, counters.probe_in = counters.into + 2_000 + 70, counters.probe_in + 70
        it.sample()
        parts = it.refresh().load_parts
    assert (parts.egress_bps, parts.ingress_bps) == (4_000, 8_000)
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
        with reporting(PortMedia(port, candidates=()), probe, clock=lambda: now) as it:
            it.sample()
            await probe.call(port.address)
            now = 1.0
            it.sample()
            parts = it.refresh().load_parts
        totals = port.plane.snapshot().totals
    finally:
        port.close()
    assert min(totals.bytes_in, totals.bytes_out) > 0
    assert (parts.egress_bps, parts.ingress_bps) == (0.0, 0.0)


async def test_rates_are_unknown_in_the_first_report_and_what_is_here_is_not() -> None:
    hub = SimpleNamespace(consumers=5, rooms={"r": 1}, players=dict.fromkeys("ab"), producers=dict.fromkeys("cde"))
    with reporting(SimpleNamespace(plane=Counters(), heard={}), Counters(), clock=lambda: 0.0, hub=hub) as it:
        it.sample()
        state = it.refresh()
    parts = state.load_parts
    assert (state.load, parts.egress_bps, parts.ingress_bps, parts.cpu) == (None, None, None, None)
    assert (parts.streams, parts.rooms, parts.clients, parts.tracks) == (5, 1, 2, 3)
    assert (state.players, state.producers, state.consumers) == (2, 3, 5)
