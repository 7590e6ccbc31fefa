"""One peer connection on the media port: its ICE credentials, its DTLS, and its keys on their way to the plane."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from enum import StrEnum

from sfu.core.ice_lite import IceCredentials, new_credentials
from sfu.plane.api import Address
from sfu.shell.udp import MediaPort
from shared.errors import BadSdp
from shared.rtc.dtls import Certificate, DtlsFailed, DtlsTransport, Fingerprint, process_certificate

log = logging.getLogger("sfu.media")


class PeerEnd(StrEnum):
    """Why a peer connection ended without our closing it."""

    CLOSED_BY_PEER = "closed-by-peer"
    """The peer said close_notify."""
    CONSENT_LOST = "consent-lost"
    """It no longer consents: neither a connectivity check nor media for `CONSENT_S`, or never one."""
    DTLS_FAILED = "dtls-failed"


class PeerTransport:
    """The SFU's end of one peer connection; always DTLS passive, ICE-lite.

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
        self._over = False
        self.connected = False
        self.peer = port.attach(self)
        self.credentials = new_credentials()
        port.ice.register(self.peer, self.credentials, now=port.now)
        self._dtls = DtlsTransport(
            send=self._send,
            role="server",
            certificate=self._certificate,
            on_closed=lambda: self._end(PeerEnd.CLOSED_BY_PEER),
        )

    @property
    def fingerprint(self) -> Fingerprint:
        """For `a=fingerprint`."""
        return self._certificate.fingerprint

    def start(self, remote_fingerprints: Sequence[tuple[str, str]], remote_setup: str) -> None:
        """The peer's description is known: shake hands with the owner of that certificate. A second call does nothing.

        Raises `BadSdp` when the peer insists on being passive or names no fingerprint.
        """
        if remote_setup not in ("active", "actpass"):
            raise BadSdp(detail=f"a=setup:{remote_setup} can't be answered: this side is always passive")
        if not remote_fingerprints:
            raise BadSdp(detail="no a=fingerprint")
        if self._handshake is None and not self._over:
            self._handshake = asyncio.create_task(self._shake_hands(list(remote_fingerprints)))

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
        await self._dtls.close()
        self.connected = False
        self._port.detach(self.peer)

    async def _shake_hands(self, remote_fingerprints: list[tuple[str, str]]) -> None:
        try:
            keys = await self._dtls.handshake(remote_fingerprints)
        except DtlsFailed as failed:
            self._end(PeerEnd.DTLS_FAILED, failed.code)
            return
        address = self._dtls.source
        assert address is not None, "no handshake without a datagram"
        self._port.plane.set_keys(self.peer, keys, address=address, now=self._port.now)
        self.connected = True
        self._on_connected()

    def _end(self, reason: PeerEnd, detail: str = "") -> None:
        if not self._over:
            self._over = True
            self.connected = False
            self._port.ended(reason, detail)
            self._on_ended(reason, detail)

    def _send(self, datagram: bytes) -> None:
        # A handshake is answered where it is asked from, which an authentic check has shown to be the peer's.
        address = self._port.plane.address_of(self.peer) if self.connected else self._dtls.source
        if address is not None:
            self._port.send(datagram, address)

    # -- from the port

    def dtls_received(self, datagram: bytes, address: Address) -> None:
        self._dtls.feed(datagram, address)

    def consent_lost(self) -> None:
        self._end(PeerEnd.CONSENT_LOST)
