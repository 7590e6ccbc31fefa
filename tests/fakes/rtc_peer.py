"""A client peer in the test's own process: STUN, DTLS client and SRTP over a real UDP socket."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import cast

from shared.errors import BadPacket
from shared.rtc import rtcp, rtp, stun
from shared.rtc.demux import Traffic, classify, is_rtcp
from shared.rtc.dtls import PREFERRED_PROFILES, Certificate, DtlsTransport, Fingerprint
from shared.rtc.srtp import SrtpProfile, SrtpSession

Address = tuple[str, int]


class RtcPeer(asyncio.DatagramProtocol):
    """Use `await RtcPeer.open(...)`, `await connect(...)`, then `send_rtp` and look at `received`."""

    def __init__(self, server: Address, profiles: tuple[SrtpProfile, ...]) -> None:
        self.server = server
        self.certificate = Certificate.generateCertificate()
        self.ufrag = f"u{random.getrandbits(32):08x}"
        self.received: list[bytes] = []
        self.feedback: list[rtcp.RtcpPacket] = []
        self.stun_answers = 0
        self.datagrams = 0
        """Of all kinds."""
        self.from_elsewhere = 0
        """Datagrams from another address than the one that was asked: no ICE agent takes them."""
        self.transport: asyncio.DatagramTransport | None = None
        self.session: SrtpSession | None = None
        self.profile: SrtpProfile | None = None
        self.closed_by_sfu = False
        self.deaf_to_dtls = False
        self._profiles = profiles
        self.use_certificate(self.certificate)
        self._remote_password = ""
        self._answered = asyncio.Event()

    @classmethod
    async def open(cls, server: Address, *, profiles: tuple[SrtpProfile, ...] = PREFERRED_PROFILES) -> RtcPeer:
        loop = asyncio.get_running_loop()
        local = "::1" if ":" in server[0] else "127.0.0.1"
        _, peer = await loop.create_datagram_endpoint(lambda: cls(server, profiles), local_addr=(local, 0))
        return peer

    def use_certificate(self, certificate: Certificate) -> None:
        """Before `connect`: that of another connection."""
        self.certificate = certificate
        self.dtls = DtlsTransport(
            send=self.send_raw, role="client", certificate=certificate, profiles=self._profiles, on_closed=self._closed
        )

    @property
    def fingerprint(self) -> Fingerprint:
        return self.certificate.fingerprint

    @property
    def address(self) -> Address:
        assert self.transport is not None
        host, port = self.transport.get_extra_info("sockname")[:2]
        return host, port

    async def connect(self, ufrag: str, password: str, fingerprint: Fingerprint, *, timeout_s: float = 20.0) -> None:
        await self.check(ufrag, password)
        keys = await self.dtls.handshake([fingerprint], timeout_s=timeout_s)
        self.profile = keys.profile
        self.session = SrtpSession(keys)

    async def check(self, ufrag: str, password: str, *, nominate: bool = True) -> None:
        """Send connectivity checks until one is answered; `TimeoutError` when none is."""
        self._remote_password = password
        self._answered.clear()
        for _ in range(40):
            self.send_raw(self.request(ufrag, password, nominate=nominate))
            try:
                await asyncio.wait_for(self._answered.wait(), 0.5)
            except TimeoutError:
                continue
            return
        raise TimeoutError("no connectivity check was answered")

    def request(self, ufrag: str, password: str, *, nominate: bool = True) -> bytes:
        return stun.binding_request(
            remote_ufrag=ufrag, local_ufrag=self.ufrag, remote_password=password, tie_breaker=random.getrandbits(64),
            use_candidate=nominate,
        )  # fmt: skip

    def send_raw(self, datagram: bytes) -> None:
        if self.transport is not None and not self.transport.is_closing():
            self.transport.sendto(datagram, self.server)

    def send_rtp(self, packet: bytes) -> None:
        assert self.session is not None
        self.send_raw(self.session.protect(packet))

    def send_rtcp(self, compound: bytes) -> None:
        assert self.session is not None
        self.send_raw(self.session.protect_rtcp(compound))

    def headers(self) -> list[rtp.RtpHeader]:
        return [rtp.parse(packet) for packet in self.received]

    def payloads(self) -> list[bytes]:
        return [
            packet[header.payload_start : header.payload_end]
            for packet, header in zip(self.received, self.headers(), strict=True)
        ]

    async def close(self) -> None:
        await self.dtls.close()
        if self.transport is not None:
            self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # No isinstance: Python 3.11's own datagram transport is not declared as a DatagramTransport.
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: Address) -> None:
        self.datagrams += 1
        if addr[:2] != self.server:
            self.from_elsewhere += 1
            return
        match classify(data):
            case Traffic.DTLS:
                if not self.deaf_to_dtls:
                    self.dtls.feed(data)
            case Traffic.STUN:
                self.stun_answers += 1
                try:
                    stun.parse_response(data, remote_password=self._remote_password)
                except BadPacket:
                    return
                self._answered.set()
            case Traffic.MEDIA if self.session is not None:
                if is_rtcp(data):
                    self.feedback.extend(rtcp.parse(self.session.unprotect_rtcp(data)))
                else:
                    self.received.append(self.session.unprotect(data))
            case _:
                pass

    def _closed(self) -> None:
        self.closed_by_sfu = True


async def until(condition: Callable[[], bool], *, within_s: float = 20.0) -> None:
    """Wait for a condition; fails the test when it does not come true."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110 - any condition will do, not only an event
            await asyncio.sleep(0.005)
