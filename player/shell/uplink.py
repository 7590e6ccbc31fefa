"""The publish connection of a media link: we offer our tracks, and offer again what has changed."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from player.core import session_sdp
from player.core.session_sdp import FarEnd
from player.core.track import OutgoingTrack
from player.shell.publisher import TrackPublisher
from player.shell.transport import MediaTransport, TransportFailed
from shared.messages import media as m
from shared.messages.base import Message
from shared.rtc import sdp


@dataclass(frozen=True, slots=True)
class UplinkCallbacks:
    """What it asks of its link."""

    send: Callable[[Message], bool]
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Run this for as long as the link lives."""
    close: Callable[[MediaTransport], None]
    """It is of no more use."""
    connected: Callable[[], None]
    """Whether or not we send anything."""
    failed: Callable[[str], None]
    """The connection could not be opened, or broke; it is closed."""


class Uplink:
    """`offer` what `publisher` has to send; it is sent from the moment the SFU is reached."""

    def __init__(self, callbacks: UplinkCallbacks, publisher: TrackPublisher) -> None:
        self.transport: MediaTransport | None = None
        self._tell = callbacks
        self._publisher = publisher
        self._negotiation = self._answered = 0
        self._offered: tuple[OutgoingTrack, ...] = ()
        self._far: FarEnd | None = None

    @property
    def connected(self) -> bool:
        """Media can be sent, as far as we know."""
        return self.transport is not None and self.transport.connected

    @property
    def settled(self) -> bool:
        """The SFU has answered all that we offered: what it says of the connection is about this one."""
        return self.transport is not None and self._answered == self._negotiation

    @property
    def has_tracks(self) -> bool:
        """There is something to offer."""
        return bool(self._publisher.tracks)

    @property
    def outdated(self) -> bool:
        """The SFU knows other tracks than we have."""
        return self._offered != self._publisher.tracks

    def offer(self, generation: int) -> None:
        """Offer all tracks, as copies of this generation."""
        if self.transport is None:
            self._open(None)
        assert self.transport is not None
        self._negotiation += 1
        self._offered = self._publisher.tracks
        tracks = tuple(
            m.TrackOffer(mid=track.mid, publication=track.publication, kind=track.kind, generation=generation)
            for track in self._offered
        )
        text = session_sdp.publish_offer(
            self._offered, self.transport.own, version=self._negotiation, cname=self._publisher.cname
        )
        self._tell.send(m.PublishOffer(sdp=text, tracks=tracks, negotiation=self._negotiation))

    def answer(self, message: m.PublishAnswer) -> None:
        """Take the SFU's answer. Raises `BadSdp` when it does not take a track."""
        if message.negotiation != self._negotiation or self.transport is None:
            return
        self._answered = message.negotiation
        answer = sdp.parse(message.sdp)
        session_sdp.check_accepted(answer, self._offered)
        far = session_sdp.far_end(answer)
        if self._far is not None and far.ufrag != self._far.ufrag:
            self._open(self.transport)  # the SFU has lost its end, and made another
        if far != self._far:
            self._far = far
            self._tell.spawn(self._connect(self.transport, far))
        elif self.transport.connected:
            self._publisher.attach(self.transport)

    def stop(self, publications: tuple[str, ...]) -> None:
        """These have ended; the others go on."""
        self._offered = tuple(track for track in self._offered if track.publication not in publications)
        self._tell.send(m.StopPublishing(publications=publications))

    def stop_all(self) -> None:
        """Publish here no longer. The connection stays, for when we do again."""
        if self.transport is not None:
            self._publisher.detach(self.transport)
            self._offered = ()
            publications = tuple(track.publication for track in self._publisher.tracks)
            self._tell.send(m.StopPublishing(publications=publications))

    def close(self) -> None:
        """End it. Safe twice; a later offer begins another."""
        transport, self.transport, self._far = self.transport, None, None
        self._offered = ()
        if transport is not None:
            self._publisher.detach(transport)
            self._tell.close(transport)

    # --- inside ---

    def _open(self, again: MediaTransport | None) -> None:
        new = self.transport = MediaTransport(
            on_rtp=lambda _packet, _at: None,
            on_rtcp=lambda compound, _at: self._publisher.feedback(new, compound),
            on_closed=lambda reason: self._failed(new, reason),
            again=again,
        )
        if again is not None:
            self._publisher.detach(again)
            self._tell.close(again)

    async def _connect(self, transport: MediaTransport, far: FarEnd) -> None:
        try:
            await transport.connect(far)
        except TransportFailed as error:
            self._failed(transport, error.code)
            return
        if transport is self.transport and self._offered:
            self._publisher.attach(transport)
            self._tell.connected()

    def _failed(self, transport: MediaTransport, reason: str) -> None:
        if transport is self.transport:
            self.close()
            self._tell.failed(reason)
