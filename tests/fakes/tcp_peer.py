"""A client peer as `RtcPeer`, over one TCP connection."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from shared.rtc.dtls import PREFERRED_PROFILES
from shared.rtc.framing import Deframer, framed
from shared.rtc.srtp import SrtpProfile
from tests.fakes.rtc_peer import Address, RtcPeer


class _Framed(asyncio.Protocol):
    """What `RtcPeer` has for a datagram transport."""

    def __init__(self, peer: TcpPeer) -> None:
        self.peer = peer
        self.deframer = Deframer()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for datagram in self.deframer.feed(data):
            self.peer.datagram_received(datagram, self.peer.server)

    def connection_lost(self, exc: Exception | None) -> None:
        self.peer.cut_off.set()

    def sendto(self, datagram: bytes, server: Address) -> None:
        assert self.transport is not None
        self.transport.write(framed(datagram))

    def is_closing(self) -> bool:
        return self.transport is None or self.transport.is_closing()

    def close(self) -> None:
        assert self.transport is not None
        self.transport.close()

    def get_extra_info(self, name: str) -> Any:
        assert self.transport is not None
        return self.transport.get_extra_info(name)


class TcpPeer(RtcPeer):
    """`cut_off` is set when the other side has closed the connection."""

    def __init__(self, server: Address, profiles: tuple[SrtpProfile, ...]) -> None:
        super().__init__(server, profiles)
        self.cut_off = asyncio.Event()

    @classmethod
    async def open(cls, server: Address, *, profiles: tuple[SrtpProfile, ...] = PREFERRED_PROFILES) -> TcpPeer:
        peer = cls(server, profiles)
        _, pipe = await asyncio.get_running_loop().create_connection(lambda: _Framed(peer), *server)
        peer.transport = cast(asyncio.DatagramTransport, pipe)
        return peer

    @property
    def pipe(self) -> asyncio.Transport:
        """The TCP connection itself."""
        assert isinstance(self.transport, _Framed)
        assert self.transport.transport is not None
        return self.transport.transport
