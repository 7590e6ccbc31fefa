"""Who publishes what to whom in `sluice bench relay`."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

Frames = tuple[tuple[int, ...], ...]

ROOM = 8
"""Players of a room in the room workloads."""

SPEAKERS = 10
"""Publishers of `audio`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TrackMedia:
    """What a track carries: a cycle of frames, each a tuple of its packets' payload lengths [bytes]."""

    kind: Literal["audio", "video"]
    frames: Frames
    interval_ns: int
    ticks: int
    """RTP clock per frame."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomPublisher:
    """A player that sends one track for each of `media`."""

    room: int
    media: tuple[TrackMedia, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Subscriber:
    """A player that receives."""

    room: int
    publishers: tuple[int, ...]
    """Whom it receives, all tracks: places in `Setup.publishers`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Setup:
    """One run."""

    publishers: tuple[RoomPublisher, ...]
    subscribers: tuple[Subscriber, ...]


class Course(StrEnum):
    """What happens while it is measured."""

    STEADY = "steady"
    """Nothing but media."""
    STORM = "storm"
    """Many more subscribers join at once."""
    CHURN = "churn"
    """Subscribers join and leave, over and over."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Workload:
    """`setup(n)` for n subscribers, or rooms."""

    name: str
    about: str
    setup: Callable[[int], Setup]
    size: int
    """n unless told otherwise."""
    course: Course = Course.STEADY
    joins: int = 0
    """How many join besides, in a storm or churn, unless told otherwise."""


def video(frames: Frames) -> TrackMedia:
    """30 frames a second of a 90 kHz clock."""
    return TrackMedia(kind="video", frames=frames, interval_ns=1_000_000_000 // 30, ticks=3000)


BURST = video(((1178,) * 7,))
"""2 Mbit/s: 7 packets of 1200 bytes and a little a frame."""

SMALL_BURST = video(((1040, 1040),))
"""500 kbit/s."""

OPUS = TrackMedia(kind="audio", frames=((80,),), interval_ns=20_000_000, ticks=960)
"""32 kbit/s in packets of 20 ms."""


def webcam(*, rng: random.Random, frames: int = 300) -> TrackMedia:
    """As libwebrtc cuts a frame: equal parts, the last few a byte longer; 4.8 packets a frame on average."""
    return video(tuple(_webcam_frame(rng) for _ in range(frames)))


def _webcam_frame(rng: random.Random) -> tuple[int, ...]:
    count = rng.choices((3, 4, 5, 6, 7), weights=(15, 25, 30, 20, 10))[0]
    size = rng.randrange(900, 1180)
    longer = rng.randrange(count)
    return (size,) * (count - longer) + (size + 1,) * longer


def fanout(media: TrackMedia) -> Callable[[int], Setup]:
    """One publisher with sound, and n who watch."""
    return lambda n: Setup(
        publishers=(RoomPublisher(room=0, media=(media, OPUS)),),
        subscribers=tuple(Subscriber(room=0, publishers=(0,)) for _ in range(n)),
    )


def speakers(n: int) -> Setup:
    """Ten who speak, and n who listen to all of them."""
    return Setup(
        publishers=tuple(RoomPublisher(room=0, media=(OPUS,)) for _ in range(SPEAKERS)),
        subscribers=tuple(Subscriber(room=0, publishers=tuple(range(SPEAKERS))) for _ in range(n)),
    )


def rooms(media: TrackMedia) -> Callable[[int], Setup]:
    """n rooms of eight, where everybody publishes and gets the other seven."""
    return lambda n: Setup(
        publishers=tuple(RoomPublisher(room=number // ROOM, media=(media, OPUS)) for number in range(n * ROOM)),
        subscribers=tuple(
            Subscriber(
                room=number // ROOM,
                publishers=tuple(
                    other for other in range(number // ROOM * ROOM, (number // ROOM + 1) * ROOM) if other != number
                ),
            )
            for number in range(n * ROOM)
        ),
    )


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload(
            name="fanout",
            about="1 publisher of 2 Mbit/s video in bursts of 7 packets, and Opus, to N",
            setup=fanout(BURST),
            size=200,
        ),
        Workload(
            name="webcam",
            about="the same with frames of 4.8 packets that differ by a byte",
            setup=fanout(webcam(rng=random.Random(1))),
            size=200,
        ),
        Workload(name="audio", about="10 speakers to N", setup=speakers, size=400),
        Workload(
            name="rooms",
            about="N rooms of 8 where all publish 500 kbit/s video and Opus",
            setup=rooms(SMALL_BURST),
            size=10,
        ),
        Workload(name="rooms2m", about="the same with 2 Mbit/s", setup=rooms(BURST), size=10),
        Workload(
            name="storm",
            about="`fanout` to N while 100 more join at once; delay and loss are those of this time",
            setup=fanout(BURST),
            size=200,
            course=Course.STORM,
            joins=100,
        ),
        Workload(
            name="churn",
            about="`fanout` to N while others join and leave 2,000 times: does memory come back?",
            setup=fanout(BURST),
            size=50,
            course=Course.CHURN,
            joins=2000,
        ),
    )
}


def unit(workload: str) -> str:
    """What the size of a workload counts."""
    return "rooms" if WORKLOADS[workload].setup(1).subscribers[1:] else "subscribers"
