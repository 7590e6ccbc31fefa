"""Who publishes what to whom in `sluice bench relay`."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bench.relay_load import Client, Track

FRAME_S = 1 / 30
AUDIO_S = 0.02
_VP8_HEAD = b"\x90\xe0\x80\x00\x00\x00"
KEY_EVERY = 60
"""Frames between key frames."""


class Publisher:
    """Sends a video in bursts, one frame at a time, an audio track, or both."""

    def __init__(
        self, client: Client, *, first: int, video_sizes: Callable[[], Sequence[int]] | None, audio: bool
    ) -> None:
        self.client = client
        self._sizes = video_sizes
        self._video = Track(ssrc=first + 1, mid=str(first), payload_type=96, ticks=3000) if video_sizes else None
        self._audio = Track(ssrc=first + 2, mid=str(first + 1), payload_type=111, ticks=960) if audio else None
        self._frames = 0

    def tracks(self) -> Iterator[tuple[Track, str]]:
        if self._video is not None:
            yield self._video, "video"
        if self._audio is not None:
            yield self._audio, "audio"

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            if self._video is not None:
                group.create_task(self._every(FRAME_S, self._frame))
            if self._audio is not None:
                group.create_task(self._every(AUDIO_S, self._sound))

    async def _every(self, interval_s: float, send: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + random.random() * interval_s
        while True:
            await asyncio.sleep(max(0.0, at - loop.time()))
            send()
            at += interval_s

    def _frame(self) -> None:
        assert self._video is not None
        assert self._sizes is not None
        key = self._frames % KEY_EVERY == 0
        payloads = []
        for number, size in enumerate(self._sizes()):
            head = bytearray(_VP8_HEAD)
            head[0] = 0x90 if number == 0 else 0x80
            head[2:4] = (0x8000 | self._frames & 0x7FFF).to_bytes(2, "big")
            head[4] = self._frames & 0xFF
            tail = b"body" + (self._video.sent + number).to_bytes(4, "big")
            payloads.append(bytes(head) + (b"\x00" if key else b"\x01") + bytes(size - 15) + tail)
        self._frames += 1
        self._send(self._video.packets(payloads))

    def _sound(self) -> None:
        assert self._audio is not None
        self._send(self._audio.packets([os.urandom(72) + b"body" + self._audio.sent.to_bytes(4, "big")]))

    def _send(self, packets: list[bytes]) -> None:
        session = self.client.session
        assert session is not None
        for packet in packets:
            self.client.send(session.protect(packet))


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """One run: how many peers, and what to make of them once they have joined."""

    subscribers: int
    extra_publishers: int
    publishers: Callable[[list[Client]], list[Publisher]]
    consumes: Callable[[list[Client]], list[tuple[Client, int, str]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """`setup(n)` for about n subscribers."""

    name: str
    setup: Callable[[int], Setup]


def burst() -> list[int]:
    """2 Mbit/s at 30 frames a second: 7 packets of 1200 bytes."""
    return [1178] * 7


def webcam() -> list[int]:
    """As libwebrtc cuts a frame: equal parts, the last few a byte longer; 4.8 packets a frame on average."""
    count = random.choices((3, 4, 5, 6, 7), weights=(15, 25, 30, 20, 10))[0]
    size = random.randrange(900, 1180)
    longer = random.randrange(count)
    return [size] * (count - longer) + [size + 1] * longer


def room_burst() -> list[int]:
    """500 kbit/s: two packets a frame."""
    return [1040, 1040]


def _fanout(name: str, sizes: Callable[[], Sequence[int]]) -> Workload:
    def setup(subscribers: int) -> Setup:
        return Setup(
            subscribers=subscribers,
            extra_publishers=1,
            publishers=lambda clients: [Publisher(clients[-1], first=100, video_sizes=sizes, audio=True)],
            consumes=lambda clients: [
                (client, producer, kind)
                for client in clients[:-1]
                for producer, kind in ((100, "video"), (101, "audio"))
            ],
        )

    return Workload(name=name, setup=setup)


def _audio(subscribers: int) -> Setup:
    speakers = 10
    return Setup(
        subscribers=subscribers,
        extra_publishers=speakers,
        publishers=lambda clients: [
            Publisher(client, first=100 + 10 * number, video_sizes=None, audio=True)
            for number, client in enumerate(clients[-speakers:])
        ],
        consumes=lambda clients: [
            (client, 101 + 10 * number, "audio") for client in clients[:-speakers] for number in range(speakers)
        ],
    )


def _rooms(sizes: Callable[[], Sequence[int]]) -> Callable[[int], Setup]:
    def setup(rooms: int) -> Setup:
        return Setup(
            subscribers=8 * rooms,
            extra_publishers=0,
            publishers=lambda clients: [
                Publisher(client, first=100 + 10 * number, video_sizes=sizes, audio=True)
                for number, client in enumerate(clients)
            ],
            consumes=lambda clients: [
                (client, 100 + 10 * (number // 8 * 8 + other) + offset, kind)
                for number, client in enumerate(clients)
                for other in range(8)
                if other != number % 8
                for offset, kind in ((0, "video"), (1, "audio"))
            ],
        )

    return setup


WORKLOADS = {
    "fanout": _fanout("fanout", burst),
    "webcam": _fanout("webcam", webcam),
    "audio": Workload(name="audio", setup=_audio),
    "rooms": Workload(name="rooms", setup=_rooms(room_burst)),
    "rooms2m": Workload(name="rooms2m", setup=_rooms(burst)),
}
"""`rooms`: the number given is that of rooms of eight; `rooms2m` the same with 2 Mbit/s each."""
