"""A player's websocket to an SFU, as far as a load needs it: enter, publish or subscribe once, and stay."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence
from typing import TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from bench.capacity import sdp as capacity_sdp
from bench.relay.peers import OfferedTrack, TransportAnswer
from localfleet.errors import FleetFailed
from shared.errors import UnknownMessage
from shared.messages import media as m
from shared.messages.base import Message, encode
from shared.messages.player import Failed
from shared.rtc import sdp
from shared.rtc.dtls import Fingerprint
from shared.tokens import SFU_TOKEN_TTL_S, SfuClaims, issue

ANSWER_WITHIN_S = 30.0
M = TypeVar("M", bound=Message)


class SfuPlayer:
    """One session on the SFU at `address`; open it with `enter`."""

    def __init__(self, *, sfu: str, address: str, secret: str, player: str, room: str) -> None:
        self._sfu = sfu
        self._address = address
        claims = SfuClaims(sfu=sfu, room=room, player=player, identity=player)
        self._token = issue(claims, secret=secret, now_at=time.time(), ttl_s=SFU_TOKEN_TTL_S)
        self._heard: asyncio.Queue[m.ToMedia] = asyncio.Queue()
        self._websocket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None

    async def enter(self) -> None:
        """Raises `FleetFailed` when it is not let in; `TimeoutError`, as the others do, when there is no answer."""
        try:
            self._websocket = await connect(
                self._address, open_timeout=ANSWER_WITHIN_S, max_size=None, compression=None, proxy=None
            )
        except TimeoutError:
            raise
        except (OSError, InvalidHandshake) as error:
            raise self._failed(f"takes no players: {error}") from None
        self._reader = asyncio.create_task(self._read(self._websocket))
        await self._say(m.Enter(token=self._token))
        await self._answer(m.Entered)

    async def publish(self, tracks: Sequence[tuple[str, OfferedTrack]], fingerprint: Fingerprint) -> TransportAnswer:
        """Offer these, by publication id; where to send them. Raises `FleetFailed`, `BadSdp`."""
        offers = tuple(m.TrackOffer(mid=one.mid, publication=name, kind=one.kind) for name, one in tracks)
        text = capacity_sdp.publish_offer([track for _, track in tracks], fingerprint)
        await self._say(m.PublishOffer(sdp=text, tracks=offers))
        answer = await self._answer(m.PublishAnswer)
        return capacity_sdp.far_end(sdp.parse(answer.sdp))

    async def subscribe(self, publications: Sequence[str], fingerprint: Fingerprint) -> TransportAnswer:
        """Want these, which are there, and take what is offered. Raises `FleetFailed`, `BadSdp`."""
        await self._say(m.Subscribe(publications=tuple(publications)))
        told = await self._answer(m.SubscribeOffer)
        if missing := set(publications) - {track.publication for track in told.tracks}:
            raise self._failed(f"offers {len(missing)} of {len(publications)} publications not")
        offer = sdp.parse(told.sdp)
        text = capacity_sdp.subscribe_answer(offer, fingerprint)
        await self._say(m.SubscribeAnswer(sdp=text, negotiation=told.negotiation))
        return capacity_sdp.far_end(offer)

    async def close(self) -> None:
        """Leave."""
        if self._websocket is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._websocket.send(encode(m.LeaveSfu()))
        await self.drop()

    async def drop(self) -> None:
        """Let go at once: the SFU has ended, or is about to."""
        if self._websocket is not None:
            self._websocket.transport.abort()
        if self._reader is not None:
            self._reader.cancel()
            await asyncio.gather(self._reader, return_exceptions=True)

    async def _say(self, message: Message) -> None:
        assert self._websocket is not None
        try:
            await self._websocket.send(encode(message))
        except ConnectionClosed as closed:
            raise self._failed(f"closed a player's websocket: {closed}") from None

    async def _answer(self, kind: type[M]) -> M:
        """The next message of a kind; others are news that a load has no use for."""
        async with asyncio.timeout(ANSWER_WITHIN_S):
            while True:
                message = await self._heard.get()
                if isinstance(message, kind):
                    return message
                if isinstance(message, Failed):
                    raise self._failed(f"refused a player: {message.code} {message.message}")

    async def _read(self, websocket: ClientConnection) -> None:
        """Keep reading, so that the SFU's pings are answered."""
        with contextlib.suppress(ConnectionClosed):
            async for frame in websocket:
                with contextlib.suppress(UnknownMessage):
                    message = m.from_sfu.read(frame)
                    if isinstance(message, m.Entered | m.PublishAnswer | m.SubscribeOffer | Failed):
                        self._heard.put_nowait(message)
        self._heard.put_nowait(Failed(code="closed", message=websocket.close_reason or ""))

    def _failed(self, detail: str) -> FleetFailed:
        return FleetFailed(program=self._sfu, detail=detail)
