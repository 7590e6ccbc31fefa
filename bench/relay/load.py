"""The loading half of `sluice bench relay`: publishers and subscribers on one socket, each with an address of its own.

A client is 127.1.x.y by IP_PKTINFO, with its own ICE credentials, DTLS association and SRTP keys. Python shakes hands;
the compiled generator sends, receives and counts.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
from collections.abc import Iterable, Mapping

from bench.generator.compiled import Generator
from bench.relay.peers import LOCAL_PWD, LOCAL_UFRAG, Address, OfferedTrack, TransportAnswer
from bench.relay.workloads import TrackMedia
from shared.errors import BadPacket
from shared.rtc import stun, stun_check
from shared.rtc.demux import Traffic, classify, is_rtcp
from shared.rtc.dtls import DtlsTransport, Fingerprint, process_certificate
from shared.rtc.srtp import SrtpKeys, SrtpProfile, SrtpSession

FIRST_HOST = (127 << 24) + (1 << 16) + 1
"""127.1.0.1: the first subscriber's address; the publishers' come after the last one."""

CHECK_EVERY_S = 4.0
JOIN_WITHIN_S = 60.0
IP_PKTINFO = 8
_BUFFER_BYTES = 32 * 1024 * 1024
_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33


class LoadClient:
    """One peer of the media server."""

    def __init__(self, load: RelayLoad, host: int, profiles: tuple[SrtpProfile, ...]) -> None:
        self.load = load
        self.host = host
        self.keys: SrtpKeys | None = None
        self.received: list[bytes] = []
        """Decrypted packets, of the watched ones."""
        self.refused = 0
        """Packets that could not be decrypted, of the watched ones."""
        self.remote: TransportAnswer | None = None
        self.answered = asyncio.Event()
        self._session: SrtpSession | None = None
        self._control = [(socket.IPPROTO_IP, IP_PKTINFO, struct.pack("!iII", 0, host, 0))]
        self.dtls = DtlsTransport(send=self.send, role="client", certificate=process_certificate(), profiles=profiles)

    @property
    def dtls_fingerprint(self) -> Fingerprint:
        return process_certificate().fingerprint

    def send(self, datagram: bytes) -> None:
        """A full buffer is the network's business."""
        if self.remote is not None:
            with contextlib.suppress(BlockingIOError):
                self.load.sock.sendmsg([datagram], self._control, 0, self.remote.address)

    def check(self) -> None:
        """A connectivity check, which is consent too."""
        assert self.remote is not None
        self.send(
            stun.binding_request(
                remote_ufrag=self.remote.ufrag,
                local_ufrag=LOCAL_UFRAG,
                remote_password=self.remote.pwd,
                tie_breaker=self.host,
            )
        )

    async def connect(self, answer: TransportAnswer) -> None:
        """ICE, then DTLS. Raises `TimeoutError`, `DtlsFailed`."""
        self.remote = answer
        async with asyncio.timeout(JOIN_WITHIN_S):
            while not self.answered.is_set():
                self.check()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self.answered.wait(), 0.5)
        self.keys = await self.dtls.handshake([answer.fingerprint], timeout_s=JOIN_WITHIN_S)
        self._session = SrtpSession(self.keys)

    async def close(self) -> None:
        """Say goodbye; its address hears nothing more."""
        self.load.clients.pop(self.host, None)
        await self.dtls.close()

    def take(self, datagram: bytes) -> None:
        match classify(datagram):
            case Traffic.DTLS:
                self.dtls.feed(datagram)
            case Traffic.STUN:
                self._take_stun(datagram)
            case Traffic.MEDIA if self._session is not None and not is_rtcp(datagram):
                try:
                    self.received.append(self._session.unprotect(datagram))
                except BadPacket:
                    self.refused += 1
            case _:
                pass

    def _take_stun(self, datagram: bytes) -> None:
        """An answer to our own check; or a check of a server that waits for an answer to go on."""
        try:
            check = stun_check.parse_check(datagram)
        except BadPacket:
            self.answered.set()
            return
        if self.remote is not None:
            self.send(stun_check.binding_response(check, source=self.remote.address, password=LOCAL_PWD))


class RelayLoad:
    """All clients of one run, and the thread that sends and receives for them."""

    def __init__(self, *, hosts: int, watched: int, gso: bool = False, gro: bool = False) -> None:
        """`hosts` is the most subscribers there will be; their numbers are below it, publishers' are not."""
        self.hosts = hosts
        self.sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for option in (socket.SO_RCVBUF, socket.SO_SNDBUF, _SO_SNDBUFFORCE, _SO_RCVBUFFORCE):
            # The last two are for those who may.
            with contextlib.suppress(PermissionError):
                self.sock.setsockopt(socket.SOL_SOCKET, option, _BUFFER_BYTES)
        self.sock.setsockopt(socket.IPPROTO_IP, IP_PKTINFO, 1)
        self.sock.setblocking(False)
        self.sock.bind(("0.0.0.0", 0))
        self.clients: dict[int, LoadClient] = {}
        self.generator = Generator(self.sock.fileno(), FIRST_HOST, hosts, watched, gso=gso, gro=gro)
        self._first_timestamps: dict[int, int] = {}
        self._consent: asyncio.Task[None] | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self.generator.event_fd, self._take)
        self._thread = threading.Thread(target=self.generator.run, name="generator", daemon=True)
        self._thread.start()

    @property
    def address(self) -> Address:
        """Where its clients are, apart from their own hosts."""
        host, port = self.sock.getsockname()
        return host, port

    def client(self, number: int, profiles: tuple[SrtpProfile, ...]) -> LoadClient:
        host = FIRST_HOST + number
        client = self.clients[host] = LoadClient(self, host, profiles)
        return client

    def publish(
        self, client: LoadClient, tracks: Iterable[tuple[OfferedTrack, TrackMedia, int]], rng: random.Random
    ) -> None:
        """Have a connected client send tracks, the first frame of each so many nanoseconds after `go`."""
        assert client.keys is not None
        assert client.remote is not None
        publisher = self.generator.add_publisher(client.host, client.remote.address, client.keys)
        for track, media, phase_ns in tracks:
            self._first_timestamps[track.ssrc] = self.generator.add_track(
                publisher,
                ssrc=track.ssrc,
                payload_type=track.payload_type,
                mid=track.mid,
                sequence=rng.randrange(0x4000),
                first_frame=rng.randrange(0x40000000 // media.ticks),
                interval_ns=media.interval_ns,
                phase_ns=phase_ns,
                frames=media.frames,
            )

    def expect(self, number: int, restarted: Mapping[int, int]) -> None:
        """Know a subscriber's streams by what the server said of them (`Answer.restarted`)."""
        for ssrc, published in restarted.items():
            self.generator.shift(number, ssrc, self._first_timestamps[published])

    def go(self) -> None:
        """Media flows from now on; consent of all who are and will be connected is kept."""
        self.generator.go()
        self._consent = self._consent or asyncio.create_task(self._keep_consent())

    async def close(self) -> None:
        if self._consent is not None:
            self._consent.cancel()
            await asyncio.gather(self._consent, return_exceptions=True)
        self._loop.remove_reader(self.generator.event_fd)
        self.generator.stop()
        await asyncio.to_thread(self._thread.join)
        self.sock.close()

    async def _keep_consent(self) -> None:
        """Check for all, spread over the interval."""
        while True:
            round_of = [client for client in self.clients.values() if client.keys is not None]
            for client in round_of:
                if client.host in self.clients:
                    client.check()
                await asyncio.sleep(CHECK_EVERY_S / len(round_of))
            await asyncio.sleep(0.05)

    def _take(self) -> None:
        for host, datagram in self.generator.datagrams():
            if (client := self.clients.get(host)) is not None:
                client.take(datagram)
