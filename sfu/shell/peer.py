"""One peer connection on the media port: its ICE credentials, its DTLS, and its keys on their way to the plane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from sfu.core.ice_lite import IceCredentials, new_credentials
from sfu.core.media.addresses import MAX_ADDRESSES
from sfu.plane.api import Address
from sfu.shell.udp import MediaPort
from shared.errors import BadSdp
from shared.rtc.dtls import (
    Certificate,
    DtlsFailed,
    DtlsTransport,
    Fingerprint,
    client_hello,
    process_certificate,
)
from shared.rtc.srtp import SrtpKeys

log = logging.getLogger("sfu.media")


NEW_HANDSHAKE_EVERY_S = 1.0
"""Between two handshakes begun for one address: a forged ClientHello of 150 bytes is answered with 1,000."""


class PeerEnd(StrEnum):
    """Why a peer connection ended without our closing it."""

    CLOSED_BY_PEER = "closed-by-peer"
    """The peer said close_notify."""
    CONSENT_LOST = "consent-lost"
    """It no longer consents: neither a connectivity check nor media for `CONSENT_S`, or never one."""
    DTLS_FAILED = "dtls-failed"


@dataclass(slots=True, eq=False)
class _NewHandshake:
    """Begun by a ClientHello that is not that of the association in use."""

    hello: bytes
    begun_at: float
    dtls: DtlsTransport
    task: asyncio.Task[None] | None = None


class PeerTransport:
    """The SFU's end of one peer connection; always DTLS passive, ICE-lite.

    A client may begin again with the same certificate, from any address that its checks have shown: a new connection in
    its page, or a machine that was restored. The association in use goes on until the new one is complete and has the
    certificate that was announced, so that a forged ClientHello changes nothing.

    Make it when the session description is made (it needs `credentials` and `fingerprint`), `start` it once the peer's
    description is known, in whatever order checks and handshakes arrive. `on_connected` is called once; `on_ended` at
    most once and never after `close`, which must follow it. `peer` is its id on the plane.
    """

    def __init__(
        self,
        port: MediaPort,
        *,
        on_connected: Callable[[], None],
        on_ended: Callable[[PeerEnd, str], None],
        certificate: Certificate | None = None,
    ) -> None:
        """`on_ended` gets the reason and, for a failed handshake, the `DtlsFailure` code as detail."""
        self._port = port
        self._on_connected = on_connected
        self._on_ended = on_ended
        self._certificate = certificate or process_certificate()
        self._handshake: asyncio.Task[None] | None = None
        self._fingerprints: list[tuple[str, str]] = []
        self._new_handshakes: dict[Address, _NewHandshake] = {}
        """By where they are asked for; oldest first."""
        self._hello: bytes | None = None
        """The ClientHello of the association in use."""
        self._over = False
        self.connected = False
        self.peer = port.attach(self)
        self.credentials = new_credentials()
        port.ice.register(self.peer, self.credentials, now=port.now)
        self._dtls = self._association()

    @property
    def fingerprint(self) -> Fingerprint:
        """For `a=fingerprint`."""
        return self._certificate.fingerprint

    def start(self, remote_fingerprints: Sequence[tuple[str, str]], remote_setup: str) -> None:
        """The peer's description is known: shake hands with the owner of that certificate.

        Called again with another certificate, the player has made another connection: the one in use goes on until that
        one has shaken hands, which needs the new certificate from now on.

        Raises `BadSdp` when the peer insists on being passive or names no fingerprint.
        """
        if remote_setup not in ("active", "actpass"):
            raise BadSdp(detail=f"a=setup:{remote_setup} can't be answered: this side is always passive")
        if not remote_fingerprints:
            raise BadSdp(detail="no a=fingerprint")
        if self._handshake is None and not self._over:
            self._fingerprints = list(remote_fingerprints)
            self._handshake = asyncio.create_task(self._shake_hands())
        elif list(remote_fingerprints) != self._fingerprints:
            self._fingerprints = list(remote_fingerprints)
            self._drop_new_handshakes()  # they were to be checked against the old one

    def restart_ice(self) -> IceCredentials:
        """New credentials for an ICE restart; the old ones hold until the peer uses the new."""
        self.credentials = new_credentials()
        self._port.ice.register(self.peer, self.credentials, now=self._port.now)
        return self.credentials

    async def close(self) -> None:
        """Say close_notify and forget the peer with its producers and consumers. Safe at any moment and twice."""
        self._over = True
        if self._handshake is not None and self._handshake is not asyncio.current_task():
            self._handshake.cancel()
        self._drop_new_handshakes()
        await self._dtls.close()
        self.connected = False
        self._port.detach(self.peer)

    def _association(self) -> DtlsTransport:
        dtls: DtlsTransport = DtlsTransport(
            send=lambda datagram: self._send(dtls, datagram),
            role="server",
            certificate=self._certificate,
            on_closed=lambda: self._closed(dtls),
        )
        return dtls

    async def _shake_hands(self) -> None:
        """The first handshake: without it there is no connection."""
        try:
            keys = await self._dtls.handshake(self._fingerprints)
        except DtlsFailed as failed:
            self._end(PeerEnd.DTLS_FAILED, failed.code)
            return
        self._use(keys)

    async def _shake_hands_again(self, address: Address, new: _NewHandshake) -> None:
        try:
            keys = await new.dtls.handshake(self._fingerprints)
        except DtlsFailed as failed:
            if self._new_handshakes.get(address) is new:
                del self._new_handshakes[address]
            log.debug("[media] a new handshake of peer %d came to nothing: %s", self.peer, failed.code)
            return
        if self._over:
            return
        before, self._dtls, self._hello = self._dtls, new.dtls, new.hello
        del self._new_handshakes[address]
        if self._handshake is not None:
            self._handshake.cancel()
        before.abandon()
        self._drop_new_handshakes()
        self._use(keys)

    def _use(self, keys: SrtpKeys) -> None:
        """The association has these keys."""
        address = self._dtls.source
        assert address is not None, "no handshake without a datagram"
        self._port.plane.set_keys(self.peer, keys, address=address, now=self._port.now)
        if not self.connected:
            self.connected = True
            self._on_connected()

    def _drop_new_handshakes(self) -> None:
        for address in list(self._new_handshakes):
            self._drop_new_handshake(address)

    def _drop_new_handshake(self, address: Address) -> None:
        new = self._new_handshakes.pop(address)
        if new.task is not None:
            new.task.cancel()
        new.dtls.abandon()

    def _end(self, reason: PeerEnd, detail: str = "") -> None:
        if not self._over:
            self._over = True
            self.connected = False
            self._port.ended(reason, detail)
            self._on_ended(reason, detail)

    def _closed(self, dtls: DtlsTransport) -> None:
        if dtls is self._dtls:
            self._end(PeerEnd.CLOSED_BY_PEER)

    def _send(self, dtls: DtlsTransport, datagram: bytes) -> None:
        # A handshake is answered where it is asked from, which an authentic check has shown to be the peer's.
        in_use = self.connected and dtls is self._dtls
        address = self._port.plane.address_of(self.peer) if in_use else dtls.source
        if address is not None:
            self._port.send(datagram, address)

    # -- from the port

    def dtls_received(self, datagram: bytes, address: Address) -> None:
        hello, new = client_hello(datagram), self._new_handshakes.get(address)
        if hello is not None and hello != self._hello and self._handshake is not None and self._hello is not None:
            new = self._begin_again(hello, address) if new is None or new.hello != hello else new
        elif hello is not None:
            self._hello, new = hello, None
        (self._dtls if new is None else new.dtls).feed(datagram, address)

    def _begin_again(self, hello: bytes, address: Address) -> _NewHandshake:
        """The handshake that this ClientHello belongs to: a new one, unless one was just begun from that address."""
        now = self._port.now
        before = self._new_handshakes.get(address)
        if before is not None and now - before.begun_at < NEW_HANDSHAKE_EVERY_S:
            return before
        if before is not None or len(self._new_handshakes) >= MAX_ADDRESSES:
            self._drop_new_handshake(address if before is not None else next(iter(self._new_handshakes)))
        new = self._new_handshakes[address] = _NewHandshake(hello, now, self._association())
        new.task = asyncio.create_task(self._shake_hands_again(address, new))
        return new

    def consent_lost(self) -> None:
        self._end(PeerEnd.CONSENT_LOST)
