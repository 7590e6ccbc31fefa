"""DTLS for one peer, through aiortc: the only file that uses aiortc's private names (pinned by a contract test).

A `DtlsTransport` has no socket. Its owner gives it a function that sends a datagram, feeds it the datagrams whose first
byte says DTLS, awaits `handshake` for the SRTP keys, and calls `close` at the end.
"""

from __future__ import annotations

import asyncio
import functools
from collections import deque
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Literal, cast

from aiortc import rtcdtlstransport as aiortc_dtls
from aiortc.rtcdtlstransport import (
    RTCCertificate,
    RTCDtlsFingerprint,
    RTCDtlsParameters,
    RTCDtlsTransport,
    SRTPProtectionProfile,
    State,
)
from aiortc.rtcicetransport import RTCIceTransport
from OpenSSL import SSL

from shared.errors import BadInput
from shared.patience import patient_timeout
from shared.rtc.sdp_model import Fingerprint as Fingerprint
from shared.rtc.srtp import SrtpKeys, SrtpProfile

HANDSHAKE_TIMEOUT_S = 15.0
"""aiortc has none of its own. At 20 % loss each way OpenSSL's 1 s timer needs up to 9 s."""

MAX_QUEUED = 16
"""Datagrams kept while the handshake has not begun or is busy; the peer repeats what is dropped."""

MTU = 1200
"""Datagrams of a flight are at most this long [bytes] where its records allow it: fits through every tunnel."""

_RECORD_HEADER = 13
"""Content type, version, epoch, sequence number, length (RFC 6347 section 4.1)."""

_HELLO_END = _RECORD_HEADER + 12 + 2 + 32
"""Of a ClientHello's random: after the handshake message's header and the version."""

Role = Literal["server", "client"]
Source = tuple[str, int] | tuple[str, int, str]
"""Where a datagram came from, for owners that want to know."""

PREFERRED_PROFILES = (SrtpProfile.AEAD_AES_128_GCM, SrtpProfile.AEAD_AES_256_GCM, SrtpProfile.AES128_CM_SHA1_80)
"""In the order in which we, as server, choose."""

_PROFILES: dict[SrtpProfile, SRTPProtectionProfile] = {
    SrtpProfile.AEAD_AES_128_GCM: aiortc_dtls.SRTP_AEAD_AES_128_GCM,
    SrtpProfile.AEAD_AES_256_GCM: aiortc_dtls.SRTP_AEAD_AES_256_GCM,
    SrtpProfile.AES128_CM_SHA1_80: aiortc_dtls.SRTP_AES128_CM_SHA1_80,
}


class DtlsFailure(StrEnum):
    """Why a handshake came to nothing."""

    TIMEOUT = "dtls-timeout"
    """The peer did not finish in time."""
    FINGERPRINT = "dtls-fingerprint"
    """The peer's certificate is not the one its SDP named, or SDP named no digest we know (sha-256/384/512)."""
    PROFILE = "dtls-profile"
    """No SRTP profile in common."""
    PROTOCOL = "dtls-protocol"
    """OpenSSL refused what the peer sent."""
    CLOSED = "dtls-closed"
    """This side closed it before it was done."""


class DtlsFailed(BadInput):
    """The handshake with a peer failed; `code` is the `DtlsFailure`."""

    def __init__(self, failure: DtlsFailure, detail: str = "") -> None:
        super().__init__()
        self.failure = failure
        self.code = failure.value
        self.detail = detail

    def sentence(self) -> str:
        return f"DTLS handshake failed ({self.code}){': ' + self.detail if self.detail else ''}"


class Certificate(RTCCertificate):
    """A self-signed ECDSA certificate whose TLS contexts are made once, not once per peer (0.15 ms each)."""

    @functools.cached_property
    def fingerprint(self) -> Fingerprint:
        """The sha-256 digest, as SDP wants it."""
        return next(Fingerprint(f.algorithm, f.value) for f in self.getFingerprints() if f.algorithm == "sha-256")

    @functools.cached_property
    def _contexts(self) -> dict[tuple[bytes, ...], SSL.Context]:
        return {}

    def _create_ssl_context(self, srtp_profiles: list[SRTPProtectionProfile]) -> SSL.Context:
        names = tuple(profile.openssl_profile for profile in srtp_profiles)
        context = self._contexts.get(names)
        if context is None:
            context = self._contexts[names] = super()._create_ssl_context(srtp_profiles)
        return context


@functools.cache
def process_certificate() -> Certificate:
    """The one certificate of this process; peers know it by its fingerprint, so sharing it among them is fine."""
    return Certificate.generateCertificate()


class _Wire:
    """What aiortc takes for its ICE transport: a queue in, a function out."""

    role = "controlled"

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self.send_datagram = send
        self.source: Source | None = None
        self._queue: deque[tuple[bytes, Source | None]] = deque(maxlen=MAX_QUEUED)
        self._waiter: asyncio.Future[None] | None = None
        self._closed = False

    def feed(self, datagram: bytes, source: Source | None) -> None:
        self._queue.append((datagram, source))
        self._wake()

    def close(self) -> None:
        self._closed = True
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _recv(self) -> bytes:
        while not self._queue:
            if self._closed:
                raise ConnectionError
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        datagram, self.source = self._queue.popleft()
        return datagram

    async def _send(self, data: bytes) -> None:
        self.send_datagram(data)


class DtlsTransport(RTCDtlsTransport):
    """One peer's DTLS association. `state` is `new`, `connecting`, `connected`, `closed` or `failed`."""

    def __init__(
        self,
        *,
        send: Callable[[bytes], None],
        role: Role = "server",
        certificate: Certificate | None = None,
        profiles: Sequence[SrtpProfile] = PREFERRED_PROFILES,
        on_closed: Callable[[], None] | None = None,
    ) -> None:
        """`send` gets each outgoing datagram. `on_closed` is called once when the peer closes a connected association,
        not for `close`."""
        self._wire = _Wire(send)
        super().__init__(cast(RTCIceTransport, self._wire), [certificate or process_certificate()])
        self._set_role(role)
        self._srtp_profiles = [_PROFILES[profile] for profile in profiles]
        self._keys: SrtpKeys | None = None
        self._failure: DtlsFailure | None = None
        self._on_closed = on_closed
        self.on("statechange", self._state_changed)

    def feed(self, datagram: bytes, source: Source | None = None) -> None:
        """Take a datagram with first byte 20..63. What comes before `handshake` is kept, within a small bound."""
        if len(datagram) >= _RECORD_HEADER and 20 <= datagram[0] <= 63 and self.state not in ("closed", "failed"):
            self._wire.feed(datagram, source)

    @property
    def source(self) -> Source | None:
        """What `feed` was told of the datagram that OpenSSL was given last: the one that is being answered, or that has
        finished the handshake."""
        return self._wire.source

    async def handshake(
        self, remote_fingerprints: Sequence[tuple[str, str]], *, timeout_s: float = HANDSHAKE_TIMEOUT_S
    ) -> SrtpKeys:
        """Shake hands once and return the keys. `remote_fingerprints` are `(algorithm, value)` pairs of the peer's SDP.

        Raises `DtlsFailed`; the association is of no more use then, and the peer has been told where possible.
        """
        if not remote_fingerprints:
            raise self._give_up(DtlsFailure.FINGERPRINT, "the peer named no fingerprint")
        parameters = RTCDtlsParameters([RTCDtlsFingerprint(name, value) for name, value in remote_fingerprints])
        try:
            async with patient_timeout(timeout_s):
                await self.start(parameters)
        except TimeoutError:
            raise self._give_up(DtlsFailure.TIMEOUT, f"not done after {timeout_s:g} s") from None
        except (SSL.Error, OSError, ValueError, AssertionError) as error:
            # DTLSv1_handle_timeout gives up after a dozen retransmissions with an SSL.Error that aiortc lets through.
            raise self._give_up(DtlsFailure.PROTOCOL, repr(error)[:200]) from None
        if self._keys is None:
            raise self._give_up(self._failure or DtlsFailure.PROTOCOL)
        return self._keys

    async def close(self) -> None:
        """Send close_notify if the handshake has come so far, and end. Safe at any moment and twice."""
        self._on_closed = None
        self._failure = self._failure or DtlsFailure.CLOSED
        await self.stop()
        self._wire.close()

    def abandon(self) -> None:
        """End without a word: the other side has begun again. Cancel `handshake` first."""
        self._on_closed = None
        self._wire.send_datagram = lambda datagram: None
        if self._task is not None:
            self._task.cancel()
        self._wire.close()

    def _give_up(self, failure: DtlsFailure, detail: str = "") -> DtlsFailed:
        self._on_closed = None
        self._alert()
        self._set_state(State.FAILED)
        self._wire.close()
        return DtlsFailed(failure, detail)

    def _alert(self) -> None:
        """Let the peer know at once; aiortc leaves it waiting after a fingerprint mismatch."""
        if self._ssl is None:
            return
        try:
            self._ssl.shutdown()
        except SSL.Error:
            return
        self._flush()

    def _validate_peer_identity(self, remoteParameters: RTCDtlsParameters) -> None:
        super()._validate_peer_identity(remoteParameters)
        if self._state == State.FAILED:
            self._failure = DtlsFailure.FINGERPRINT

    def _setup_srtp(self) -> None:
        """Export the keys (RFC 5764 section 4.2) instead of making aiortc's sessions: the plane owns those."""
        assert self._ssl is not None
        name = self._ssl.get_selected_srtp_profile()
        chosen = next((ours for ours, theirs in _PROFILES.items() if theirs.openssl_profile == name), None)
        if chosen is None:
            self._failure = DtlsFailure.PROFILE
            self._set_state(State.FAILED)
            return
        key, salt = _PROFILES[chosen].key_length, _PROFILES[chosen].salt_length
        material = self._ssl.export_keying_material(b"EXTRACTOR-dtls_srtp", 2 * (key + salt))
        client_key, server_key = material[:key], material[key : 2 * key]
        client_salt, server_salt = material[2 * key : 2 * key + salt], material[2 * key + salt :]
        if self._role == "server":
            self._keys = SrtpKeys(chosen, client_key, client_salt, server_key, server_salt)
        else:
            self._keys = SrtpKeys(chosen, server_key, server_salt, client_key, client_salt)

    async def _write_ssl(self) -> None:
        self._flush()

    def _flush(self) -> None:
        """Send all that OpenSSL has written; aiortc's own reads 1500 bytes once, which cuts long flights."""
        assert self._ssl is not None
        try:
            flight = self._ssl.bio_read(65536)
        except SSL.Error:
            return
        for datagram in split_flight(flight):
            self._wire.send_datagram(datagram)

    def _state_changed(self) -> None:
        if self._state == State.CLOSED and self._on_closed is not None:
            on_closed, self._on_closed = self._on_closed, None
            self._wire.close()
            on_closed()


def client_hello(datagram: bytes) -> bytes | None:
    """The random of the ClientHello that a datagram begins with, which tells one handshake from another; else None
    (RFC 6347 sections 4.1 and 4.2.2)."""
    if len(datagram) < _HELLO_END or datagram[0] != 22 or datagram[3:5] != b"\0\0":
        return None
    message = datagram[_RECORD_HEADER:]
    if message[0] != 1 or message[6:9] != b"\0\0\0":
        return None  # another message, or not its first fragment
    return datagram[_HELLO_END - 32 : _HELLO_END]


def split_flight(flight: bytes) -> list[bytes]:
    """Cut a run of DTLS records into datagrams of whole records, each at most `MTU` long unless a record is longer."""
    datagrams: list[bytes] = []
    start = position = 0
    while position + _RECORD_HEADER <= len(flight):
        # The unified header of DTLS 1.3 (32..63, RFC 9147 section 4) has no length field: the rest goes out whole.
        if flight[position] > 31:
            break
        end = position + _RECORD_HEADER + int.from_bytes(flight[position + 11 : position + 13], "big")
        if end - start > MTU and position > start:
            datagrams.append(flight[start:position])
            start = position
        position = end
    if start < len(flight):
        datagrams.append(flight[start:])
    return datagrams
