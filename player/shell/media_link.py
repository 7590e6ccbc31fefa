"""A player's link to one SFU: the websocket and the peer connections negotiated over it (protocol, 1.3 to 2.3)."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import Protocol

from player.core import session_sdp
from player.core.session_sdp import Incoming
from player.core.track import OutgoingTrack
from player.shell.publisher import TrackPublisher
from player.shell.receiver import PacketTap, Receiver
from player.shell.transport import MediaTransport, TransportFailed
from player.shell.wire import MessageSocket
from shared.errors import BadSdp
from shared.messages import media as m
from shared.messages.codes import CloseCode
from shared.messages.player import Failed
from shared.rtc import sdp

GATHER_S = 0.02
"""How long changes of what is wanted are gathered into one `subscribe`."""
CUTTING = (CloseCode.TERMINATING, CloseCode.REPLACED, CloseCode.REFUSED)
"""Close codes after which the SFU has dropped our media as well."""


class MediaLinkOwner(Protocol):
    """Told what happens to a link."""

    def link_entered(self, link: MediaLink, *, carrying: bool) -> None:
        """The SFU let us in; `carrying`: with the right to carry our publications. A visitor may get it later."""

    def link_connected(self, link: MediaLink) -> None:
        """The publish connection is up, whether or not we send anything; with nothing to publish, the other one."""

    def link_refused(self, link: MediaLink, number: int, code: str) -> None:
        """A visitor did not get that right, and stays a visitor."""

    def link_message(self, link: MediaLink, message: m.ToMedia) -> None:
        """A message that is not about negotiation."""

    def link_down(self, link: MediaLink, reason: str, *, cut: bool) -> None:
        """The link has failed or ended; `cut`: its media too. Told again when at first only the websocket broke."""

    def link_unit(self, link: MediaLink, stream: Incoming, unit: bytes, timestamp: int, at: float) -> None:
        """An Opus packet or a complete frame arrived."""


class MediaLink:
    """Begin it with `start`. `number` is the mover's name of it while it carries, or is to carry, our publications."""

    def __init__(
        self,
        *,
        sfu: str,
        address: str,
        token: str,
        owner: MediaLinkOwner,
        publisher: TrackPublisher,
        on_packet: PacketTap | None = None,
    ) -> None:
        self.sfu = sfu
        self.number: int | None = None
        self.entered = False
        self.alive = True
        """The websocket has not ended."""
        self._token = token
        self._owner = owner
        self._publisher = publisher
        self._on_packet = None if on_packet is None else partial(on_packet, sfu)
        self._generation = 0
        self._shown_token = ""
        """The token last shown to the SFU; another one waits to be shown when it differs from `_token`."""
        self._negotiation = 0
        self._wire: MessageSocket[m.ToMedia] = MessageSocket(address, m.from_sfu)
        self._tasks: set[asyncio.Task[None]] = set()
        self._up: MediaTransport | None = None
        self._down: MediaTransport | None = None
        self._receiver: Receiver | None = None
        self._finished = False
        self._reviving = False
        self._connecting = False
        """The publish connection is being opened."""
        self._offered: tuple[OutgoingTrack, ...] = ()
        self._wanted: tuple[str, ...] = ()
        self._want_timer: asyncio.TimerHandle | None = None

    # --- what the player wants of it ---

    def start(self) -> None:
        """Connect and enter."""
        self._spawn(self._run())

    def carry(self, number: int, generation: int, *, token: str | None = None) -> None:
        """Publish here; a visitor enters again with the `token` that gives it the right to (protocol, 1.3)."""
        self.number, self._generation = number, generation
        if token is not None:
            self._token = token
            if self.entered:
                self._wire.send(self._enter())

    def revive(self, number: int, generation: int, *, address: str, token: str) -> None:
        """Take the session up again on a new websocket: its media never stopped, and the SFU repeats what flows."""
        self.number, self._generation, self._token = number, generation, token
        self._wire = MessageSocket(address, m.from_sfu)
        self.entered, self.alive, self._reviving = False, True, True
        self.start()

    @property
    def revivable(self) -> bool:
        """Only the websocket broke."""
        return not self.alive and not self._finished and self._carries_media()

    def _carries_media(self) -> bool:
        return any(transport.connected for transport in self.transports)

    def want(self, publications: Sequence[str]) -> None:
        """Subscribe to exactly these, in a moment: tracks come and move in pairs, and each change is a negotiation."""
        self._wanted = tuple(publications)
        if self._want_timer is None:
            self._want_timer = asyncio.get_running_loop().call_later(GATHER_S, self._send_want)

    def _send_want(self) -> None:
        self._want_timer = None
        self._wire.send(m.Subscribe(publications=self._wanted))

    def stop_publishing(self) -> None:
        """End our publications here; what we hear from here goes on."""
        if self._up is not None:
            self._publisher.detach(self._up)
            publications = tuple(track.publication for track in self._publisher.tracks)
            self._wire.send(m.StopPublishing(publications=publications))
        self.number = None

    def offer(self) -> None:
        """The tracks have changed: offer what they are now. A link that is not open yet does so once it is."""
        if self.number is not None and self.entered and self.alive:
            self._offer()

    def stop(self, publications: tuple[str, ...]) -> None:
        """End some publications here; the others go on."""
        self._offered = tuple(track for track in self._offered if track.publication not in publications)
        self._wire.send(m.StopPublishing(publications=publications))

    def tap(self, on_packet: PacketTap) -> None:
        """From now on hand over each packet of others as well."""
        self._on_packet = partial(on_packet, self.sfu)
        if self._receiver is not None:
            self._receiver.on_packet = self._on_packet

    async def leave(self) -> None:
        """Say goodbye to the SFU, and close."""
        self._finished = True
        self._wire.send(m.LeaveSfu())
        await self._wire.close()
        await self.close()

    async def close(self) -> None:
        """End everything at once. Safe twice."""
        self._finished = True
        self.alive = False
        if self._want_timer is not None:
            self._want_timer.cancel()
        for task in [task for task in self._tasks if task is not asyncio.current_task()]:
            task.cancel()
        for transport in (self._up, self._down):
            if transport is not None:
                self._publisher.detach(transport)
                await transport.close()
        await self._wire.close()

    @property
    def transports(self) -> list[MediaTransport]:
        """Its peer connections, for counting."""
        return [transport for transport in (self._up, self._down) if transport is not None]

    @property
    def publish_transport(self) -> MediaTransport | None:
        """The publish connection; None before there is one."""
        return self._up

    @property
    def subscribe_transport(self) -> MediaTransport | None:
        """The subscribe connection; None before the SFU has offered anything."""
        return self._down

    @property
    def repaired(self) -> int:
        """Lost packets that retransmissions brought."""
        return self._receiver.repaired if self._receiver is not None else 0

    # --- the websocket ---

    def _spawn(self, coroutine: object) -> None:
        task: asyncio.Task[None] = asyncio.create_task(coroutine)  # type: ignore[arg-type]
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self) -> None:
        closed = await self._wire.run(self._enter, self._message)
        self.alive = False
        if not self._finished:
            self._fail(_reason(closed.code, closed.opened), cut=closed.code in CUTTING or not self._carries_media())

    def _enter(self) -> m.Enter:
        self._shown_token = self._token
        return m.Enter(token=self._token)

    def _fail(self, reason: str, *, cut: bool) -> None:
        if not self._finished:
            self._finished = cut
            self._owner.link_down(self, reason, cut=cut)

    def _message(self, message: m.ToMedia) -> None:
        try:
            match message:
                case m.Entered():
                    self._on_entered()
                case m.PublishAnswer():
                    self._on_publish_answer(message)
                case m.SubscribeOffer():
                    self._on_subscribe_offer(message)
                case Failed() if not self.entered:
                    self._fail(message.code, cut=True)
                case Failed(publication="") if self.number is not None and self._up is None:
                    number, self.number = self.number, None
                    self._owner.link_refused(self, number, message.code)
                case m.Closing():
                    self._fail("terminating", cut=True)
                case _:
                    self._owner.link_message(self, message)
        except BadSdp as error:
            self._fail(error.code, cut=False)

    def _on_entered(self) -> None:
        self.entered = True
        if self._shown_token != self._token:  # entered as a visitor, and meanwhile told to become more
            self._wire.send(self._enter())
            self._owner.link_entered(self, carrying=False)
            return
        news = not self._reviving or self._offered != self._publisher.tracks
        if self.number is not None and self._publisher.tracks and news:
            self._offer()
        self._reviving = False
        self._owner.link_entered(self, carrying=self.number is not None)

    # --- publishing ---

    def _offer(self) -> None:
        if self._up is None:
            self._up = MediaTransport(
                on_rtp=lambda _packet, _at: None,
                on_rtcp=self._feedback,
                on_closed=lambda reason: self._fail(reason, cut=True),
            )
        self._negotiation += 1
        self._offered = self._publisher.tracks
        tracks = tuple(
            m.TrackOffer(mid=track.mid, publication=track.publication, kind=track.kind, generation=self._generation)
            for track in self._publisher.tracks
        )
        text = session_sdp.publish_offer(
            self._publisher.tracks, self._up.own, version=self._negotiation, cname=self._publisher.cname
        )
        self._wire.send(m.PublishOffer(sdp=text, tracks=tracks, negotiation=self._negotiation))

    def _on_publish_answer(self, message: m.PublishAnswer) -> None:
        if message.negotiation != self._negotiation or self._up is None:
            return
        answer = sdp.parse(message.sdp)
        session_sdp.check_accepted(answer, self._offered)
        if self._up.connected:
            self._publisher.attach(self._up)
        elif not self._connecting:
            self._connecting = True
            self._spawn(self._connect_up(self._up, session_sdp.far_end(answer)))

    async def _connect_up(self, transport: MediaTransport, far: session_sdp.FarEnd) -> None:
        if await self._connect(transport, far) and self.number is not None:
            self._publisher.attach(transport)
            self._owner.link_connected(self)

    def _feedback(self, compound: bytes, at: float) -> None:
        if self._up is not None:
            self._publisher.feedback(self._up, compound)

    # --- subscribing ---

    def _on_subscribe_offer(self, message: m.SubscribeOffer) -> None:
        offer = sdp.parse(message.sdp)
        fresh = self._down is None
        if self._down is None:
            self._down = MediaTransport(
                on_rtp=self._on_rtp,
                on_rtcp=self._on_rtcp,
                on_closed=lambda reason: self._fail(reason, cut=self._up is None or not self._up.connected),
            )
            self._receiver = Receiver(
                self._down,
                on_unit=self._on_unit,
                on_packet=self._on_packet,
                ssrc=int(self._down.own.ufrag, 16),
                cname=self._publisher.cname,
            )
        assert self._receiver is not None
        self._receiver.set_streams(session_sdp.incoming(offer, message.tracks))
        text = session_sdp.answer_subscribe(offer, self._down.own, version=message.negotiation)
        self._wire.send(m.SubscribeAnswer(sdp=text, negotiation=message.negotiation))
        if fresh:
            self._spawn(self._connect_down(self._down, session_sdp.far_end(offer)))

    async def _connect_down(self, transport: MediaTransport, far: session_sdp.FarEnd) -> None:
        if await self._connect(transport, far) and self._up is None and self.number is not None:
            self._owner.link_connected(self)

    async def _connect(self, transport: MediaTransport, far: session_sdp.FarEnd) -> bool:
        try:
            await transport.connect(far)
        except TransportFailed as error:
            publishing = self._up is not None and self._up.connected
            self._fail(error.code, cut=not publishing)
            return False
        return True

    def _on_rtp(self, packet: bytes, at: float) -> None:
        if self._receiver is not None:
            self._receiver.on_rtp(packet, at)

    def _on_rtcp(self, compound: bytes, at: float) -> None:
        if self._receiver is not None:
            self._receiver.on_rtcp(compound, at)

    def _on_unit(self, stream: Incoming, unit: bytes, timestamp: int, at: float) -> None:
        self._owner.link_unit(self, stream, unit, timestamp, at)


def _reason(code: int, opened: bool) -> str:
    """A close code as a word."""
    if not opened:
        return "unreachable"
    with contextlib.suppress(ValueError):
        return CloseCode(code).name.lower().replace("_", "-")
    return "websocket-broke"
