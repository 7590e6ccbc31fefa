"""The subscribe connection of a media link: the SFU offers, and a connection that fails is opened again."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from player.core import session_sdp
from player.core.session_sdp import FarEnd
from player.shell.receiver import PacketHandler, Receiver, UnitHandler
from player.shell.transport import MediaTransport, TransportFailed
from shared.jitter import full_jitter
from shared.messages import media as m
from shared.messages.base import Message
from shared.rtc import sdp


@dataclass(frozen=True, slots=True)
class DownlinkCallbacks:
    """What it asks of its link."""

    send: Callable[[Message], bool]
    spawn: Callable[[Coroutine[Any, Any, None]], None]
    """Run this for as long as the link lives."""
    close: Callable[[MediaTransport], None]
    """It is of no more use."""
    unit: UnitHandler
    connected: Callable[[], None]
    """Media can come."""
    failed: Callable[[str], bool]
    """The connection could not be opened, or broke: whether to open it again."""


class Downlink:
    """Feed it the SFU's offers. What it hears goes on over a connection that is opened again."""

    def __init__(
        self, callbacks: DownlinkCallbacks, *, cname: str, on_packet: PacketHandler | None, rng: random.Random
    ) -> None:
        self.receiver: Receiver | None = None
        self.transport: MediaTransport | None = None
        self._tell = callbacks
        self._cname = cname
        self._on_packet = on_packet
        self._rng = rng
        self._far: FarEnd | None = None
        self._attempt = 0

    @property
    def connected(self) -> bool:
        """Media can come, as far as we know."""
        return self.transport is not None and self.transport.connected

    @property
    def repaired(self) -> int:
        """Lost packets that retransmissions brought."""
        return self.receiver.repaired if self.receiver is not None else 0

    def tap(self, on_packet: PacketHandler) -> None:
        """From now on hand over each packet as well."""
        self._on_packet = on_packet
        if self.receiver is not None:
            self.receiver.on_packet = on_packet

    def offer(self, message: m.SubscribeOffer) -> None:
        """Answer it. Raises `BadSdp`."""
        offer = sdp.parse(message.sdp)
        far = session_sdp.far_end(offer)
        fresh = self.transport is None or self._far is None or far.ufrag != self._far.ufrag
        if fresh:
            self._begin(far)
        assert self.transport is not None
        assert self.receiver is not None
        self.receiver.set_streams(session_sdp.incoming(offer, message.tracks))
        text = session_sdp.answer_subscribe(offer, self.transport.own, version=message.negotiation)
        self._tell.send(m.SubscribeAnswer(sdp=text, negotiation=message.negotiation))
        if fresh:
            self._tell.spawn(self._connect(self.transport, far))

    async def end_there(self, subscribe: Callable[[], None]) -> None:
        """The SFU has lost its end: end ours, and `subscribe` again in a moment, for another offer."""
        self.close()
        await asyncio.sleep(self._pause())
        if self.transport is None:
            subscribe()

    def close(self) -> None:
        """End it. Safe twice; a later offer begins another."""
        transport, self.transport = self.transport, None
        if transport is not None:
            self._tell.close(transport)

    # --- inside ---

    def _begin(self, far: FarEnd) -> None:
        """An SFU's end that we have not met yet: after an SFU has lost ours, it offers another."""
        self._replace(None)
        self._far = far
        assert self.transport is not None
        self.receiver = Receiver(
            self.transport,
            on_unit=self._tell.unit,
            on_packet=self._on_packet,
            ssrc=int(self.transport.own.ufrag, 16),
            cname=self._cname,
        )

    def _replace(self, again: MediaTransport | None) -> MediaTransport:
        old = self.transport
        new = self.transport = MediaTransport(
            on_rtp=self._on_rtp,
            on_rtcp=self._on_rtcp,
            on_closed=lambda reason: self._failed(new, reason),
            again=again,
        )
        if self.receiver is not None:
            self.receiver.transport = new
        if old is not None:
            self._tell.close(old)
        return new

    async def _connect(self, transport: MediaTransport, far: FarEnd) -> None:
        try:
            await transport.connect(far)
        except TransportFailed as error:
            self._failed(transport, error.code)
        else:
            self._attempt = 0
            self._tell.connected()

    def _failed(self, transport: MediaTransport, reason: str) -> None:
        if transport is self.transport and self._tell.failed(reason):
            self._tell.spawn(self._again(transport))

    async def _again(self, failed: MediaTransport) -> None:
        await asyncio.sleep(self._pause())
        if failed is self.transport and self._far is not None:
            await self._connect(self._replace(failed), self._far)

    def _pause(self) -> float:
        self._attempt += 1
        return full_jitter(self._attempt - 1, self._rng)

    def _on_rtp(self, packet: bytes, at: float) -> None:
        if self.receiver is not None:
            self.receiver.on_rtp(packet, at)

    def _on_rtcp(self, compound: bytes, at: float) -> None:
        if self.receiver is not None:
            self.receiver.on_rtcp(compound, at)
