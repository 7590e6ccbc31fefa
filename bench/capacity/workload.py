"""A meeting-like load of so many forwarded streams: rooms in which everybody talks, and those with a camera show it."""

from __future__ import annotations

from bench.relay.workloads import OPUS, Frames, RoomPublisher, Setup, Subscriber, TrackMedia, Workload, video

FRAMES_PER_S = 30
MOST_PAYLOAD = 1178
"""Bytes of a packet's payload, as browsers cut frames at 1200 bytes."""


def camera(kbps: float) -> TrackMedia:
    """Video at this rate: each frame in packets of equal size, but for a byte."""
    return video(frames_of(kbps))


def frames_of(kbps: float) -> Frames:
    """The one frame that is sent over and over: its packets' payloads [bytes]."""
    size = max(16, round(kbps * 1000 / 8 / FRAMES_PER_S))
    count = -(-size // MOST_PAYLOAD)
    longer = size % count
    return ((size // count,) * (count - longer) + (size // count + 1,) * longer,)


def has_camera(place: int, cameras: float) -> bool:
    """Whether the room's player in this place shows video, so that `cameras` [0..1] of them do, spread evenly."""
    return int((place + 1) * cameras + 1e-9) > int(place * cameras + 1e-9)


def meeting(streams: int, *, room_size: int, kbps: float, cameras: float) -> Setup:
    """Rooms with `streams` forwarded streams in all; one less when the next player's sound and picture do not fit.

    Rooms are filled one after the other. In the last one not everybody gets everybody.
    """
    show = camera(kbps)
    publishers: list[RoomPublisher] = []
    subscribers: list[Subscriber] = []
    left = streams
    room = 0
    while left > 0:
        first = room * room_size
        media = [(show, OPUS) if has_camera(place, cameras) else (OPUS,) for place in range(room_size)]
        before = left
        for place in range(room_size):
            gets = []
            for other in range(room_size):
                if other != place and len(media[other]) <= left:
                    gets.append(first + other)
                    left -= len(media[other])
            if gets:
                subscribers.append(Subscriber(room=room, publishers=tuple(gets)))
        if left == before:
            break
        publishers += [RoomPublisher(room=room, media=one) for one in media]
        room += 1
    return Setup(publishers=tuple(publishers), subscribers=tuple(subscribers))


def count_streams(setup: Setup) -> int:
    """Forwarded streams of it."""
    return sum(len(setup.publishers[publisher].media) for one in setup.subscribers for publisher in one.publishers)


def workload(*, room_size: int, kbps: float, cameras: float) -> Workload:
    """The workload for the generator; its size counts streams."""
    return Workload(
        name="meeting",
        about=about(room_size=room_size, kbps=kbps, cameras=cameras),
        setup=lambda streams: meeting(streams, room_size=room_size, kbps=kbps, cameras=cameras),
        size=100,
    )


def about(*, room_size: int, kbps: float, cameras: float) -> str:
    """The workload in words."""
    pictures = f"{cameras:.0%} of them with {kbps:g} kbit/s video" if cameras else "without video"
    return f"rooms of {room_size} in which all talk (Opus, 32 kbit/s), {pictures}"
