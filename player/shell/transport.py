"""One peer connection of a player without aiortc's machinery: a UDP socket, ICE checks, DTLS as client, SRTP."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import struct
import time
from collections.abc import Callable

from player.core.session_sdp import FarEnd, OwnEnd
from shared.errors import BadInput, BadPacket
from shared.patience import patient_timeout, stalled_s
from shared.rtc import sdp, stun
from shared.rtc.dtls import Certificate, DtlsFailed, DtlsTransport
from shared.rtc.srtp import SrtpSession

CHECK_EVERY_S = 2.5
"""Checks that keep consent, as browsers pace them."""
FIRST_CHECKS_S = 0.05
"""Between checks until the first answer (RFC 8445 section 14.2)."""
CONSENT_S = 15.0
"""Without an answer for this long the path is gone; RFC 7675 says 30."""
HEARD_S = 6.0
"""Without an answer for this long, two checks went unanswered: nothing can be said to get through."""
CONNECT_S = 10.0
RECEIVE_BUFFER = 1 << 20
"""Socket buffer [bytes]: a second of stall at a full room's rate."""
BATCH = 64
"""Datagrams read in one go, before others get their turn."""
FRESH_S = 0.001
"""A datagram that waited less than this is taken for the last one: asking in vain costs as much as reading one."""
_SO_TIMESTAMPNS = 35
_TIMESPEC = struct.Struct("@ll")
_ANCILLARY = socket.CMSG_SPACE(_TIMESPEC.size)

MediaHandler = Callable[[bytes, float], None]


class TransportFailed(BadInput):
    """A peer connection did not come about; `code` says at which step."""

    def __init__(self, code: str, detail: str = "") -> None:
        super().__init__()
        self.code = code
        self.detail = detail

    def sentence(self) -> str:
        return f"media transport failed ({self.code}){': ' + self.detail if self.detail else ''}"


class MediaTransport:
    """Call `connect` once, then `send` and `send_rtcp`.

    `on_rtp` and `on_rtcp` get plain packets and when the kernel took them [monotonic seconds]; `on_closed` is told
    once, with a word, when the other side is gone.
    """

    def __init__(
        self,
        *,
        on_rtp: MediaHandler,
        on_rtcp: MediaHandler,
        on_closed: Callable[[str], None],
        again: MediaTransport | None = None,
    ) -> None:
        """`again`: the transport that this one replaces; to the SFU it is the same peer, which shakes hands again."""
        # One for each connection: by its fingerprint the SFU tells a new association from an old one (RFC 8842).
        self._certificate: Certificate = Certificate.generateCertificate() if again is None else again._certificate
        self.own: OwnEnd = _own_end(self._certificate) if again is None else again.own
        self.bytes_in = self.bytes_out = self.packets_in = self.packets_out = self.bad_packets = 0
        self._on_rtp = on_rtp
        self._on_rtcp = on_rtcp
        self._on_closed: Callable[[str], None] | None = on_closed
        self._socket: socket.socket | None = None
        self._srtp: SrtpSession | None = None
        self._dtls: DtlsTransport | None = None
        self._far: FarEnd | None = None
        self._answered = asyncio.Event()
        self._answered_at = 0.0
        self._asked: list[bytes] = []
        self._tie_breaker = secrets.randbits(64)
        self._consent: asyncio.Task[None] | None = None

    @property
    def connected(self) -> bool:
        """Media can be sent, as far as we know."""
        return self._srtp is not None and self._socket is not None

    @property
    def heard(self) -> bool:
        """It is connected, and the SFU answered a check lately."""
        return self.connected and time.monotonic() - self._answered_at < HEARD_S

    @property
    def far(self) -> FarEnd | None:
        """Where the SFU's media goes; None before it has said."""
        return self._far

    async def connect(self, far: FarEnd) -> None:
        """Reach the SFU. Raises `TransportFailed`; the transport is closed then."""
        self._far = far
        try:
            self._open_socket(far)
            async with patient_timeout(CONNECT_S):
                await self._first_answer()
                self._dtls = DtlsTransport(
                    send=self._send_raw,
                    role="client",
                    certificate=self._certificate,
                    on_closed=lambda: self._end("dtls-closed"),
                )
                proofs = [(proof.algorithm, proof.value) for proof in far.fingerprints]
                keys = await self._dtls.handshake(proofs, timeout_s=CONNECT_S)
        except TimeoutError:
            await self.close()
            raise TransportFailed("ice-timeout" if not self._answered.is_set() else "dtls-timeout") from None
        except DtlsFailed as error:
            await self.close()
            raise TransportFailed(error.code, error.detail) from None
        except OSError as error:
            await self.close()
            raise TransportFailed("socket", str(error)) from None
        self._srtp = SrtpSession(keys)
        self._consent = asyncio.create_task(self._keep_consent())

    def send(self, packet: bytes) -> None:
        """Protect and send an RTP packet; silently nothing when not connected."""
        if self._srtp is not None:
            data = self._srtp.protect(packet)
            self.packets_out += 1
            self.bytes_out += len(data)
            self._send_raw(data)

    def send_rtcp(self, compound: bytes) -> None:
        """Protect and send an RTCP compound."""
        if self._srtp is not None:
            self._send_raw(self._srtp.protect_rtcp(compound))

    async def close(self) -> None:
        """Say goodbye and end. Safe twice."""
        self._on_closed = None
        self._srtp = None
        if self._consent is not None:
            self._consent.cancel()
        if self._dtls is not None:
            await self._dtls.close()
        self._close_socket()

    def _close_socket(self) -> None:
        if self._socket is not None:
            asyncio.get_running_loop().remove_reader(self._socket.fileno())
            self._socket.close()
            self._socket = None

    def _open_socket(self, far: FarEnd) -> None:
        family = socket.AF_INET6 if ":" in far.ip else socket.AF_INET
        udp = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        udp.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        udp.connect((far.ip, far.port))
        self._socket = udp
        asyncio.get_running_loop().add_reader(udp.fileno(), self._readable)

    # --- ICE ---

    async def _first_answer(self) -> None:
        while not self._answered.is_set():
            self._check()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), FIRST_CHECKS_S)

    async def _keep_consent(self) -> None:
        while True:
            due = time.monotonic() + CHECK_EVERY_S
            await asyncio.sleep(CHECK_EVERY_S)
            self._answered_at += stalled_s(time.monotonic() - due)
            if time.monotonic() - self._answered_at > CONSENT_S:
                self._end("ice-silent")
                return
            self._check()

    def _check(self) -> None:
        assert self._far is not None
        transaction = secrets.token_bytes(12)
        self._asked = [*self._asked[-7:], transaction]
        self._send_raw(
            stun.binding_request(
                remote_ufrag=self._far.ufrag,
                local_ufrag=self.own.ufrag,
                remote_password=self._far.pwd,
                tie_breaker=self._tie_breaker,
                transaction_id=transaction,
            )
        )

    def _stun(self, datagram: bytes) -> None:
        assert self._far is not None
        if stun.parse_response(datagram, remote_password=self._far.pwd) in self._asked:
            self._answered_at = time.monotonic()
            self._answered.set()

    # --- datagrams ---

    def _send_raw(self, datagram: bytes) -> None:
        if self._socket is None:
            return
        try:
            self._socket.send(datagram)
        except BlockingIOError:
            pass  # a full send buffer is a lossy link
        except OSError:
            self._refused()

    def _refused(self) -> None:
        """The host says that nothing listens there any more: the SFU's process has ended."""
        if self._srtp is not None:
            asyncio.get_running_loop().call_soon(self._end, "refused")

    def _readable(self) -> None:
        udp = self._socket
        began = time.monotonic()
        offset = began - time.time()
        for _ in range(BATCH):
            if udp is None or udp is not self._socket:
                return
            try:
                datagram, ancillary, _flags, _address = udp.recvmsg(2048, _ANCILLARY)
            except BlockingIOError:
                return
            except OSError:
                self._refused()
                return
            seconds, nanoseconds = _TIMESPEC.unpack(ancillary[0][2])
            at = offset + seconds + nanoseconds * 1e-9
            self._received(datagram, at)
            if began - at < FRESH_S:
                return  # it has just come, so there is hardly another one; if there is, we are called again

    def _received(self, datagram: bytes, at: float) -> None:
        try:
            first = datagram[0] if datagram else 255
            if 128 <= first <= 191 and self._srtp is not None and len(datagram) >= 12:
                if 192 <= datagram[1] <= 223:
                    self._on_rtcp(self._srtp.unprotect_rtcp(datagram), at)
                    return
                self.packets_in += 1
                self.bytes_in += len(datagram)
                self._on_rtp(self._srtp.unprotect(datagram), at)
            elif 20 <= first <= 63 and self._dtls is not None:
                self._dtls.feed(datagram)
            elif first <= 3:
                self._stun(datagram)
        except BadPacket:
            self.bad_packets += 1

    def _end(self, reason: str) -> None:
        on_closed, self._on_closed = self._on_closed, None
        self._srtp = None
        if on_closed is not None:
            on_closed(reason)


def _own_end(certificate: Certificate) -> OwnEnd:
    proof = certificate.fingerprint
    return OwnEnd(secrets.token_hex(4), secrets.token_hex(12), sdp.Fingerprint(proof.algorithm, proof.value))
