"""The probe call (A5): through an announced address and port, with checks, DTLS and a packet that the plane forwards.

It is no session: no player, no room, nothing that a drain waits for. Its bytes are counted apart, so that they are not
part of the load.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

from sfu.core.load.warm_up import ProbeFailed, ProbeFailure, ProbeTrack
from sfu.plane.api import Address, PlaneSnapshot
from sfu.shell.peer import PeerTransport
from sfu.shell.probe_end import ProbeEnd
from sfu.shell.udp import MediaPort

SEND_EVERY_S = 0.02
FORWARDED_WITHIN_S = 3.0


class _Leg:
    """One connection of the call, both of its ends."""

    def __init__(self, port: MediaPort, *, on_packet: Callable[[bytes], None]) -> None:
        self.far = ProbeEnd(on_packet=on_packet)
        self.near = PeerTransport(port, on_connected=lambda: None, on_ended=lambda end, detail: None)

    async def connect(self, address: Address, *, tcp: bool) -> None:
        self.near.start([self.far.certificate.fingerprint], "active")
        await self.far.connect(address, self.near.credentials, self.near.fingerprint, tcp=tcp)

    async def close(self) -> None:
        # The near end first: or the far end's goodbye would be counted as the end of a peer connection.
        await self.near.close()
        await self.far.close()


class Probe:
    """Makes the calls of one SFU."""

    def __init__(self, port: MediaPort, *, next_id: Callable[[], int], rng: random.Random) -> None:
        """`next_id` names producers and consumers in the plane."""
        self._port = port
        self._next_id = next_id
        self._rng = rng
        self._peers: set[int] = set()
        self._closed_in = self._closed_out = 0

    async def call(self, address: Address, *, tcp: bool = False) -> None:
        """One call; returns when the packet has come back. Raises `ProbeFailed` after 20 s at the latest."""
        track = ProbeTrack.draw(producer=self._next_id(), consumer=self._next_id(), rng=self._rng)
        came_back = asyncio.Event()

        def arrived(packet: bytes) -> None:
            if track.is_forwarded(packet):
                came_back.set()

        publisher = _Leg(self._port, on_packet=lambda packet: None)
        subscriber = _Leg(self._port, on_packet=arrived)
        self._peers |= {publisher.near.peer, subscriber.near.peer}
        try:
            await publisher.connect(address, tcp=tcp)
            await subscriber.connect(address, tcp=tcp)
            await self._forward(track, publisher, subscriber, came_back)
        finally:
            self._put_aside(publisher.near.peer, subscriber.near.peer)
            await asyncio.gather(publisher.close(), subscriber.close())

    def hidden(self, snapshot: PlaneSnapshot) -> tuple[int, int]:
        """Bytes that calls have received and sent so far, those in progress as of this snapshot."""
        live = [peer for peer in snapshot.peers if peer.peer in self._peers]
        return (
            self._closed_in + sum(peer.bytes_in for peer in live),
            self._closed_out + sum(peer.bytes_out for peer in live),
        )

    async def _forward(self, track: ProbeTrack, publisher: _Leg, subscriber: _Leg, came_back: asyncio.Event) -> None:
        plane, now = self._port.plane, self._port.now
        plane.produce(track.produced_by(publisher.near.peer), now=now)
        plane.consume(track.consumed_by(subscriber.near.peer), now=now)
        # More than one: the first may overtake the keys on their way to the plane.
        for number in range(round(FORWARDED_WITHIN_S / SEND_EVERY_S)):
            publisher.far.send(track.packet(number))
            try:
                await asyncio.wait_for(came_back.wait(), SEND_EVERY_S)
            except TimeoutError:
                continue
            return
        raise ProbeFailed(ProbeFailure.NOT_FORWARDED, f"not within {FORWARDED_WITHIN_S:g} s")

    def _put_aside(self, *peers: int) -> None:
        """Keep their byte counts before the plane forgets them."""
        for peer in self._port.plane.snapshot().peers:
            if peer.peer in peers:
                self._closed_in += peer.bytes_in
                self._closed_out += peer.bytes_out
        self._peers -= set(peers)
