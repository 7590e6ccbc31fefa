"""The media side as the sessions see it: what they need of it, and the adapter that gives it over the one UDP port."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from sfu.core.sdp.transport import LocalTransport, RemoteTransport
from sfu.plane.api import Plane, PlaneSnapshot
from sfu.shell.peer import PeerEnd, PeerTransport
from sfu.shell.udp import MediaPort
from shared.rtc.sdp import Candidate


class MediaPeer(Protocol):
    """One peer connection, from our side."""

    @property
    def id(self) -> int:
        """Its name in the plane."""

    @property
    def local(self) -> LocalTransport:
        """What its description says of us, as of now."""

    @property
    def last_heard(self) -> float | None:
        """Monotonic seconds of the last authentic check, or media packet as of the last look; None: never."""

    def connect(self, remote: RemoteTransport) -> None:
        """The other side is known, or is another one now; DTLS can go on. Raises `BadSdp`."""

    def restart(self) -> None:
        """The other side restarts ICE: have new credentials from now on (RFC 8445 section 9)."""

    async def close(self) -> None:
        """Say goodbye (DTLS close_notify) and forget it. Safe twice."""


class Media(Protocol):
    """All peer connections of this SFU."""

    @property
    def plane(self) -> Plane:
        """Where packets are forwarded."""

    def open(self, *, on_lost: Callable[[str], None]) -> MediaPeer:
        """A new peer. `on_lost` is called once, with a kebab-case word, when it fails or its other side is gone."""


class PortPeer:
    """`MediaPeer` over a `PeerTransport`."""

    def __init__(self, media: PortMedia, *, on_lost: Callable[[str], None]) -> None:
        self._media = media
        self._transport = PeerTransport(
            media.port, on_connected=self._connected, on_ended=lambda end, detail: on_lost(_word(end, detail))
        )

    @property
    def id(self) -> int:
        return self._transport.peer

    @property
    def local(self) -> LocalTransport:
        credentials = self._transport.credentials
        return LocalTransport(
            ufrag=credentials.ufrag,
            pwd=credentials.pwd,
            fingerprint=self._transport.fingerprint,
            candidates=self._media.candidates,
        )

    @property
    def last_heard(self) -> float | None:
        heard = (self._media.heard.get(self.id), self._media.port.ice.checked_at(self.id))
        return max((at for at in heard if at is not None), default=None)

    def connect(self, remote: RemoteTransport) -> None:
        self._transport.start(remote.fingerprints, "active")

    def restart(self) -> None:
        self._transport.restart_ice()

    async def close(self) -> None:
        await self._transport.close()

    def _connected(self) -> None:
        self._media.connected += 1


class PortMedia:
    """`Media` over a `MediaPort`."""

    def __init__(self, port: MediaPort, *, candidates: tuple[Candidate, ...]) -> None:
        self.port = port
        self.candidates = candidates
        self.connected = 0
        """Handshakes that have succeeded."""
        self.heard: Mapping[int, float | None] = {}
        """Peer -> last media packet [monotonic s], as of the last snapshot; None: never."""

    @property
    def plane(self) -> Plane:
        return self.port.plane

    def note_heard(self, snapshot: PlaneSnapshot) -> None:
        """Take in who was heard when."""
        self.heard = {peer.peer: peer.last_heard for peer in snapshot.peers}

    def announce(self, candidate: Candidate) -> None:
        """Another way in, for descriptions made from now on."""
        self.candidates = (*self.candidates, candidate)

    def open(self, *, on_lost: Callable[[str], None]) -> MediaPeer:
        return PortPeer(self, on_lost=on_lost)


def _word(end: PeerEnd, detail: str) -> str:
    """One word for logs, metrics and the player: a failed handshake says how it failed."""
    return detail or end.value
