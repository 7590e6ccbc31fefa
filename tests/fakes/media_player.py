"""A player at an SFU, in the test's own process: the real websocket protocol, and two real peer connections."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TypeVar

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from shared.messages.base import Message, encode
from shared.messages.media import (
    Enter,
    Entered,
    PublishAnswer,
    PublishOffer,
    Subscribe,
    SubscribeAnswer,
    SubscribeOffer,
    ToMedia,
    TrackOffer,
    from_sfu,
)
from shared.rtc import rtp, sdp
from shared.rtc.sdp import Direction, ExtensionUri, MediaSection
from shared.tokens import SfuClaims, issue
from tests.fakes.plane_rig import vp8_payload
from tests.fakes.rtc_peer import RtcPeer
from tests.fakes.sfu_process import SECRET, until

M = TypeVar("M")
MID_ID = 4
SSRCS = {"audio": 1111, "video": 2222}


def media_token(
    player: str, *owned: str, sfu: str = "sfu-t", room: str = "room", ttl_s: float = 60.0, **grants: bool
) -> str:
    """What a router would issue that knows of these publications of the player."""
    claims = SfuClaims(sfu=sfu, room=room, player=player, identity=f"id-{player}", publications=owned, **grants)
    return issue(claims, secret=SECRET, now_at=time.time(), ttl_s=ttl_s)


class MediaPlayer:
    """One player; `enter` it, then `publish` and `subscribe`."""

    def __init__(self, address: str, name: str) -> None:
        self.address = address
        self.name = name
        self.heard: list[ToMedia] = []
        self.websocket: ClientConnection | None = None
        self.close_code: int | None = None
        self.sending: RtcPeer | None = None
        self.receiving: RtcPeer | None = None
        self.tracks: dict[str, str] = {}
        """Publication -> mid, of the last offer."""
        self._sent = 0
        self._tasks: list[asyncio.Task[None]] = []

    # --- websocket ---

    async def open(self) -> None:
        self.close_code = None
        self.websocket = await connect(self.address, compression=None, max_size=None)
        self._tasks.append(asyncio.create_task(self._read(self.websocket)))

    async def enter(self, token: str | None = None, **grants: bool) -> Entered:
        await self.open()
        await self.say(Enter(token=token or media_token(self.name, **grants)))
        return await self.wait(Entered)

    async def say(self, message: Message) -> None:
        assert self.websocket is not None
        await self.websocket.send(encode(message))

    async def _read(self, websocket: ClientConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            async for frame in websocket:
                message = from_sfu.read(frame)
                self.heard.append(message)
                if isinstance(message, SubscribeOffer):
                    await self._answer(message)
        if self.websocket is websocket:
            self.close_code = websocket.close_code

    def of(self, kind: type[M]) -> list[M]:
        return [message for message in self.heard if isinstance(message, kind)]

    async def wait(self, kind: type[M], *, count: int = 1, within_s: float = 60.0) -> M:
        """The `count`th message of a kind."""
        await until(lambda: len(self.of(kind)) >= count, within_s=within_s)
        return self.of(kind)[count - 1]

    async def wait_closed(self, *, within_s: float = 60.0) -> int:
        await until(lambda: self.close_code is not None, within_s=within_s)
        assert self.close_code is not None
        return self.close_code

    async def drop_websocket(self) -> None:
        """As a broken network does: without a word."""
        websocket, self.websocket = self.websocket, None
        assert websocket is not None
        websocket.transport.abort()

    async def close(self) -> None:
        for peer in (self.sending, self.receiving):
            if peer is not None:
                await peer.close()
        if self.websocket is not None:
            await self.websocket.close()
        await asyncio.gather(*self._tasks)

    # --- publishing ---

    def sections(self, *kinds: str, peer: RtcPeer) -> list[MediaSection]:
        codecs = {"audio": (sdp.opus(111),), "video": (sdp.vp8(96), sdp.rtx(97, apt=96))}
        return [
            MediaSection(
                kind=kind, mid=str(mid), direction=Direction.SENDONLY, ufrag=peer.ufrag, pwd="p" * 24,
                fingerprints=(sdp.Fingerprint(*peer.fingerprint),), setup="actpass", codecs=codecs[kind],
                extensions=(sdp.Extension(id=MID_ID, uri=ExtensionUri.MID),), rtcp_mux=True, rtcp_rsize=True,
            )
            for mid, kind in enumerate(kinds)
        ]  # fmt: skip

    async def publish(self, **publications: str) -> PublishAnswer:
        """Publish `kind=publication` and connect; send with `send`."""
        peer = self.sending = self.sending or await RtcPeer.open(("127.0.0.1", 9))
        tracks = tuple(
            TrackOffer(mid=str(mid), publication=publication, kind=kind)
            for mid, (kind, publication) in enumerate(publications.items())
        )
        offer = sdp.describe(self.sections(*publications, peer=peer), session_id="1", version=1)
        before = len(self.of(PublishAnswer))
        await self.say(PublishOffer(sdp=sdp.write(offer), tracks=tracks, negotiation=before + 1))
        answer = await self.wait(PublishAnswer, count=before + 1)
        await _connect(peer, sdp.parse(answer.sdp))
        return answer

    def send(self, kind: str = "video", *, mid: str = "0") -> None:
        """One packet; the first one of video is a key frame."""
        assert self.sending is not None
        number, self._sent = self._sent, self._sent + 1
        video = kind == "video"
        payload = vp8_payload(key=True, picture_id=number, tl0=number) if video else number.to_bytes(4, "big")
        packet = rtp.build(
            payload_type=96 if video else 111,
            sequence=number & 0xFFFF,
            timestamp=number * (3000 if video else 960),
            ssrc=SSRCS[kind],
            payload=payload,
            marker=video,
            extension_elements=[(MID_ID, mid.encode())],
        )
        self.sending.send_rtp(packet)

    async def send_until(self, condition: object, *, kind: str = "video", mid: str = "0") -> None:
        """Send a packet each few milliseconds until something has come true."""
        assert callable(condition)
        async with asyncio.timeout(60):
            while not condition():
                self.send(kind, mid=mid)
                await asyncio.sleep(0.01)

    # --- subscribing ---

    async def subscribe(self, *publications: str) -> None:
        await self.say(Subscribe(publications=publications))

    async def _answer(self, message: SubscribeOffer) -> None:
        offer = sdp.parse(message.sdp)
        peer = self.receiving
        fresh = peer is None
        if peer is None:
            first = offer.media[0].candidates[0]
            peer = self.receiving = await RtcPeer.open((first.ip, first.port))
        self.tracks = {track.publication: track.mid for track in message.tracks}
        answer = sdp.describe(
            [subscribe_section(section, peer) for section in offer.media], session_id="2", version=message.negotiation
        )
        await self.say(SubscribeAnswer(sdp=sdp.write(answer), negotiation=message.negotiation))
        if fresh:
            self._tasks.append(asyncio.create_task(_connect(peer, offer)))

    @property
    def received(self) -> int:
        """Media packets received."""
        return len(self.receiving.received) if self.receiving else 0


def subscribe_section(section: MediaSection, peer: RtcPeer) -> MediaSection:
    """What a browser answers to an m-line: everything is fine."""
    receives = section.direction is Direction.SENDONLY
    return MediaSection(
        kind=section.kind, mid=section.mid, direction=Direction.RECVONLY if receives else Direction.INACTIVE,
        ufrag=peer.ufrag, pwd="p" * 24, fingerprints=(sdp.Fingerprint(*peer.fingerprint),), setup="active",
        codecs=section.codecs, extensions=section.extensions, rtcp_mux=True, rtcp_rsize=True,
    )  # fmt: skip


async def _connect(peer: RtcPeer, description: sdp.SessionDescription) -> None:
    section = next(section for section in description.media if not section.rejected)
    candidate = section.candidates[0]
    peer.server = (candidate.ip, candidate.port)
    if peer.session is None:
        fingerprint = section.fingerprints[0]
        await peer.connect(section.ufrag, section.pwd, type(peer.fingerprint)(fingerprint.algorithm, fingerprint.value))
