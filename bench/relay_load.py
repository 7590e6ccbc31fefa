"""The loading half of `sluice bench relay`: publishers and subscribers on one socket, each with an address of its own.

A subscriber is 127.0.x.y by IP_PKTINFO, with its own ICE credentials, DTLS association and SRTP keys.
"""

from __future__ import annotations

import asyncio
import itertools
import random
import socket
import struct
import threading
from typing import Any

from bench.sink import Sink
from shared.rtc import rtp, stun
from shared.rtc.demux import Traffic, classify, is_rtcp
from shared.rtc.dtls import DtlsTransport, Fingerprint, process_certificate
from shared.rtc.srtp import SrtpProfile, SrtpSession

FIRST_HOST = (127 << 24) + (1 << 16) + 1
"""127.1.0.1: the first subscriber's address; the publishers' come after the last one."""

CHECK_EVERY_S = 4.0
IP_PKTINFO = 8
_BUFFER_BYTES = 32 * 1024 * 1024


class Client:
    """One peer of the node."""

    def __init__(self, load: Load, host: int, profiles: tuple[SrtpProfile, ...]) -> None:
        self.load = load
        self.host = host
        self.peer = 0
        self.session: SrtpSession | None = None
        self.received: list[bytes] = []
        self.remote = ("", "")
        self.answered = asyncio.Event()
        self._control = [(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("!iII", 0, host, 0))]
        self.dtls = DtlsTransport(send=self.send, role="client", certificate=process_certificate(), profiles=profiles)

    @property
    def dtls_fingerprint(self) -> Fingerprint:
        return process_certificate().fingerprint

    def send(self, datagram: bytes) -> None:
        self.load.sock.sendmsg([datagram], self._control, 0, self.load.server)

    def check(self) -> None:
        """A connectivity check, which is consent too."""
        ufrag, pwd = self.remote
        self.send(
            stun.binding_request(
                remote_ufrag=ufrag, local_ufrag="load", remote_password=pwd, tie_breaker=random.getrandbits(64)
            )
        )

    async def connect(self, answer: dict[str, Any]) -> None:
        self.peer = answer["peer"]
        self.remote = (answer["ufrag"], answer["pwd"])
        async with asyncio.timeout(30):
            while not self.answered.is_set():
                self.check()
                await asyncio.wait([asyncio.ensure_future(self.answered.wait())], timeout=0.5)
        keys = await self.dtls.handshake([Fingerprint(*answer["fingerprint"])], timeout_s=30)
        self.session = SrtpSession(keys)

    def take(self, datagram: bytes) -> None:
        match classify(datagram):
            case Traffic.DTLS:
                self.dtls.feed(datagram)
            case Traffic.STUN:
                self.answered.set()
            case Traffic.MEDIA if self.session is not None and not is_rtcp(datagram):
                self.received.append(self.session.unprotect(datagram))
            case _:
                pass


class Load:
    """All clients of one run, and the thread that receives for them."""

    def __init__(self, server: tuple[str, int], *, hosts: int, watched: int) -> None:
        self.server = server
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF, 33):  # 33: SO_RCVBUFFORCE, for those who may
            try:
                self.sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
            except PermissionError:
                continue
        self.sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        self.sock.setblocking(False)
        self.sock.bind(("0.0.0.0", 0))
        self.clients: dict[int, Client] = {}
        self.sink = Sink(self.sock.fileno(), FIRST_HOST, hosts, watched)
        self._loop = asyncio.get_running_loop()
        self._stopping = False
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()

    def client(self, number: int, profiles: tuple[SrtpProfile, ...]) -> Client:
        host = FIRST_HOST + number
        client = self.clients[host] = Client(self, host, profiles)
        return client

    async def keep_consent(self) -> None:
        """Check for all, spread over the interval."""
        for client in itertools.cycle(list(self.clients.values())):
            client.check()
            await asyncio.sleep(CHECK_EVERY_S / len(self.clients))

    def close(self) -> None:
        self._stopping = True
        self._thread.join()
        self.sock.close()

    def _receive(self) -> None:
        while not self._stopping:
            raws = self.sink.poll(0.2)
            if raws:
                self._loop.call_soon_threadsafe(self._take, raws)

    def _take(self, raws: list[tuple[int, bytes]]) -> None:
        for host, datagram in raws:
            if (client := self.clients.get(host)) is not None:
                client.take(datagram)


class Track:
    """What a publisher sends on one SSRC."""

    def __init__(self, *, ssrc: int, mid: str, payload_type: int, ticks: int) -> None:
        self.ssrc, self.mid, self.payload_type, self.ticks = ssrc, mid, payload_type, ticks
        self.sequence = random.randrange(0x4000)
        self.timestamp = random.getrandbits(32)
        self.sent = 0

    def packets(self, payloads: list[bytes]) -> list[bytes]:
        """The packets of the next frame."""
        packets = []
        for number, payload in enumerate(payloads):
            packets.append(
                rtp.build(
                    payload_type=self.payload_type,
                    sequence=self.sequence & 0xFFFF,
                    timestamp=self.timestamp & 0xFFFFFFFF,
                    ssrc=self.ssrc,
                    payload=payload,
                    marker=number == len(payloads) - 1,
                    extension_elements=((2, bytes(3)), (4, self.mid.encode())),
                )
            )
            self.sequence += 1
            self.sent += 1
        self.timestamp += self.ticks
        return packets
