"""A node's way to its first packet (A5): each milestone once, and probe calls that come again at a bounded pace."""

from __future__ import annotations

import random

import pytest

from sfu.core.load.warm_up import ComingUp, ProbeTrack, retry_delay_s
from shared.errors import BadPacket
from shared.rtc import rtp


def test_a_milestone_is_reached_once() -> None:
    up = ComingUp()
    assert up.reach("healthy_s", age_s=0.51234)
    assert not up.reach("healthy_s", age_s=9.0)
    assert (up.reached.healthy_s, up.reached.first_packet_s) == (0.512, None)


def test_it_is_warmed_up_with_its_first_packet_and_not_with_its_health() -> None:
    up = ComingUp()
    up.reach("healthy_s", age_s=0.5)
    up.reach("linked_s", age_s=0.6)
    assert not up.warmed_up
    up.reach("first_packet_s", age_s=0.7)
    assert up.warmed_up


def test_retries_slow_down_to_a_bound_and_are_never_immediate() -> None:
    rng = random.Random(1)
    delays = [[retry_delay_s(attempt, rng=rng) for _ in range(50)] for attempt in (0, 3, 60, 10**6)]
    assert all(0.5 <= delay <= 1 for delay in delays[0])
    assert all(4 <= delay <= 8 for delay in delays[1])
    assert all(15 <= delay <= 30 for late in delays[2:] for delay in late)


def test_only_the_calls_own_packet_as_the_plane_forwards_it_is_a_proof() -> None:
    rng = random.Random(2)
    track, other = (ProbeTrack.draw(producer=1, consumer=2, rng=rng) for _ in range(2))
    forwarded = rtp.build(payload_type=111, sequence=9, timestamp=9, ssrc=track.forwarded_ssrc, payload=track.payload)
    assert track.is_forwarded(forwarded)
    assert not other.is_forwarded(forwarded)
    assert not track.is_forwarded(track.packet(0)), "an echo of what was sent"
    with pytest.raises(BadPacket):
        track.is_forwarded(b"\x80")
