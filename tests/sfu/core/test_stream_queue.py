"""What waits for a slow reader: bounded in bytes and in age, and never half a frame lost."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from sfu.core.stream_queue import MAX_AGE_S, MAX_BYTES, StreamQueue
from shared.rtc.framing import Deframer, framed


def test_there_is_room_for_so_many_bytes() -> None:
    queue = StreamQueue()
    frame = bytes(1024)
    taken = sum(queue.put(frame, now=0.0) for _ in range(1000))
    assert taken == MAX_BYTES // 1024
    assert queue.bytes <= MAX_BYTES


def test_what_is_too_old_goes_but_for_what_has_been_begun() -> None:
    queue = StreamQueue()
    for frame in (b"first", b"second", b"third"):
        queue.put(frame, now=0.0)
    queue.put(b"new", now=1.5)
    queue.written(2)
    assert queue.expire(now=1.0 + MAX_AGE_S) == 2
    assert [bytes(part) for part in queue.head()] == [b"rst", b"new"]
    assert queue.bytes == 6
    queue.written(6)
    assert queue.bytes == 0
    assert queue.head() == []


@given(sizes=st.lists(st.integers(1, 1500), max_size=60), seed=st.integers(0, 1 << 32))
def test_a_reader_of_any_speed_finds_whole_frames_in_order(sizes: list[int], seed: int) -> None:
    rng, queue, deframer = random.Random(seed), StreamQueue(), Deframer()
    sent, got, now = [bytes([n % 256]) * size for n, size in enumerate(sizes)], [], 0.0
    for datagram in sent:
        now += rng.choice((0.0, 0.1, 0.9))
        queue.put(framed(datagram), now=now)
        queue.expire(now=now)
        head = b"".join(queue.head())
        count = min(len(head), rng.choice((0, 1, 2, 100, 3000)))
        got += deframer.feed(head[:count])
        queue.written(count)
    while head := b"".join(queue.head()):
        got += deframer.feed(head)
        queue.written(len(head))
    assert queue.bytes == 0
    left = iter(sent)
    assert all(datagram in left for datagram in got), "in their order, each at most once"
