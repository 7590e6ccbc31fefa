"""Both planes, H.264: a viewer begins only where its decoder can, also where parameter sets were sent only once."""

from __future__ import annotations

import pytest

from sfu.core.media.parameter_sets import MAX_KEPT_BYTES
from sfu.core.media.ring import RING_SIZE
from sfu.plane.api import ProducerFlowing
from shared.rtc import rtcp, rtp
from tests.fakes.h264_stream import IDR, SLICE, decoded, encoded, pps, sps, stap
from tests.fakes.plane_rig import H264, Rig

FRAGMENT = b"\x7c\x85idr"
"""The beginning of an IDR picture that is cut into several packets."""
LATER = b"\x7c\x45idr"
SETS = stap(sps(0), pps(0))


class Publisher:
    """Of one stream: each packet gets the next number."""

    def __init__(self, rig: Rig, *, ssrc: int = 10, rid: str = "", first: int = 1000) -> None:
        self.rig, self.ssrc, self.rid, self.sequence = rig, ssrc, rid, first

    def send(self, *payloads: bytes, at: int) -> None:
        """One picture, `at` a frame number."""
        for number, payload in enumerate(payloads, 1):
            self.rig.rtp(
                1,
                ssrc=self.ssrc,
                sequence=self.sequence,
                timestamp=at * 3000,
                payload=payload,
                payload_type=98,
                marker=number == len(payloads),
                mid="1",
                rid=self.rid,
            )
            self.sequence += 1


@pytest.fixture
def rig() -> Rig:
    """A publisher (peer 1) of an H.264 video (producer 1) and two viewers (peers 2 and 3)."""
    rig = Rig()
    for peer in (1, 2, 3):
        rig.peer(peer)
    rig.produce(1, 1, codec=H264)
    return rig


def consume(rig: Rig, peer: int, *, rtx: bool = True, transport_cc: int | None = None) -> None:
    rig.consume(peer, peer, 1, codec="H264", rtx=rtx, transport_cc=transport_cc)


def payloads(rig: Rig, peer: int) -> list[bytes]:
    return [payload for header, _, payload in rig.sent[peer] if header.ssrc == 5000 + peer]


def test_who_comes_later_is_sent_the_sets_before_the_picture(rig: Rig) -> None:
    publisher = Publisher(rig)
    publisher.send(sps(0), pps(0), IDR, at=0)
    publisher.send(SLICE, at=1)
    consume(rig, 2)
    publisher.send(SLICE, at=2)
    publisher.send(FRAGMENT, LATER, at=3)
    publisher.send(SLICE, at=4)
    assert payloads(rig, 2) == [SETS, FRAGMENT, LATER, SLICE]
    headers = [header for header, _, _ in rig.sent[2]]
    assert [h.sequence - headers[0].sequence for h in headers] == [0, 1, 2, 3]
    assert [(h.timestamp - headers[0].timestamp, h.marker) for h in headers] == [
        (0, False),
        (0, False),
        (0, True),
        (3000, True),
    ]


def test_sets_that_come_with_the_picture_are_not_sent_twice(rig: Rig) -> None:
    publisher = Publisher(rig)
    publisher.send(SETS, IDR, at=0)
    consume(rig, 2)
    publisher.send(SETS, IDR, at=1)
    publisher.send(IDR, at=2)
    assert payloads(rig, 2) == [SETS, IDR, IDR], "and not to who has them"
    assert len({header.ssrc for header, _, _ in rig.sent[2]}) == 1


def test_who_comes_between_the_sets_and_their_picture_gets_both(rig: Rig) -> None:
    publisher = Publisher(rig)
    publisher.send(SETS, at=0)
    consume(rig, 2)
    publisher.send(FRAGMENT, LATER, at=0)
    assert payloads(rig, 2) == [SETS, FRAGMENT, LATER]


def test_picture_without_known_sets_begins_nothing_and_another_is_asked_for(rig: Rig) -> None:
    publisher = Publisher(rig)
    consume(rig, 2)
    publisher.send(IDR, at=0)
    publisher.send(pps(0), IDR, at=1)
    assert payloads(rig, 2) == []
    assert ProducerFlowing(1) not in rig.events
    rig.run_until(rig.now + 1.2)
    assert len(rig.of(1, rtcp.PictureLoss)) >= 2
    publisher.send(SETS, IDR, at=40)
    assert payloads(rig, 2) == [SETS, IDR]
    assert ProducerFlowing(1) in rig.events


def test_sets_that_only_the_description_told_are_sent(rig: Rig) -> None:
    rig.plane.close_producer(1)
    rig.produce(1, 1, codec=H264, parameter_sets=(sps(0, b"sdp"), pps(0), b"\x65no set", b"\x67"))
    consume(rig, 2)
    publisher = Publisher(rig)
    publisher.send(IDR, at=0)
    assert payloads(rig, 2) == [stap(sps(0, b"sdp"), pps(0)), IDR]
    publisher.send(sps(0, b"own"), IDR, at=1)
    consume(rig, 3)
    publisher.send(IDR, at=2)
    assert payloads(rig, 3) == [stap(sps(0, b"own"), pps(0)), IDR], "the stream's own are newer"


@pytest.mark.parametrize("rtx", [True, False])
def test_the_sets_are_sent_again_when_they_are_asked_for(rig: Rig, rtx: bool) -> None:
    publisher = Publisher(rig)
    publisher.send(SETS, IDR, at=0)
    consume(rig, 2, rtx=rtx)
    publisher.send(IDR, at=1)
    publisher.send(SLICE, at=2)
    header, packet, payload = rig.sent[2][0]
    rig.rtcp(2, rtcp.nack(sender=1, media=5002, sequences=[header.sequence]))
    again, _, content = rig.sent[2][-1]
    assert payload == SETS
    if rtx:
        assert content == header.sequence.to_bytes(2, "big") + SETS
        assert (again.ssrc, again.timestamp, again.marker) == (6002, header.timestamp, False)
    else:
        assert rig.plain[-1][1] == packet, "the same to the byte"
    for number in range(RING_SIZE):
        publisher.send(SLICE, at=3 + number)
    rig.run_until(rig.now + 1.0)
    before = rig.drops("resend-unknown")
    rig.rtcp(2, rtcp.nack(sender=1, media=5002, sequences=[header.sequence]))
    assert rig.drops("resend-unknown") == before + 1, "they leave the cache with their picture"


def test_the_sets_have_a_transport_wide_number_of_their_own(rig: Rig) -> None:
    publisher = Publisher(rig)
    publisher.send(SETS, IDR, at=0)
    consume(rig, 2, transport_cc=8)
    publisher.send(IDR, at=1)
    publisher.send(SLICE, at=2)
    numbers = [rtp.extensions(packet, header)[8] for header, packet, _ in rig.sent[2]]
    assert numbers == [b"\0\0", b"\0\1", b"\0\2"]


def test_a_late_packet_does_not_take_the_number_of_the_sets(rig: Rig) -> None:
    """Two packets under one SRTP index would give AES-GCM's key away."""
    publisher = Publisher(rig)
    publisher.send(SETS, IDR, at=0)
    consume(rig, 2)
    publisher.sequence += 1
    publisher.send(IDR, at=2)
    publisher.sequence -= 2
    publisher.send(SLICE, at=1)
    publisher.sequence += 1
    rig.plane.pause(2, True, now=rig.now)
    publisher.sequence += 1
    rig.plane.pause(2, False, now=rig.now)
    publisher.send(IDR, at=4)
    publisher.sequence -= 2
    publisher.send(SLICE, at=3)
    assert payloads(rig, 2) == [SETS, IDR, SETS, IDR]
    numbers = [header.sequence for header, _, _ in rig.sent[2]]
    assert [number - numbers[0] for number in numbers] == [0, 1, 2, 3]


def test_a_change_of_layer_brings_that_layers_sets(rig: Rig) -> None:
    rig.plane.close_producer(1)
    rig.produce(1, 1, codec=H264, rids=("l", "h"))
    low, high = Publisher(rig, rid="l"), Publisher(rig, ssrc=20, rid="h")
    low.send(stap(sps(0, b"low"), pps(0)), IDR, at=0)
    high.send(stap(sps(0, b"high"), pps(0)), IDR, at=0)
    consume(rig, 2)
    rig.plane.set_layer(2, "l", now=rig.now)
    low.send(IDR, at=1)
    high.send(IDR, at=1)
    rig.plane.set_layer(2, "h", now=rig.now)
    low.send(SLICE, at=2)
    high.send(IDR, at=2)
    assert payloads(rig, 2) == [stap(sps(0, b"low"), pps(0)), IDR, SLICE, stap(sps(0, b"high"), pps(0)), IDR]


def test_a_new_ssrc_of_the_same_stream_keeps_its_sets(rig: Rig) -> None:
    Publisher(rig).send(SETS, IDR, at=0)
    consume(rig, 2)
    Publisher(rig, ssrc=11, first=5).send(IDR, at=1)
    assert payloads(rig, 2) == [SETS, IDR]


def test_sets_that_change_a_thousand_times_are_bounded_and_the_newest_counts(rig: Rig) -> None:
    publisher = Publisher(rig)
    for number in range(1000):
        publisher.send(stap(sps(number % 32, b"%d" % number), pps(number % 256, bytes(90))), at=number)
        publisher.send(stap(*[pps(n % 256) for n in range(150)]), at=number)
    publisher.send(stap(sps(0, b"last"), pps(0)), at=1000)
    consume(rig, 2)
    publisher.send(IDR, at=1001)
    sent, picture = payloads(rig, 2)
    assert picture == IDR
    assert len(sent) <= MAX_KEPT_BYTES
    assert sps(0, b"last") in sent


@pytest.mark.parametrize(
    "broken",
    [
        b"\x78\xff\xff" + sps(0),
        b"\x78\0\0" + sps(0),
        b"\x78\0",
        b"\x67",
        b"\x68",
        b"\x67\x42\xe0\x1f\0\0\0\0",
        b"\x7c\x87",
    ],
    ids=["long", "empty", "cut", "only SPS", "only PPS", "no id", "fragment"],
)
def test_broken_sets_are_not_kept(rig: Rig, broken: bytes) -> None:
    publisher = Publisher(rig)
    publisher.send(broken, pps(0), at=0)
    consume(rig, 2)
    publisher.send(IDR, at=1)
    assert payloads(rig, 2) == []


def test_a_giant_set_ends_what_was_known(rig: Rig) -> None:
    publisher = Publisher(rig)
    publisher.send(SETS, IDR, at=0)
    publisher.send(sps(0, bytes(1199)), at=1)
    consume(rig, 2)
    publisher.send(IDR, at=2)
    assert payloads(rig, 2) == [], "no decoder could use the old one any more"


def test_a_decoder_that_comes_late_shows_the_pictures_of_an_encoder_that_sent_its_sets_once(rig: Rig) -> None:
    sequence, picture, pictures = encoded(24, key_every=8)
    publisher = Publisher(rig)
    publisher.send(sequence, picture, *pictures[0], at=0)
    for number, packets in enumerate(pictures[1:], 1):
        if number == 5:
            consume(rig, 2)
        publisher.send(*packets, at=number)
    seen = [(header.timestamp, payload) for header, _, payload in rig.sent[2]]
    greys = decoded(seen)
    expected = decoded([(0, sequence), (0, picture), *((n, p) for n, all_of in enumerate(pictures) for p in all_of)])
    assert len(expected) == 24
    assert greys == expected[8:]
    assert decoded(seen[1:]) == [], "without what the plane sent first it would show nothing"
