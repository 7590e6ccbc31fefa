"""Both planes: publishers hear of every packet they sent; what viewers get is numbered, and what became of it known."""

from __future__ import annotations

import itertools
import random

import pytest

from sfu.core.media.arrivals import LATEST_S, SOON_S
from sfu.core.media.delivery import FEWEST, Delivered
from sfu.plane.api import DeliveryReported, DeliverySnapshot, PeerSnapshot
from shared.rtc import rtcp, rtp, transport_cc
from shared.rtc.srtp import SrtpKeys
from shared.rtc.transport_cc import TransportFeedback
from tests.fakes.plane_rig import Rig, vp8_payload

ID = 8
"""Of transport-wide sequence numbers towards viewers; publishers use 3."""


@pytest.fixture
def rig() -> Rig:
    """A publisher (peer 1) of a video (producer 1) and an audio (producer 2), and a viewer (peer 2)."""
    rig = Rig()
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1)
    rig.produce(2, 1, kind="audio")
    return rig


def video(rig: Rig, number: int, *, key: bool = False, transport: int | None = None) -> None:
    payload = vp8_payload(key=key, picture_id=number, tl0=number, body=b"v" * 20)
    extra = () if transport is None else numbered(transport)
    rig.rtp(1, ssrc=10, sequence=1000 + number, timestamp=number * 3000, payload=payload, mid="1", extra=extra)


def audio(rig: Rig, number: int, *, transport: int | None = None) -> None:
    extra = () if transport is None else numbered(transport)
    what = {"ssrc": 20, "sequence": number, "timestamp": number * 960, "payload": b"opus", "mid": "2"}
    rig.rtp(1, payload_type=111, extra=extra, **what)  # type: ignore[arg-type]


def told(rig: Rig) -> list[TransportFeedback]:
    return [packet for packet in rig.feedback[1] if isinstance(packet, TransportFeedback)]


def times(feedback: TransportFeedback) -> list[float | None]:
    """Arrivals [s] by our own clock."""
    start = feedback.reference * 256
    return [None if ticks is None else (start + ticks) / 4000 for ticks in feedback.arrivals]


# -- to publishers


def numbered(transport: int) -> tuple[tuple[int, bytes], ...]:
    """The header extension elements of a publisher's packet."""
    return ((3, (transport & 0xFFFF).to_bytes(2, "big")),)


def test_every_packet_counts_whatever_becomes_of_it(rig: Rig) -> None:
    video(rig, 0, key=True, transport=500)
    audio(rig, 0, transport=501)
    probe = {"ssrc": 11, "timestamp": 0, "payload_type": 97, "mid": "1"}
    repeat = (1000).to_bytes(2, "big") + vp8_payload(key=True)
    rig.rtp(1, sequence=1, payload=b"", padding=200, extra=numbered(502), **probe)  # type: ignore[arg-type]
    rig.rtp(1, sequence=2, payload=repeat, extra=numbered(503), **probe)  # type: ignore[arg-type]
    rig.rtp(1, ssrc=10, sequence=1001, timestamp=0, payload=b"?", payload_type=34, extra=numbered(504))
    rig.rtp(1, ssrc=77, sequence=2, timestamp=0, payload=b"?", payload_type=34, extra=numbered(505))
    assert told(rig) == []
    rig.run_until(rig.now + LATEST_S)
    (feedback,) = told(rig)
    assert (feedback.base, feedback.media) == (500, 77)
    assert times(feedback) == [100.0] * 6
    assert [rig.drops(reason) for reason in ("probe", "foreign-codec", "unknown-ssrc")] == [2, 1, 1]


def test_losses_and_times_are_told(rig: Rig) -> None:
    for number, moment in ((65534, 100.0), (65535, 100.01), (2, 100.09), (1, 100.095)):
        rig.run_until(moment)
        audio(rig, number, transport=number)
    rig.run_until(100.2)
    (feedback,) = told(rig)
    assert feedback.base == 65534
    assert times(feedback) == pytest.approx([100.0, 100.01, None, 100.095, 100.09], abs=0.00026)


def test_feedback_comes_within_a_tenth_of_a_second_and_sooner_when_many_packets_come(rig: Rig) -> None:
    sent: list[float] = []
    for number in range(1, 200):
        rig.run_until(100.0 + number / 500)
        before = len(told(rig))
        audio(rig, number, transport=number)
        sent += [rig.now] * (len(told(rig)) - before)
    assert len(told(rig)) == pytest.approx(0.4 / SOON_S, abs=1)
    assert all(SOON_S - 0.001 <= b - a < LATEST_S for a, b in itertools.pairwise(sent))
    rig.run_until(rig.now + LATEST_S)
    covered = [feedback.base + at for feedback in told(rig) for at in range(len(feedback.arrivals))]
    assert covered == list(range(1, 200)), "each number once, in order"
    assert [feedback.count for feedback in told(rig)] == list(range(len(told(rig))))


def test_a_burst_that_ends_is_told_of_soon(rig: Rig) -> None:
    for number in range(30):
        audio(rig, number, transport=number)
    rig.run_until(100.0 + SOON_S)
    assert [len(feedback.arrivals) for feedback in told(rig)] == [30]


def test_silence_costs_nothing(rig: Rig) -> None:
    audio(rig, 1, transport=1)
    rig.run_until(130.0)
    assert len(told(rig)) == 1


def test_jumps_and_repeats_stay_within_bounds(rig: Rig) -> None:
    rng = random.Random(5)
    for number in range(400):
        audio(rig, number, transport=rng.choice((5, 5 + number, 40_000, 65_535, rng.randrange(65536))))
    rig.run_until(rig.now + 1.0)
    assert sum(len(feedback.arrivals) for feedback in told(rig)) <= 2 * 2048
    audio(rig, 401, transport=3)
    audio(rig, 402, transport=4)
    rig.run_until(rig.now + 1.0)
    assert rig.plane.snapshot().peers[0].feedbacks_sent == len(told(rig))


def test_a_new_association_numbers_from_the_start(rig: Rig) -> None:
    for number in range(5):
        audio(rig, number, transport=30_000 + number)
    rig.run_until(100.5)
    rig.plane.remove_peer(2)
    keys = SrtpKeys(rig.profile, b"a" * 16, b"b" * 12, b"c" * 16, b"d" * 12)
    rig.plane.set_keys(1, keys, address=rig.address(1), now=rig.now)
    rig.rekeyed(1, keys)
    for number in range(5, 8):
        audio(rig, number, transport=number)
    rig.run_until(101.0)
    assert [(feedback.base, len(feedback.arrivals)) for feedback in told(rig)] == [(30_000, 5), (5, 3)]


def test_numbers_that_were_not_negotiated_or_are_no_numbers_are_ignored(rig: Rig) -> None:
    rig.rtp(1, ssrc=20, sequence=1, timestamp=0, payload=b"x", payload_type=111, mid="2", extra=((3, b"\0\1\2"),))
    rig.rtp(1, ssrc=20, sequence=2, timestamp=0, payload=b"x", payload_type=111, extra=((9, b"\0\1"),))
    rig.run_until(101.0)
    assert told(rig) == []


# -- to viewers


def numbers(rig: Rig, peer: int = 2, identifier: int = ID) -> list[int]:
    return [
        int.from_bytes(rtp.extensions(packet, header)[identifier], "big")
        for header, packet, _ in rig.sent[peer]
        if identifier in rtp.extensions(packet, header)
    ]


def both(rig: Rig, *, identifier: int = ID) -> None:
    rig.consume(1, 2, 1, transport_cc=identifier)
    rig.consume(2, 2, 2, codec="opus", rtx=False, transport_cc=identifier)


def test_one_count_goes_over_all_that_a_peer_gets(rig: Rig) -> None:
    both(rig)
    for number in range(5):
        video(rig, number, key=number == 0, transport=9000)
        audio(rig, number)
    assert numbers(rig) == list(range(10))
    assert {header.ssrc for header, _, _ in rig.sent[2]} == {5001, 5002}


def test_each_viewer_has_its_own_count_and_id(rig: Rig) -> None:
    both(rig)
    rig.peer(3)
    rig.consume(3, 3, 1, transport_cc=200)
    video(rig, 0, key=True)
    video(rig, 1)
    audio(rig, 0)
    assert numbers(rig) == [0, 1, 2]
    assert numbers(rig, 3, 200) == [0, 1]
    for header, packet, _ in rig.sent[3]:
        assert rtp.extensions(packet, header)[7] == rtp.abs_send_time(rig.now)


def test_a_retransmission_has_a_number_of_its_own(rig: Rig) -> None:
    both(rig)
    for number in range(3):
        video(rig, number, key=number == 0)
    lost = rig.sent[2][1][0].sequence
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[lost]))
    video(rig, 3)
    assert [header.ssrc for header, _, _ in rig.sent[2]] == [5001, 5001, 5001, 6001, 5001]
    assert numbers(rig) == [0, 1, 2, 3, 4]


def test_without_rtx_a_video_bears_no_numbers_and_a_numbered_audio_is_not_sent_again(rig: Rig) -> None:
    """A resend there is the same to the byte, which a number of its own would break: AES-GCM forbids that."""
    rig.consume(1, 2, 1, rtx=False, transport_cc=ID)
    rig.consume(2, 2, 2, codec="opus", rtx=False, transport_cc=ID)
    video(rig, 0, key=True)
    audio(rig, 0)
    assert numbers(rig) == [0]
    rig.deaf.add(2)
    before = len(rig.wire)
    rig.now += 1.0
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[rig.sent[2][0][0].sequence]))
    rig.rtcp(2, rtcp.nack(sender=1, media=5002, sequences=[rig.sent[2][1][0].sequence]))
    assert len([1 for _, address in rig.wire[before:] if address == rig.address(2)]) == 1, "the video alone"
    assert rig.drops("resend-unknown") == 1


def viewer(rig: Rig) -> PeerSnapshot:
    return next(peer for peer in rig.plane.snapshot().peers if peer.peer == 2)


def answer(rig: Rig, base: int, *arrivals: int | None, padded: bool = True) -> None:
    packet = transport_cc.build(sender=1, media=5001, base=base, count=0, arrivals=arrivals)
    if padded:
        packet = bytes((packet[0] | 0x20, 205)) + (len(packet) // 4).to_bytes(2, "big") + packet[4:] + b"\0\0\0\4"
    rig.rtcp(2, packet)


@pytest.mark.parametrize("padded", [True, False])
def test_feedback_says_what_became_of_each_packet(rig: Rig, padded: bool) -> None:
    both(rig)
    rig.plane.follow_delivery(2, True)
    for number in range(4):
        rig.run_until(100.0 + number / 10)
        video(rig, number, key=number == 0)
    sizes = [len(packet) for _, packet, _ in rig.sent[2]]
    rig.now = 100.5
    answer(rig, 0, 4_000_000, 4_000_400, None, 4_001_200, padded=padded)
    assert rig.events[-1] == DeliveryReported(
        2,
        100.5,
        (
            Delivered(100.0, 1000.0, sizes[0], 5001),
            Delivered(100.1, 1000.1, sizes[1], 5001),
            Delivered(100.2, None, sizes[2], 5001),
            Delivered(100.3, 1000.3, sizes[3], 5001),
        ),
    )
    assert viewer(rig).delivery == DeliverySnapshot(
        sent=4,
        feedbacks=1,
        acknowledged=3,
        acknowledged_bytes=sum(sizes) - sizes[2],
        lost=1,
        receive_rate_bps=None,
    )
    assert rig.plane.snapshot().totals.feedbacks_received == 1


def test_only_what_is_followed_is_told_and_only_what_is_new(rig: Rig) -> None:
    both(rig)
    for number in range(3):
        audio(rig, number)
    answer(rig, 0, 1, 2, None, 4)
    rig.plane.follow_delivery(2, True)
    answer(rig, 0, 1, 2, None, 4)
    assert not any(isinstance(event, DeliveryReported) for event in rig.events)
    audio(rig, 3)
    answer(rig, 2, 7, 8)
    rig.plane.follow_delivery(2, False)
    audio(rig, 4)
    answer(rig, 4, 9)
    reported = [event for event in rig.events if isinstance(event, DeliveryReported)]
    came = [[each.arrived_at is not None for each in event.packets] for event in reported]
    assert came == [[True, True]], "one late, one new"
    rig.plane.follow_delivery(99, True)


def test_rate_of_arrival_is_known_after_half_a_second(rig: Rig) -> None:
    both(rig)
    for number in range(101):
        audio(rig, number)
    size = len(rig.sent[2][0][1])
    answer(rig, 0, *range(1_000_000, 1_004_040, 40))
    delivery = viewer(rig).delivery
    assert delivery is not None
    assert delivery.receive_rate_bps == size * 8 * 100


def test_a_fast_connection_is_remembered_longer_than_a_silent_one(rig: Rig) -> None:
    both(rig)
    audio(rig, 0)
    answer(rig, 0, 1)
    for number in range(1, 1001):
        audio(rig, number)
    answer(rig, 1, *range(1000))
    delivery = viewer(rig).delivery
    assert delivery is not None
    assert delivery.acknowledged == 1001 > FEWEST


def test_hostile_feedback_harms_nothing(rig: Rig) -> None:
    both(rig)
    rng = random.Random(3)
    for number in range(300):
        audio(rig, number)
        arrivals = [rng.choice((None, number * 40)) for _ in range(rng.choice((1, 50, 700)))]
        answer(rig, rng.randrange(-70_000, 70_000), *arrivals, number * 40)
    rig.rtcp(2, b"\x8f\xcd\x00\x05" + bytes(8) + b"\x00\x00\xff\xff" + bytes(4) + b"\x3f\xff\x00\x00")
    assert rig.drops("bad-rtcp") == 1
    delivery = viewer(rig).delivery
    assert delivery is not None
    assert delivery.acknowledged + delivery.lost <= delivery.sent == 300
    before = len(rig.sent[2])
    audio(rig, 300)
    assert len(rig.sent[2]) == before + 1


def test_peers_that_negotiated_no_numbers_have_no_delivery(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    video(rig, 0, key=True)
    answer(rig, 0, 1)
    assert viewer(rig).delivery is None
    assert numbers(rig) == []
