"""A player whose media is another WebRTC stack's: we speak the protocol for it, it makes and takes descriptions."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from shared.messages import media, player
from shared.messages.base import Message, Reader, encode
from shared.tokens import PlayerClaims, issue
from tests.fakes.sfu_process import until
from tests.interop.peer import PeerProcess, Stack

M = TypeVar("M")
WITHIN_S = 60.0


class ForeignPlayer:
    """`await ForeignPlayer.join(...)`, then `publish` and `subscribe`; its home is the one SFU it uses."""

    def __init__(self, name: str, peer: PeerProcess) -> None:
        self.name = name
        self.peer = peer
        self.heard: list[Any] = []
        self.answered: set[str] = set()
        """Publications of others for which an offer was answered."""
        self.sfu = ""
        self._router: ClientConnection | None = None
        self._media: ClientConnection | None = None
        self._leaving = False
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    async def join(cls, stack: Stack, *, router: str, secret: str, room: str) -> ForeignPlayer:
        self = cls(stack.name, await PeerProcess.start(stack))
        self._router = await self._open(f"{router}/player", player.to_player)
        claims = PlayerClaims(room=room, identity=stack.name)
        await self._tell(player.Join(token=issue(claims, secret=secret, now_at=time.time(), ttl_s=60)))
        assignment = (await self.wait(player.Welcome)).assignment
        assert assignment is not None
        self.sfu = assignment.sfu
        self._media = await self._open(assignment.address, media.from_sfu)
        await self._say(media.Enter(token=assignment.token))
        await self.wait(media.Entered)
        return self

    async def publish(self) -> None:
        """Returns when all that it sends flows and the room knows."""
        offer = await self.peer.ask("offer")
        tracks = {f"{self.name}-{track['kind']}": track for track in offer["tracks"]}
        await self._say(
            media.PublishOffer(
                sdp=offer["sdp"],
                negotiation=1,
                tracks=tuple(
                    media.TrackOffer(mid=track["mid"], publication=publication, kind=track["kind"])
                    for publication, track in tracks.items()
                ),
            )
        )
        answer = await self.wait(media.PublishAnswer)
        await self.peer.ask("answer", sdp=answer.sdp)
        await until(lambda: {m.publication for m in self.of(media.PublicationFlowing)} == tracks.keys())
        for publication, track in tracks.items():
            await self._tell(player.Publish(publication=publication, kind=track["kind"], sfu=self.sfu))

    async def subscribe(self, count: int) -> None:
        """Wait until others have published that many tracks, ask for all of them, and take what is offered."""
        await until(lambda: len(self.others()) >= count)
        wanted = self.others()
        await self._say(media.Subscribe(publications=tuple(sorted(wanted))))
        await until(lambda: self.answered >= wanted)

    def others(self) -> set[str]:
        """Publications of the room that are not ours."""
        records = [record for welcome in self.of(player.Welcome) for record in welcome.snapshot.publications]
        records += [record for update in self.of(player.RoomUpdate) for record in update.publications]
        return {record.publication for record in records if not record.publication.startswith(f"{self.name}-")}

    async def stats(self) -> dict[str, Any]:
        return await self.peer.ask("stats")

    async def until_received(self, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Its figures once they are enough."""
        async with asyncio.timeout(WITHIN_S):
            while not enough(stats := await self.stats()):  # noqa: ASYNC110 - another program is asked
                await asyncio.sleep(0.2)
        return stats

    async def leave(self) -> None:
        self._leaving = True
        if self._media is not None:
            with contextlib.suppress(ConnectionClosed):
                await self._say(media.LeaveSfu())
        for websocket in (self._media, self._router):
            if websocket is not None:
                await websocket.close()
        await asyncio.gather(*self._tasks)
        await self.peer.close()

    # --- inside ---

    def of(self, kind: type[M]) -> list[M]:
        return [message for message in self.heard if isinstance(message, kind)]

    async def wait(self, kind: type[M]) -> M:
        await until(lambda: bool(self.of(kind)) or bool(self.of(player.Failed)))
        assert not self.of(player.Failed), self.of(player.Failed)
        return self.of(kind)[0]

    async def _open(self, url: str, reader: Reader[Any]) -> ClientConnection:
        websocket = await connect(url, compression=None, max_size=None)
        self._tasks.append(asyncio.create_task(self._read(websocket, reader)))
        return websocket

    async def _read(self, websocket: ClientConnection, reader: Reader[Any]) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for frame in websocket:
                message = reader.read(frame)
                self.heard.append(message)
                if isinstance(message, media.SubscribeOffer) and not self._leaving:
                    answer = await self.peer.ask("subscribe", sdp=message.sdp)
                    await self._say(media.SubscribeAnswer(sdp=answer["sdp"], negotiation=message.negotiation))
                    self.answered |= {track.publication for track in message.tracks}

    async def _tell(self, message: Message) -> None:
        assert self._router is not None
        await self._router.send(encode(message))

    async def _say(self, message: Message) -> None:
        assert self._media is not None
        await self._media.send(encode(message))
