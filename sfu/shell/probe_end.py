"""One end of a probe call, from the player's side: checks as ICE sends them, DTLS as client, SRTP."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import cast

from sfu.core.ice_lite import IceCredentials
from sfu.core.load.warm_up import ProbeFailed, ProbeFailure
from sfu.plane.api import Address
from shared.errors import BadPacket
from shared.rtc.demux import Traffic, classify, is_rtcp
from shared.rtc.dtls import Certificate, DtlsFailed, DtlsTransport, Fingerprint
from shared.rtc.framing import Deframer, framed
from shared.rtc.srtp import SrtpSession
from shared.rtc.stun import binding_request, parse_response

CHECK_EVERY_S = 0.25
ANSWER_WITHIN_S = 3.0
"""A container's port map answers within a millisecond."""
HANDSHAKE_WITHIN_S = 5.0


class _Framed(asyncio.Protocol):
    """Stands in for a datagram transport, over a TCP connection."""

    def __init__(self, end: ProbeEnd, address: Address) -> None:
        self._end = end
        self._address = address
        self._deframer = Deframer()
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            datagrams = self._deframer.feed(data)
        except BadPacket:
            self.close()  # not ours
            return
        for datagram in datagrams:
            self._end.datagram_received(datagram, self._address)

    def sendto(self, datagram: bytes) -> None:
        if self._transport is not None:
            self._transport.write(framed(datagram))

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


class ProbeEnd(asyncio.DatagramProtocol):
    """`connect`, then `send`; what comes back goes to `on_packet`, decrypted. `close` at the end."""

    def __init__(self, *, on_packet: Callable[[bytes], None]) -> None:
        self.certificate = Certificate.generateCertificate()
        """One for each call: an association is known by it."""
        self._on_packet = on_packet
        self._transport: asyncio.DatagramTransport | _Framed | None = None
        self._pwd = ""
        self._answered = asyncio.Event()
        self._srtp: SrtpSession | None = None
        self._dtls = DtlsTransport(send=self._send, role="client", certificate=self.certificate, on_closed=lambda: None)

    async def connect(
        self, address: Address, credentials: IceCredentials, fingerprint: Fingerprint, *, tcp: bool = False
    ) -> None:
        """Reach the end that answers there with these credentials and shake hands with it. Raises `ProbeFailed`."""
        self._pwd = credentials.pwd
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._open(address, tcp=tcp)
        except (OSError, TimeoutError) as error:
            raise ProbeFailed(ProbeFailure.ADDRESS, str(error) or "no connection") from None
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._check(credentials)
        except TimeoutError:
            raise ProbeFailed(ProbeFailure.NO_ANSWER, f"not within {ANSWER_WITHIN_S:g} s") from None
        try:
            keys = await self._dtls.handshake([fingerprint], timeout_s=HANDSHAKE_WITHIN_S)
        except DtlsFailed as error:
            raise ProbeFailed(ProbeFailure.DTLS, error.sentence()) from None
        self._srtp = SrtpSession(keys)

    async def _open(self, address: Address, *, tcp: bool) -> None:
        loop = asyncio.get_running_loop()
        if tcp:
            _, self._transport = await loop.create_connection(lambda: _Framed(self, address), *address[:2])
        else:
            self._transport, _ = await loop.create_datagram_endpoint(lambda: self, remote_addr=address[:2])

    async def _check(self, credentials: IceCredentials) -> None:
        while not self._answered.is_set():
            self._send(
                binding_request(
                    remote_ufrag=credentials.ufrag, local_ufrag="self", remote_password=credentials.pwd,
                    tie_breaker=secrets.randbits(64),
                )
            )  # fmt: skip
            try:
                await asyncio.wait_for(self._answered.wait(), CHECK_EVERY_S)
            except TimeoutError:
                continue

    def send(self, packet: bytes) -> None:
        """Send an RTP packet as a publisher would."""
        assert self._srtp is not None, "not connected"
        self._send(self._srtp.protect(packet))

    async def close(self) -> None:
        """End without a word to the other side, which is closed by its owner. Safe at any moment and twice."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.close()
        await self._dtls.close()

    def _send(self, datagram: bytes) -> None:
        if self._transport is not None:
            self._transport.sendto(datagram)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        kind = classify(data)
        try:
            if kind is Traffic.STUN:
                parse_response(data, remote_password=self._pwd)
                self._answered.set()
            elif kind is Traffic.DTLS:
                self._dtls.feed(data)
            elif kind is Traffic.MEDIA and self._srtp is not None and not is_rtcp(data):
                self._on_packet(self._srtp.unprotect(data))
        except BadPacket:
            return  # not ours: something else answers on that address, which proves nothing
