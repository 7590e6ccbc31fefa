"""The probe call over real UDP (A5): what it proves, what it says when it fails, and that it leaves nothing behind."""

from __future__ import annotations

import asyncio
import random
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from sfu.core.ice_lite import IceCredentials, IceLite
from sfu.core.load.warm_up import ComingUp, ProbeFailed, ProbeFailure, ProbeTrack
from sfu.plane.api import Address, Event
from sfu.plane.choice import PlaneKind, make_plane
from sfu.shell import probe as probe_module
from sfu.shell import probe_end, warm_up
from sfu.shell.metrics import SfuMetrics
from sfu.shell.probe import Probe
from sfu.shell.udp import MediaPort
from sfu.shell.warm_up import WarmUp
from shared.rtc import stun
from tests.fakes.rtc_peer import until


class Rig:
    """A media port and what it was told."""

    def __init__(self, kind: PlaneKind) -> None:
        self.events: list[Event] = []
        self.port = MediaPort.open(
            "127.0.0.1", 0, on_events=self.events.extend, make_plane=lambda send: make_plane(send, kind=kind, gso=True)
        )
        self._ids = 0
        self.probe = Probe(self.port, next_id=self.next_id, rng=random.Random(3))

    def next_id(self) -> int:
        self._ids += 1
        return self._ids

    def check_nothing_left(self) -> None:
        snapshot = self.port.plane.snapshot()
        assert (snapshot.peers, snapshot.producers, snapshot.consumers) == ((), (), ())
        assert self.port.ends == {}
        assert self.port.drops == {}
        assert self.probe.hidden(snapshot) == (snapshot.totals.bytes_in, snapshot.totals.bytes_out)


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may stall for seconds; tests of what fails give less."""
    monkeypatch.setattr(probe_end, "ANSWER_WITHIN_S", 30.0)
    monkeypatch.setattr(probe_end, "HANDSHAKE_WITHIN_S", 30.0)
    monkeypatch.setattr(probe_module, "FORWARDED_WITHIN_S", 30.0)


@pytest.fixture(params=[PlaneKind.COMPILED, PlaneKind.REFERENCE])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    rig = Rig(request.param)
    yield rig
    rig.port.close()


class PortMap(asyncio.DatagramProtocol):
    """A container's port map: another port, behind which every source gets an address of its own."""

    def __init__(self, target: Address) -> None:
        self._target = target
        self._ways: dict[Address, asyncio.DatagramTransport] = {}
        self._pending: dict[Address, list[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.passed = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.passed += 1
        if addr in self._ways:
            self._ways[addr].sendto(data)
            return
        self._pending.setdefault(addr, []).append(data)
        if len(self._pending[addr]) == 1:
            task = asyncio.create_task(self._open(addr))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _open(self, addr: Address) -> None:
        outer = self.transport

        class Back(asyncio.DatagramProtocol):
            def datagram_received(self, data: bytes, _: Address) -> None:
                outer.sendto(data, addr)

        loop = asyncio.get_running_loop()
        self._ways[addr], _ = await loop.create_datagram_endpoint(Back, remote_addr=self._target)
        for data in self._pending.pop(addr):
            self._ways[addr].sendto(data)

    def close(self) -> None:
        for way in (self.transport, *self._ways.values()):
            way.close()


async def test_a_call_goes_through_the_real_plane_and_leaves_nothing_behind(rig: Rig) -> None:
    await rig.probe.call(rig.port.address)
    assert rig.port.plane.snapshot().totals.forwarded > 0
    await asyncio.sleep(0)
    rig.check_nothing_left()


async def test_a_call_goes_through_a_port_map(rig: Rig) -> None:
    loop = asyncio.get_running_loop()
    _, port_map = await loop.create_datagram_endpoint(lambda: PortMap(rig.port.address), local_addr=("127.0.0.1", 0))
    try:
        await rig.probe.call(port_map.transport.get_extra_info("sockname"))
        assert port_map.passed > 0
    finally:
        port_map.close()
    rig.check_nothing_left()


async def test_bytes_of_a_call_in_progress_are_told_apart_too(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    original = Probe._put_aside

    def look(self: Probe, *peers: int) -> None:
        snapshot = rig.port.plane.snapshot()
        seen.append((self.hidden(snapshot), (snapshot.totals.bytes_in, snapshot.totals.bytes_out)))
        original(self, *peers)

    monkeypatch.setattr(Probe, "_put_aside", look)
    await rig.probe.call(rig.port.address)
    ((hidden, totals),) = seen
    assert hidden == totals
    assert min(totals) > 0


async def test_silence_is_no_answer(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_end, "ANSWER_WITHIN_S", 0.3)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as deaf:
        deaf.bind(("127.0.0.1", 0))
        with pytest.raises(ProbeFailed) as failed:
            await rig.probe.call(deaf.getsockname())
    assert failed.value.failure is ProbeFailure.NO_ANSWER
    rig.check_nothing_left()


async def test_another_ones_answer_is_none(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The port map leads to another program that answers checks with a password of its own."""
    monkeypatch.setattr(probe_end, "ANSWER_WITHIN_S", 0.3)

    class Other(asyncio.DatagramProtocol):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            self.transport = cast(asyncio.DatagramTransport, transport)

        def datagram_received(self, data: bytes, addr: Address) -> None:
            ice = IceLite()
            ufrag = data[data.index(b":self") - 8 : data.index(b":self")].decode()
            ice.register(1, IceCredentials(ufrag, "p" * 24), now=0)
            check = stun.parse_check(data)
            self.transport.sendto(stun.binding_response(check, source=addr, password="p" * 24), addr)

    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Other, local_addr=("127.0.0.1", 0))
    try:
        with pytest.raises(ProbeFailed) as failed:
            await rig.probe.call(transport.get_extra_info("sockname"))
    finally:
        transport.close()
    assert failed.value.failure is ProbeFailure.NO_ANSWER


async def test_an_address_that_cant_be_sent_to_says_so(rig: Rig) -> None:
    with pytest.raises(ProbeFailed) as failed:
        await rig.probe.call(("255.255.255.255", 9))
    assert failed.value.failure is ProbeFailure.ADDRESS
    rig.check_nothing_left()


async def test_a_plane_that_does_not_forward_is_found_out(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe_module, "FORWARDED_WITHIN_S", 0.2)
    consumed_by = ProbeTrack.consumed_by
    # The plane drops packets of another codec than the consumer's.
    monkeypatch.setattr(ProbeTrack, "consumed_by", lambda self, peer: replace(consumed_by(self, peer), codec="VP8"))
    with pytest.raises(ProbeFailed) as failed:
        await rig.probe.call(rig.port.address)
    assert failed.value.failure is ProbeFailure.NOT_FORWARDED
    assert rig.port.plane.snapshot().totals.bytes_in > 0
    rig.check_nothing_left()


class Calls:
    """A probe whose calls end as they are told."""

    def __init__(self, *outcomes: Exception | None) -> None:
        self.outcomes = list(outcomes)
        self.called: list[Address] = []

    async def call(self, address: Address) -> None:
        self.called.append(address)
        outcome = self.outcomes.pop(0)
        if outcome is not None:
            raise outcome


def warming(calls: Calls, *addresses: Address) -> tuple[WarmUp, ComingUp, list[Address], CollectorRegistry]:
    registry, proved, coming_up = CollectorRegistry(), [], ComingUp()
    warm = WarmUp(
        calls,  # type: ignore[arg-type]
        addresses,
        coming_up,
        metrics=SfuMetrics(registry, version="1"),
        rng=random.Random(1),
        on_proved=proved.append,
    )
    return warm, coming_up, proved, registry


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "retry_delay_s", lambda attempt, *, rng: 0.0)


ONE, TWO = ("192.0.2.1", 7101), ("192.0.2.2", 7101)


@pytest.mark.usefixtures("at_once")
async def test_it_calls_again_for_as_long_as_it_fails_and_says_why(caplog: pytest.LogCaptureFixture) -> None:
    no_answer = ProbeFailed(ProbeFailure.NO_ANSWER)
    calls = Calls(no_answer, no_answer, ProbeFailed(ProbeFailure.DTLS), RuntimeError("a fault of ours"), None)
    warm, coming_up, proved, registry = warming(calls, ONE)
    await asyncio.wait_for(warm.run(), 30)
    assert (proved, warm.reachable, coming_up.probe_failure) == ([ONE], True, "")
    failures = {
        reason: registry.get_sample_value("sluice_sfu_probe_failures_total", {"reason": reason})
        for reason in ("no-answer", "dtls", "internal")
    }
    assert failures == {"no-answer": 2.0, "dtls": 1.0, "internal": 1.0}
    assert sum("UNREACHABLE: 192.0.2.1:7101" in r.message and r.levelname == "ERROR" for r in caplog.records) == 3


async def test_one_address_that_carries_calls_is_proof_and_the_other_is_called_again() -> None:
    calls = Calls(None, ProbeFailed(ProbeFailure.NO_ANSWER), None)
    warm, coming_up, proved, _ = warming(calls, ONE, TWO)
    running = asyncio.create_task(warm.run())
    await until(lambda: warm.reachable is not None)
    assert (proved, warm.reachable, coming_up.probe_failure) == ([ONE], False, "no-answer")
    await asyncio.wait_for(running, 30)
    assert (proved, warm.reachable) == ([ONE, TWO], True)
    assert calls.called == [ONE, TWO, TWO]
