"""A player's link to one SFU: a websocket that comes back, and the peer connections negotiated over it (protocol, 1.3).

Each of the three can fail alone. A websocket that breaks costs no media: `SfuSocket` opens another while a peer
connection lives. A subscribe connection that fails is opened again while we publish here, a publish connection that
fails leaves what we hear. The link is over when none of them is left, or the SFU has ended it.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine, Sequence
from functools import partial
from typing import Any, Protocol

from player.core.session_sdp import Incoming
from player.shell.downlink import Downlink, DownlinkCallbacks
from player.shell.publisher import TrackPublisher
from player.shell.receiver import PacketTap
from player.shell.sfu_socket import SfuSocket, SocketCallbacks
from player.shell.transport import MediaTransport
from player.shell.uplink import Uplink, UplinkCallbacks
from shared.errors import BadSdp
from shared.messages import media as m
from shared.messages.codes import Refusal
from shared.messages.player import Failed

REFUSALS = frozenset(Refusal)
"""Other words in an SFU's `error` say that a peer connection is gone."""
GATHER_S = 0.02
"""How long changes of what is wanted are gathered into one `subscribe`."""


class MediaLinkOwner(Protocol):
    """Told what happens to a link."""

    def link_entered(self, link: MediaLink, *, carrying: bool) -> None:
        """The SFU let us in, for the first time or again; `carrying`: with the right to carry our publications. A
        visitor may get it later."""

    def link_connected(self, link: MediaLink) -> None:
        """The publish connection is up, whether or not we send anything; with nothing to publish, the other one."""

    def link_refused(self, link: MediaLink, number: int, code: str) -> None:
        """A visitor did not get that right, and stays a visitor."""

    def link_message(self, link: MediaLink, message: m.ToMedia) -> None:
        """A message that is not about negotiation."""

    def link_away(self, link: MediaLink, reason: str) -> None:
        """Nothing can be said over it for now, or not without a new token (`needs_token`); its media goes on."""

    def link_unpublished(self, link: MediaLink, reason: str) -> None:
        """The publish connection has failed; what we hear goes on."""

    def link_down(self, link: MediaLink, reason: str) -> None:
        """The link has failed or ended, and its media too. Told once."""

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
        rng: random.Random,
        on_packet: PacketTap | None = None,
    ) -> None:
        self.sfu = sfu
        self.number: int | None = None
        self.was_inside = False
        """The SFU has let us in at least once."""
        self.delivers = False
        """Something has come over it."""
        self._owner = owner
        self._generation = 0
        self._reviving = False
        self._finished = False
        self._wanted: tuple[str, ...] = ()
        self._want_timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._closing: set[asyncio.Task[None]] = set()
        """Peer connections that say goodbye."""
        callbacks = SocketCallbacks(
            entered=self._on_entered,
            message=self._message,
            away=self._away,
            ended=self._fail,
            carries_media=lambda: self._up.connected or self._down.connected,
        )
        self._socket = SfuSocket(address, token, callbacks, rng=rng)
        self._up = Uplink(
            UplinkCallbacks(
                send=self._socket.send,
                spawn=self._spawn,
                close=self._close,
                connected=lambda: self._owner.link_connected(self),
                failed=self._up_failed,
            ),
            publisher,
        )
        self._down = Downlink(
            DownlinkCallbacks(
                send=self._socket.send,
                spawn=self._spawn,
                close=self._close,
                unit=self._unit,
                connected=self._down_connected,
                failed=self._down_failed,
            ),
            cname=publisher.cname,
            on_packet=None if on_packet is None else partial(on_packet, sfu),
            rng=rng,
        )

    # --- what the player wants of it ---

    def start(self) -> None:
        """Connect and enter."""
        self._spawn(self._socket.run())

    def carry(self, number: int, generation: int, *, address: str = "", token: str = "") -> None:
        """Publish here; a visitor enters again with the `token` that gives it the right to (protocol, 1.3)."""
        self.number, self._generation = number, generation
        if token:
            self._socket.grant(address, token)

    def revive(self, number: int, generation: int, *, address: str, token: str) -> None:
        """Take the session up again on a new websocket: its media never stopped, and the SFU repeats what flows."""
        self.number = number
        if self._up.transport is None:  # what is published goes on under the generation that it was offered with
            self._generation = generation
        self._reviving = True
        self._socket.renew(address, token)

    def renew(self, address: str, token: str) -> None:
        """A visit's way in again, from the router."""
        self._socket.renew(address, token)

    @property
    def alive(self) -> bool:
        """Not over, though its websocket may be away."""
        return not self._finished and not self._socket.over

    @property
    def entered(self) -> bool:
        """The SFU has let us in, and we can say something to it."""
        return self._socket.inside

    @property
    def needs_token(self) -> bool:
        """Only a token from the router brings us in again."""
        return self._socket.needs_token

    @property
    def hears(self) -> bool:
        """What we subscribe to can come over it."""
        return self.alive and (self.entered or self._down.connected)

    def want(self, publications: Sequence[str]) -> None:
        """Subscribe to exactly these, in a moment: tracks come and move in pairs, and each change is a negotiation."""
        self._wanted = tuple(publications)
        if self._want_timer is None:
            self._want_timer = asyncio.get_running_loop().call_later(GATHER_S, self._send_want)

    def _send_want(self) -> None:
        if self._want_timer is not None:
            self._want_timer.cancel()
        self._want_timer = None
        self._socket.send(m.Subscribe(publications=self._wanted))

    def stop_publishing(self) -> None:
        """End our publications here; what we hear from here goes on."""
        self._up.stop_all()
        self.number = None

    def offer(self) -> None:
        """The tracks have changed: offer what they are now. A link that is not open yet does so once it is."""
        if self.number is not None and self.entered:
            self._up.offer(self._generation)

    def stop(self, publications: tuple[str, ...]) -> None:
        """End some publications here; the others go on."""
        self._up.stop(publications)

    def tap(self, on_packet: PacketTap) -> None:
        """From now on hand over each packet of others as well."""
        self._down.tap(partial(on_packet, self.sfu))

    async def leave(self) -> None:
        """Say goodbye to the SFU, and close."""
        self._finished = True
        self._socket.send(m.LeaveSfu())
        await self._socket.close()
        await self.close()

    async def close(self) -> None:
        """End everything at once. Safe twice."""
        self._finished = True
        if self._want_timer is not None:
            self._want_timer.cancel()
        for task in [task for task in self._tasks if task is not asyncio.current_task()]:
            task.cancel()
        self._up.close()
        self._down.close()
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self._socket.close()

    @property
    def transports(self) -> list[MediaTransport]:
        """Its peer connections, for counting."""
        return [transport for transport in (self._up.transport, self._down.transport) if transport is not None]

    @property
    def publish_transport(self) -> MediaTransport | None:
        """The publish connection; None before there is one."""
        return self._up.transport

    @property
    def subscribe_transport(self) -> MediaTransport | None:
        """The subscribe connection; None before the SFU has offered anything."""
        return self._down.transport

    @property
    def repaired(self) -> int:
        """Lost packets that retransmissions brought."""
        return self._down.repaired

    # --- the websocket ---

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        _keep(coroutine, self._tasks)

    def _close(self, transport: MediaTransport) -> None:
        _keep(transport.close(), self._closing)

    def _fail(self, reason: str) -> None:
        if not self._finished:
            self._finished = True
            self._owner.link_down(self, reason)

    def _away(self, reason: str) -> None:
        if not self._finished:
            self._owner.link_away(self, reason)

    def _message(self, message: m.ToMedia) -> None:
        if self._finished:
            return
        try:
            match message:
                case m.PublishAnswer():
                    self._up.answer(message)
                case m.SubscribeOffer():
                    self._down.offer(message)
                case Failed():
                    self._refused(message)
                case _:
                    self._owner.link_message(self, message)
        except BadSdp as error:
            self._unusable(error.code)

    def _refused(self, message: Failed) -> None:
        broken = message.code not in REFUSALS
        if broken and message.request == "subscribe":
            self._spawn(self._down.end_there(self._send_want))
        elif broken and message.request == "publish-offer":
            if self._up.settled:
                self._up.close()
                self._up_failed(message.code)
        elif message.request in ("", "enter") and self.number is not None and self._up.transport is None:
            number, self.number = self.number, None
            self._socket.keep_grants()
            self._owner.link_refused(self, number, message.code)
        else:
            self._owner.link_message(self, message)

    def _unusable(self, reason: str) -> None:
        """What the SFU describes is of no use to us: a player that publishes here looks for another SFU."""
        if self.number is None:
            self._fail(reason)
        else:
            self._owner.link_away(self, reason)

    def _on_entered(self, complete: bool) -> None:
        if self._finished:
            return
        if self.was_inside:  # what we said on the websocket before may not have arrived
            self._say_again()
        elif complete and self.number is not None:
            self._offer_all()
        self.was_inside, self._reviving = True, False
        self._owner.link_entered(self, carrying=complete and self.number is not None)

    def _say_again(self) -> None:
        if self._wanted or self._down.transport is not None:
            self._send_want()
        if self.number is None:
            self._up.stop_all()
        elif not self._reviving or self._up.outdated or not self._up.settled:
            self._offer_all()

    def _offer_all(self) -> None:
        if self._up.has_tracks:
            self._up.offer(self._generation)

    # --- the peer connections ---

    def _up_failed(self, reason: str) -> None:
        if self._finished:
            return
        if self._down.connected:
            self._owner.link_unpublished(self, reason)
        else:
            self._fail(reason)

    def _down_connected(self) -> None:
        if self._up.transport is None and self.number is not None:
            self._owner.link_connected(self)

    def _down_failed(self, reason: str) -> bool:
        if self._finished or self._up.transport is not None:
            return not self._finished
        self._fail(reason)
        return False

    def _unit(self, stream: Incoming, unit: bytes, timestamp: int, at: float) -> None:
        self.delivers = True
        self._owner.link_unit(self, stream, unit, timestamp, at)


def _keep(coroutine: Coroutine[Any, Any, None], tasks: set[asyncio.Task[None]]) -> None:
    task = asyncio.create_task(coroutine)
    tasks.add(task)
    task.add_done_callback(tasks.discard)
