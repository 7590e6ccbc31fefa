"""Both planes, packet by packet: what consumers get equals what was published, with continuous numbers."""

from __future__ import annotations

import itertools

import pytest

from sfu.core.media.addresses import MAX_ADDRESSES, OWNED_S
from sfu.plane.api import (
    SILENT_AFTER_S,
    Address,
    ConsumerFlowing,
    ConsumerSpec,
    LayerSwitched,
    PeerHeard,
    ProducerEnded,
    ProducerFlowing,
    ProducerResumed,
    ProducerSilent,
)
from sfu.plane.peer import MAX_SSRCS
from shared.rtc import rtcp, rtp, vp8
from shared.rtc.demux import is_rtcp
from shared.rtc.srtp import SrtpProfile
from tests.fakes.plane_rig import Rig, vp8_payload


@pytest.fixture
def rig() -> Rig:
    """A publisher (peer 1) of a video (producer 1) and a viewer (peer 2)."""
    rig = Rig()
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1)
    return rig


def frame(rig: Rig, number: int, *, key: bool = False, ssrc: int = 10, body: bytes = b"x") -> None:
    """One frame in one packet; 30 frames a second."""
    payload = vp8_payload(key=key, picture_id=number, tl0=number, body=body)
    rig.rtp(1, ssrc=ssrc, sequence=1000 + number, timestamp=number * 3000, payload=payload, marker=True, mid="1")


def test_video_starts_at_a_key_frame_and_arrives_unchanged(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, body=b"before the key frame")
    frame(rig, 1, key=True, body=b"key")
    frame(rig, 2, body=b"delta")
    assert [payload for _, _, payload in rig.sent[2]] == [
        vp8_payload(key=True, picture_id=1, tl0=1, body=b"key"),
        vp8_payload(picture_id=2, tl0=2, body=b"delta"),
    ]
    first, second = (header for header, _, _ in rig.sent[2])
    assert (first.ssrc, first.payload_type, first.marker) == (5001, 100, True)
    assert rtp.sequence_delta(second.sequence, first.sequence) == 1
    assert second.timestamp - first.timestamp == 3000


def test_facts_are_told_once_and_in_order(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0)
    assert rig.events == [PeerHeard(1)]
    frame(rig, 1, key=True)
    frame(rig, 2, key=True)
    assert rig.events == [PeerHeard(1), ProducerFlowing(1), ConsumerFlowing(1)]


def test_audio_starts_at_once_and_keeps_its_level_extension(rig: Rig) -> None:
    rig.produce(2, 1, kind="audio")
    rig.consume(1, 2, 2, codec="OPUS")
    rig.rtp(
        1, ssrc=20, sequence=65535, timestamp=960, payload=b"opus", payload_type=111, mid="2", extra=((1, b"\x85"),)
    )
    rig.rtp(1, ssrc=20, sequence=0, timestamp=1920, payload=b"opus2", payload_type=111)
    (first, packet, payload), (second, _, _) = rig.sent[2]
    assert payload == b"opus"
    assert rtp.extensions(packet, first) == {6: b"\x85", 7: rtp.abs_send_time(rig.now)}
    assert rtp.sequence_delta(second.sequence, first.sequence) == 1


def test_hop_by_hop_extensions_are_not_copied(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    payload = vp8_payload(key=True)
    rig.rtp(
        1, ssrc=10, sequence=1, timestamp=0, payload=payload, mid="1", extra=((3, b"\0\1"), (13, b"\x01"), (9, b"v"))
    )
    header, packet, _ = rig.sent[2][0]
    assert rtp.extensions(packet, header) == {5: b"\x01", 7: rtp.abs_send_time(rig.now)}


def test_consuming_asks_for_a_key_frame_once(rig: Rig) -> None:
    frame(rig, 0, key=True)
    for consumer in range(1, 6):
        rig.consume(consumer, 2, 1)
    rig.collect()
    assert rig.of(1, rtcp.PictureLoss) == [rtcp.PictureLoss(sender=rig.of(1, rtcp.PictureLoss)[0].sender, media=10)]


def test_key_frame_requests_are_repeated_until_one_comes_and_not_after(rig: Rig) -> None:
    frame(rig, 0, key=True)
    rig.consume(1, 2, 1)
    rig.run_until(102.2)
    assert len(rig.of(1, rtcp.PictureLoss)) == 5, "at once and each half second"
    frame(rig, 1, key=True)
    rig.run_until(105.0)
    assert len(rig.of(1, rtcp.PictureLoss)) == 5


def test_a_storm_of_picture_losses_is_throttled(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    for step in range(100):
        rig.run_until(100.0 + step / 100)
        rig.rtcp(2, rtcp.picture_loss(sender=1, media=5001))
        frame(rig, step + 1, key=True)
    assert len(rig.of(1, rtcp.PictureLoss)) <= 2
    assert rig.plane.snapshot().totals.plis_received == 100


def test_full_intra_request_counts_as_picture_loss(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.rtcp(2, rtcp.full_intra_request(sender=1, media=5001, command=3))
    assert len(rig.of(1, rtcp.PictureLoss)) == 1


def test_nack_is_answered_by_rtx_with_the_original_number(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    for number in range(5):
        frame(rig, number, key=number == 0)
    lost = rig.sent[2][2]
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[lost[0].sequence]))
    header, _, payload = rig.sent[2][-1]
    assert (header.ssrc, header.payload_type, header.timestamp) == (6001, 101, lost[0].timestamp)
    assert payload == lost[0].sequence.to_bytes(2, "big") + lost[2]


@pytest.mark.parametrize("profile", SrtpProfile)
def test_packets_as_long_as_gstreamer_makes_them_are_forwarded_and_sent_again(profile: SrtpProfile) -> None:
    rig = Rig(profile=profile)
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1)
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True, body=bytes(1400 - 12 - len(vp8_payload(body=b""))))
    ((header, packet, _),) = rig.sent[2]
    assert len(packet) >= 1400
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[header.sequence]))
    assert len(rig.sent[2][1][1]) == len(packet) + 2
    assert rig.drops("not-sent") == 0


def test_nack_without_rtx_is_answered_by_the_same_packet_to_the_byte(rig: Rig) -> None:
    rig.consume(1, 2, 1, rtx=False)
    rig.deaf.add(2)
    for number in range(3):
        frame(rig, number, key=number == 0)
    first, lost, last = (datagram for datagram, address in rig.wire if address == rig.address(2))
    rig.now += 1.0
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[rtp.parse(lost).sequence]))
    sent = [datagram for datagram, address in rig.wire if address == rig.address(2)]
    assert sent == [first, lost, last, lost]


def test_a_repeated_nack_within_the_round_trip_is_answered_once(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    for number in range(5):
        frame(rig, number, key=number == 0)
    nack = rtcp.nack(sender=1, media=5001, sequences=[rig.sent[2][2][0].sequence])
    rig.rtcp(2, nack)
    rig.rtcp(2, nack)
    assert rig.plane.snapshot().totals.resent == 1
    assert rig.drops("resend-repeated") == 1
    rig.now += 0.2
    rig.rtcp(2, nack)
    assert rig.plane.snapshot().totals.resent == 2


def test_resends_stay_within_a_budget(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    for number in range(400):
        frame(rig, number, key=number == 0)
    sequences = [header.sequence for header, _, _ in rig.sent[2]]
    for _ in range(5):
        rig.now += 1.0
        rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=sequences))
    assert 200 <= rig.plane.snapshot().totals.resent <= 400
    assert rig.drops("resend-over-budget") > 0


def test_nack_for_what_was_never_sent_is_counted(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    ahead = (rig.sent[2][0][0].sequence + 100) & 0xFFFF
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[ahead]))
    assert rig.drops("resend-unknown") == 1
    assert rig.plane.snapshot().consumers[0].unanswered == 1


def test_gap_is_asked_for_and_retried_with_a_limit(rig: Rig) -> None:
    frame(rig, 0, key=True)
    frame(rig, 3)
    assert [packet.sequences for packet in rig.of(1, rtcp.Nack)] == [(1001, 1002)]
    rig.run_until(110.0)
    assert len(rig.of(1, rtcp.Nack)) == 10
    assert rig.plane.snapshot().producers[0].encodings[0].nacked == 2


def test_a_key_frame_ends_the_asking_for_what_came_before_it(rig: Rig) -> None:
    frame(rig, 0, key=True)
    frame(rig, 3)
    frame(rig, 4, key=True)
    rig.run_until(103.0)
    assert len(rig.of(1, rtcp.Nack)) == 1


def test_gap_across_the_wrap_is_asked_for(rig: Rig) -> None:
    for sequence in (65534, 1):
        rig.rtp(1, ssrc=10, sequence=sequence, timestamp=0, payload=vp8_payload(key=sequence > 1), mid="1")
    assert [packet.sequences for packet in rig.of(1, rtcp.Nack)] == [(65535, 0)]


def test_gap_filled_by_rtx_reaches_the_consumer_with_its_own_number(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    frame(rig, 2)
    original = vp8_payload(picture_id=1, tl0=1, body=b"late")
    rtx = (1001).to_bytes(2, "big") + original
    rig.rtp(1, ssrc=11, sequence=7, timestamp=3000, payload=rtx, payload_type=97, mid="1")
    zero, two, one = rig.sent[2]
    assert one[2] == original
    assert [rtp.sequence_delta(seen[0].sequence, zero[0].sequence) for seen in (zero, one, two)] == [0, 1, 2]
    rig.run_until(103.0)
    assert len(rig.of(1, rtcp.Nack)) == 1, "no more asking once it has come"
    assert rig.plane.snapshot().producers[0].encodings[0].repaired == 1


def test_rtx_probes_are_dropped_and_counted(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    rtx = (999).to_bytes(2, "big") + vp8_payload()
    rig.rtp(1, ssrc=11, sequence=1, timestamp=0, payload=rtx, payload_type=97, mid="1")
    frame(rig, 0, key=True)
    again = (1000).to_bytes(2, "big") + vp8_payload(key=True)
    rig.rtp(1, ssrc=11, sequence=2, timestamp=0, payload=again, payload_type=97)
    rig.rtp(1, ssrc=11, sequence=3, timestamp=0, payload=b"", payload_type=97, padding=200)
    assert len(rig.sent[2]) == 1
    assert rig.drops("probe") == 3


def test_padding_is_dropped_without_a_gap_and_late_packets_keep_their_place(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.rtp(1, ssrc=10, sequence=1002, timestamp=0, payload=b"", padding=100)
    frame(rig, 3)
    frame(rig, 1)
    first = rig.sent[2][0][0].sequence
    # 1000, [1001 late], 1002 padding, 1003
    assert [rtp.sequence_delta(header.sequence, first) for header, _, _ in rig.sent[2]] == [0, 2, 1]


def test_nack_finds_packets_before_and_after_dropped_padding(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.rtp(1, ssrc=10, sequence=1001, timestamp=0, payload=b"", padding=100)
    frame(rig, 2)
    rig.rtp(1, ssrc=10, sequence=1003, timestamp=0, payload=b"", padding=100)
    frame(rig, 4)
    seen = list(rig.sent[2])
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[header.sequence for header, _, _ in seen]))
    assert [payload[2:] for _, _, payload in rig.sent[2][3:]] == [payload for _, _, payload in seen]


def test_padding_of_media_packets_is_stripped(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    rig.rtp(1, ssrc=10, sequence=1, timestamp=0, payload=vp8_payload(key=True), padding=9, mid="1")
    header, packet, payload = rig.sent[2][0]
    assert payload == vp8_payload(key=True)
    assert header.payload_end == len(packet)


def test_original_that_comes_after_its_retransmission_is_forwarded_once(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    frame(rig, 2)
    rtx = (1001).to_bytes(2, "big") + vp8_payload(picture_id=1, tl0=1)
    rig.rtp(1, ssrc=11, sequence=1, timestamp=3000, payload=rtx, payload_type=97, mid="1")
    frame(rig, 1)
    assert len(rig.sent[2]) == 3
    assert rig.drops("duplicate") == 1


def layers(rig: Rig) -> dict[str, int]:
    rig.plane.close_producer(1)
    rig.produce(1, 1, rids=("l", "m", "h"))
    return {"l": 100, "m": 200, "h": 300}


def layer_frame(rig: Rig, rid: str, number: int, *, key: bool = False) -> None:
    """A frame of one layer; layers have their own sequence numbers, clocks and picture ids."""
    offset = {"l": 0, "m": 20_000, "h": 40_000}[rid]
    payload = vp8_payload(key=key, picture_id=(offset + number) & 0x7FFF, tl0=offset + number, body=rid.encode())
    rig.rtp(
        1,
        ssrc={"l": 100, "m": 200, "h": 300}[rid],
        sequence=offset + number,
        timestamp=offset * 1000 + number * 3000,
        payload=payload,
        marker=True,
        mid="1",
        rid=rid,
    )


def assert_continuous(rig: Rig, peer: int) -> None:
    seen = rig.sent[peer]
    for (before, _, a), (after, _, b) in itertools.pairwise(seen):
        assert rtp.sequence_delta(after.sequence, before.sequence) == 1
        assert 0 < rtp.timestamp_delta(after.timestamp, before.timestamp) <= 90_000
        old, new = vp8.parse(a), vp8.parse(b)
        assert (new.picture_id - old.picture_id) & 0x7FFF == 1
        assert (new.tl0 - old.tl0) & 0xFF == 1


def test_highest_flowing_layer_is_chosen_and_switches_are_continuous(rig: Rig) -> None:
    layers(rig)
    rig.consume(1, 2, 1)
    for number in range(40):
        rig.run_until(100.0 + number / 30)
        layer_frame(rig, "l", number, key=number == 0)
        if number >= 5:
            layer_frame(rig, "m", number, key=number in (5, 20))
        if number >= 15:
            layer_frame(rig, "h", number, key=number in (15,))
    bodies = [payload[-1:] for _, _, payload in rig.sent[2]]
    # At a switch the same moment is sent in both layers, the new one a millisecond later.
    assert bodies == [b"l"] * 6 + [b"m"] * 11 + [b"h"] * 25
    assert_continuous(rig, 2)
    assert [event for event in rig.events if isinstance(event, LayerSwitched)] == [
        LayerSwitched(1, "l"),
        LayerSwitched(1, "m"),
        LayerSwitched(1, "h"),
    ]


def test_layer_changes_only_at_its_key_frame_and_asks_for_it(rig: Rig) -> None:
    layers(rig)
    rig.consume(1, 2, 1)
    for rid in ("l", "m", "h"):
        layer_frame(rig, rid, 0, key=True)
    rig.sent[2].clear()
    rig.feedback[1].clear()
    rig.plane.set_layer(1, "l", now=rig.now)
    rig.collect()
    assert [packet.media for packet in rig.of(1, rtcp.PictureLoss)] == [100]
    layer_frame(rig, "l", 1)
    layer_frame(rig, "h", 1)
    layer_frame(rig, "l", 2, key=True)
    layer_frame(rig, "h", 2)
    assert [payload[-1:] for _, _, payload in rig.sent[2]] == [b"h", b"l"]
    assert_continuous(rig, 2)


def test_a_layer_that_stops_is_left_for_the_next_one(rig: Rig) -> None:
    layers(rig)
    rig.consume(1, 2, 1)
    for rid in ("l", "h"):
        layer_frame(rig, rid, 0, key=True)
    for number in range(1, 30):
        rig.run_until(100.0 + number / 30)
        layer_frame(rig, "l", number, key=number == 25)
    assert 100 in [packet.media for packet in rig.of(1, rtcp.PictureLoss)]
    assert rig.sent[2][-1][2].endswith(b"l")
    assert rig.plane.snapshot().consumers[0].rid == "l"


def test_switch_aligns_time_by_the_publishers_sender_reports(rig: Rig) -> None:
    layers(rig)
    rig.consume(1, 2, 1)
    rig.plane.set_layer(1, "l", now=rig.now)
    layer_frame(rig, "l", 0, key=True)
    layer_frame(rig, "m", 0, key=True)
    ntp = 3_900_000_000 << 32
    rig.rtcp(1, rtcp.sender_report(rtcp.SenderReport(ssrc=100, ntp=ntp, rtp_timestamp=0, packets=1, octets=1)))
    # The layer m has its own clock: frame 0 of it was captured 10 ms later than frame 0 of l.
    stamp = 20_000_000 - 900
    rig.rtcp(1, rtcp.sender_report(rtcp.SenderReport(ssrc=200, ntp=ntp, rtp_timestamp=stamp, packets=1, octets=1)))
    rig.plane.set_layer(1, "m", now=rig.now)
    rig.run_until(100.3)
    layer_frame(rig, "m", 5, key=True)
    first, second = rig.sent[2][0][0], rig.sent[2][-1][0]
    assert rtp.timestamp_delta(second.timestamp, first.timestamp) == 5 * 3000 + 900


def test_pause_and_resume_go_on_at_a_key_frame_with_continuous_numbers(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    frame(rig, 1)
    rig.plane.pause(1, True, now=rig.now)
    for number in range(2, 10):
        frame(rig, number)
    rig.plane.pause(1, False, now=rig.now)
    frame(rig, 10)
    frame(rig, 11, key=True)
    sequences = [header.sequence for header, _, _ in rig.sent[2]]
    assert [rtp.sequence_delta(sequence, sequences[0]) for sequence in sequences] == [0, 1, 2]
    assert rig.sent[2][-1][0].timestamp - rig.sent[2][0][0].timestamp == 33_000, "real time has gone on"


def test_a_packet_of_a_pause_that_comes_late_is_not_sent(rig: Rig) -> None:
    """Its number has gone to another packet: both under one SRTP index would give AES-GCM's key away."""
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.plane.pause(1, True, now=rig.now)
    frame(rig, 1)
    rig.plane.pause(1, False, now=rig.now)
    for number in range(4, 8):
        frame(rig, number, key=number == 4)
    frame(rig, 3, body=b"late")
    sequences = [header.sequence for header, _, _ in rig.sent[2]]
    assert [rtp.sequence_delta(sequence, sequences[0]) for sequence in sequences] == [0, 1, 2, 3, 4]
    assert not any(payload.endswith(b"late") for _, _, payload in rig.sent[2])


def test_a_resend_of_what_was_never_forwarded_is_the_same_each_time(rig: Rig) -> None:
    rig.consume(1, 2, 1, rtx=False)
    rig.deaf.add(2)
    frame(rig, 0, key=True)
    frame(rig, 2)
    rig.plane.pause(1, True, now=rig.now)
    frame(rig, 1)
    rig.plane.pause(1, False, now=rig.now)
    missing = (rtp.parse(rig.wire[0][0]).sequence + 1) & 0xFFFF
    for _ in range(2):
        rig.now += 1.0
        rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[missing]))
    resent = [d for d, address in rig.wire if address == rig.address(2) and rtp.parse(d).sequence == missing]
    assert len(resent) == 2
    assert resent[0] == resent[1]


def test_a_new_ssrc_of_the_same_track_goes_on_with_continuous_numbers(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    for number in range(3):
        frame(rig, number, key=number == 0)
    rig.now += 1 / 30
    payload = vp8_payload(key=True, picture_id=9000, tl0=77)
    rig.rtp(1, ssrc=12, sequence=40_000, timestamp=123_456_789, payload=payload, mid="1")
    assert_continuous(rig, 2)
    frame(rig, 3)
    assert rig.drops("unknown-ssrc") == 1, "the SSRC that was replaced is not bound again"


def test_receiver_reports_come_early_with_remb_for_video(rig: Rig) -> None:
    rig.rtp(1, ssrc=11, sequence=1, timestamp=0, payload=b"", payload_type=97, mid="1", padding=50)
    frame(rig, 0, key=True)
    rig.run_until(100.2)
    report = rig.of(1, rtcp.ReceiverReport)[0]
    assert {block.ssrc for block in report.blocks} == {10, 11}
    remb = rig.of(1, rtcp.Remb)[0]
    assert remb.ssrcs == (10,)
    assert remb.bitrate_bps == pytest.approx(2_500_000, rel=1e-4)
    rig.run_until(104.05)
    assert len(rig.of(1, rtcp.ReceiverReport)) == 5, "one early, then one a second"


def test_receiver_report_tells_loss_and_echoes_the_sender_report(rig: Rig) -> None:
    frame(rig, 0, key=True)
    report = rtcp.SenderReport(ssrc=10, ntp=0x1234_5678_9ABC_DEF0, rtp_timestamp=0, packets=1, octets=1)
    rig.rtcp(1, rtcp.sender_report(report))
    rig.run_until(100.2)
    frame(rig, 4)
    rig.run_until(101.1)
    (block,) = rig.of(1, rtcp.ReceiverReport)[-1].blocks
    assert (block.lost, block.fraction_lost) == (3, 3 * 256 // 4)
    assert block.last_sr == 0x5678_9ABC
    assert block.delay_since_sr == pytest.approx(1.0 * 65536, rel=0.01)


def test_sender_report_keeps_the_publishers_clock_and_counts_our_own_packets(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    ntp = 3_900_000_000 << 32
    rig.rtcp(1, rtcp.sender_report(rtcp.SenderReport(ssrc=10, ntp=ntp, rtp_timestamp=0, packets=9, octets=9)))
    rig.run_until(100.15)
    (report,) = rig.of(2, rtcp.SenderReport)
    elapsed_s = (report.ntp - ntp) / 2**32
    assert elapsed_s == pytest.approx(0.1, abs=0.01)
    assert report.rtp_timestamp - rig.sent[2][0][0].timestamp == pytest.approx(elapsed_s * 90_000, abs=2)
    assert (report.ssrc, report.packets) == (5001, 1)
    assert rig.of(2, rtcp.SourceDescription) == [rtcp.SourceDescription(cnames=((5001, "room"),))]


def test_sender_report_follows_the_timestamps_through_a_layer_switch(rig: Rig) -> None:
    layers(rig)
    rig.consume(1, 2, 1)
    rig.plane.set_layer(1, "l", now=rig.now)
    layer_frame(rig, "l", 0, key=True)
    ntp = 3_900_000_000 << 32
    rig.run_until(100.5)
    layer_frame(rig, "m", 15)
    rig.plane.set_layer(1, "m", now=rig.now)
    layer_frame(rig, "m", 16, key=True)
    stamp = 20_000_000 + 16 * 3000
    rig.rtcp(1, rtcp.sender_report(rtcp.SenderReport(ssrc=200, ntp=ntp, rtp_timestamp=stamp, packets=1, octets=1)))
    rig.run_until(101.2)
    (report,) = rig.of(2, rtcp.SenderReport)
    since_s = (report.ntp - ntp) / 2**32
    assert report.rtp_timestamp - rig.sent[2][-1][0].timestamp == pytest.approx(since_s * 90_000, abs=2)


def test_round_trip_comes_from_the_echo(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.rtcp(1, rtcp.sender_report(rtcp.SenderReport(ssrc=10, ntp=1 << 40, rtp_timestamp=0, packets=9, octets=9)))
    rig.run_until(100.1)
    (report,) = rig.of(2, rtcp.SenderReport)
    rig.now = 100.25
    block = rtcp.ReportBlock(
        ssrc=5001,
        fraction_lost=64,
        lost=1,
        highest=1,
        jitter=0,
        last_sr=report.ntp >> 16 & 0xFFFFFFFF,
        delay_since_sr=6554,
    )
    rig.rtcp(2, rtcp.receiver_report(1, [block]))
    consumer = rig.plane.snapshot().consumers[0]
    assert consumer.rtt_ms == pytest.approx(50.0, abs=1.0)
    assert consumer.fraction_lost == 0.25


def test_of_sender_reports_with_the_same_time_the_newest_is_meant(rig: Rig) -> None:
    """A publisher may repeat an NTP time, and what a viewer is sent is made of it."""
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    for second in range(6):
        rig.run_until(100.05 + second)
        rig.rtcp(1, rtcp.sender_report(rtcp.SenderReport(ssrc=10, ntp=1 << 40, rtp_timestamp=0, packets=9, octets=9)))
        rig.run_until(100.15 + second)
    reports = rig.of(2, rtcp.SenderReport)
    assert len(reports) == 6
    assert len({report.ntp >> 20 for report in reports}) == 1, "they do bear one time"
    last_sr = reports[-1].ntp >> 16 & 0xFFFFFFFF
    block = rtcp.ReportBlock(ssrc=5001, fraction_lost=0, lost=0, highest=1, jitter=0, last_sr=last_sr, delay_since_sr=0)
    rig.rtcp(2, rtcp.receiver_report(1, [block]))
    assert rig.plane.snapshot().consumers[0].rtt_ms == pytest.approx(50.0, abs=5.0)


def test_a_reference_time_is_answered_at_once_and_once_a_compound(rig: Rig) -> None:
    times = [rtcp.reference_time(sender=number, ntp=number << 32 | 5 << 16) for number in (77, 78)]
    rig.rtcp(2, rtcp.receiver_report(77, []) + times[0] + times[1])
    (answer,) = [compound for peer, compound in rig.plain if peer == 2]
    assert answer[:2] == bytes((0x80, rtcp.XR))
    assert answer[8:].hex(" ", 4) == "05000003 0000004d 004d0005 00000000"


def test_a_flood_of_reference_times_is_answered_ten_times_a_second(rig: Rig) -> None:
    for _ in range(100):
        rig.rtcp(2, rtcp.reference_time(sender=77, ntp=1 << 32))
        rig.run_until(rig.now + 0.01)
    answers = [compound for peer, compound in rig.plain if peer == 2 and compound[1] == rtcp.XR]
    assert 9 <= len(answers) <= 11
    rig.rtcp(1, rtcp.reference_time(sender=78, ntp=1 << 32))
    assert rig.plain[-1][0] == 1, "another peer's flood is its own"


def test_silence_and_return_are_told(rig: Rig) -> None:
    frame(rig, 0, key=True)
    rig.run_until(100.0 + SILENT_AFTER_S + 0.3)
    assert rig.events[-1] == ProducerSilent(1)
    frame(rig, 1)
    assert rig.events[-1] == ProducerResumed(1)


def test_bye_ends_a_producer(rig: Rig) -> None:
    frame(rig, 0, key=True)
    rig.rtcp(1, rtcp.bye([10]))
    assert rig.events[-1] == ProducerEnded(1)


def test_unknown_ssrc_is_dropped_and_counted(rig: Rig) -> None:
    rig.rtp(1, ssrc=99, sequence=1, timestamp=0, payload=b"?", payload_type=34, mid="nobody")
    assert rig.drops("unknown-ssrc") == 1


def test_forged_and_foreign_datagrams_do_no_harm(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.datagram(1, b"\x80\x60" + bytes(1200))
    rig.plane.handle(b"\x80\x60" + bytes(40), ("203.0.113.9", 9), now=rig.now)
    rig.datagram(1, b"\x80\xc8" + bytes(5))
    rig.rtcp(1, b"\x81\xc9\x00\x01\x00\x00\x00\x01")
    assert rig.drops("not-authentic") == 1
    assert rig.drops("unknown-address") == 1
    assert rig.drops("bad-rtp") == 1
    assert rig.drops("bad-rtcp") == 1
    frame(rig, 1)
    assert len(rig.sent[2]) == 2


def sent_to(rig: Rig, peer: int) -> list[Address]:
    """Where the peer's media went, datagram by datagram."""
    return [address for datagram, address in rig.wire if address[1] == rig.address(peer)[1] and not is_rtcp(datagram)]


def test_media_is_taken_from_each_address_that_a_check_has_shown(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.places[1] = 1
    frame(rig, 1)
    assert rig.drops("unknown-address") == 1
    rig.check(1, 1)
    frame(rig, 2)
    assert len(rig.sent[2]) == 2


def test_a_viewer_is_followed_to_the_address_that_it_sends_from(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.now += 5.0
    rig.check(2, 1)
    frame(rig, 1)
    rig.places[2] = 1
    rig.rtcp(2, rtcp.receiver_report(1, ()))
    frame(rig, 2)
    assert sent_to(rig, 2) == [rig.address(2, 0), rig.address(2, 0), rig.address(2, 1)]


def test_another_peers_checks_do_not_take_an_address_that_is_in_use(rig: Rig) -> None:
    frame(rig, 0, key=True)
    rig.now += OWNED_S - 0.1
    rig.plane.add_address(2, rig.address(1), nominated=True, now=rig.now)
    assert rig.plane.peer_at(rig.address(1)) == 1
    frame(rig, 1)
    rig.now += OWNED_S
    rig.plane.add_address(2, rig.address(1), nominated=True, now=rig.now)
    assert rig.plane.peer_at(rig.address(1)) == 2
    assert rig.plane.address_of(1) is None


def test_a_peer_has_a_bounded_number_of_addresses(rig: Rig) -> None:
    for place in range(100):
        rig.check(1, place)
    assert sum(rig.plane.peer_at(rig.address(1, place)) == 1 for place in range(100)) == MAX_ADDRESSES
    assert rig.plane.address_of(1) == rig.address(1, 0)
    rig.plane.remove_peer(1)
    assert all(rig.plane.peer_at(rig.address(1, place)) is None for place in range(100))


def test_a_peer_that_nominates_several_addresses_at_once_is_sent_to_where_it_sends_from(rig: Rig) -> None:
    """As with aggressive nomination (RFC 5245 section 8.1.1.2): each check names its pair, whichever is used."""
    rig.consume(1, 2, 1)
    for second in range(20):
        rig.now += 0.5
        for place in (2, 1, 0):
            rig.check(2, place, nominated=True)
        rig.places[2] = 2
        rig.rtcp(2, rtcp.receiver_report(1, ()))
        frame(rig, second, key=second == 0)
    addresses = sent_to(rig, 2)
    assert addresses[-10:] == [rig.address(2, 2)] * 10
    assert sum(one != other for one, other in itertools.pairwise(addresses)) <= 1


@pytest.mark.parametrize("profile", SrtpProfile)
def test_an_ssrc_that_changes_for_ever_is_always_forwarded_and_never_replayed(profile: SrtpProfile) -> None:
    rig = Rig(profile=profile)
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1)
    rig.consume(1, 2, 1)
    given: list[bytes] = []
    handle = rig.plane.handle

    def keep(datagram: bytes, address: Address, *, now: float) -> None:
        given.append(datagram)
        handle(datagram, address, now=now)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Rig, "datagram", lambda rig, peer, datagram: keep(datagram, rig.address(1), now=rig.now))
        for number in range(MAX_SSRCS + 60):
            frame(rig, number, key=True, ssrc=10_000 + number)
            rig.now += 0.01
    rig.collect()
    assert len(rig.sent[2]) == MAX_SSRCS + 60
    for old in (given[0], given[1], given[55], given[70], given[-2]):
        rig.datagram(1, old)
    assert len(rig.sent[2]) == MAX_SSRCS + 60
    assert (rig.drops("retired-ssrc"), rig.drops("not-authentic")) == (3, 2)
    frame(rig, MAX_SSRCS + 60, ssrc=10_000 + MAX_SSRCS + 59)
    assert len(rig.sent[2]) == MAX_SSRCS + 61


def test_the_ssrc_that_was_silent_longest_is_retired(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    for number in range(2 * MAX_SSRCS):
        rig.rtp(1, ssrc=10_000 + number, sequence=1, timestamp=0, payload=b"x", payload_type=34)
        if number % (MAX_SSRCS // 2) == 0:
            frame(rig, 1 + number // (MAX_SSRCS // 2))
    frame(rig, 5)
    assert len(rig.sent[2]) == 6
    assert rig.drops("retired-ssrc") == 0


@pytest.mark.parametrize("report_first", [False, True])
@pytest.mark.parametrize("profile", SrtpProfile)
def test_a_stream_that_begins_just_below_the_wrap_may_lose_its_first_packets(
    profile: SrtpProfile, report_first: bool
) -> None:
    """Its rollover counter is 1 when it is first heard, which no packet says."""
    rig = Rig(profile=profile)
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1)
    rig.consume(1, 2, 1)
    late: list[bytes] = []
    if report_first:
        rig.rtcp(1, rtcp.receiver_report(10, ()))
        rig.datagram(1, b"\x80\x60\0\x05" + bytes(4) + (10).to_bytes(4, "big") + bytes(40))
        assert rig.drops("not-authentic") == 1
    for number in range(-20, 40):
        payload = vp8_payload(key=number % 10 == 0, picture_id=20 + number, tl0=20 + number)
        timestamp = (20 + number) * 3000
        if number < 0:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rig, "datagram", lambda peer, datagram: late.append(datagram))
                rig.rtp(1, ssrc=10, mid="1", marker=True, sequence=number, timestamp=timestamp, payload=payload)
        else:
            rig.rtp(1, ssrc=10, mid="1", marker=True, sequence=number, timestamp=timestamp, payload=payload)
    assert len(rig.sent[2]) == 40
    before = rig.drops("not-authentic")
    rig.datagram(1, late[-1])
    assert rig.drops("not-authentic") == before, "one that comes late is understood"
    rig.datagram(1, late[-1])
    assert rig.drops("not-authentic") == before + 1, "and not twice"


def test_unreadable_vp8_costs_one_packet_and_leaves_no_gap(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.rtp(1, ssrc=10, sequence=1001, timestamp=3000, payload=b"\x90")
    frame(rig, 2)
    first, second = (header.sequence for header, _, _ in rig.sent[2])
    assert rtp.sequence_delta(second, first) == 1
    assert rig.drops("bad-payload") == 1


def test_removal_is_safe_at_any_moment_and_twice(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.plane.remove_peer(2)
    rig.plane.remove_peer(2)
    frame(rig, 1)
    rig.plane.close_consumer(1)
    rig.plane.close_producer(1)
    rig.plane.close_producer(1)
    frame(rig, 2)
    rig.plane.remove_peer(1)
    rig.run_until(110.0)
    snapshot = rig.plane.snapshot()
    assert (snapshot.peers, snapshot.producers, snapshot.consumers) == ((), (), ())
    assert rig.plane.next_deadline() is None, "nothing goes on ticking for what is gone"


def test_consuming_what_is_gone_is_refused_not_raised(rig: Rig) -> None:
    spec = ConsumerSpec(consumer=9, peer=2, producer=77, ssrc=1, payload_type=100, codec="VP8")
    assert not rig.plane.consume(spec, now=rig.now)


def test_viewer_that_becomes_ready_later_gets_a_key_frame(rig: Rig) -> None:
    frame(rig, 0, key=True)
    rig.plane.add_peer(3)
    rig.consume(1, 3, 1)
    assert rig.of(1, rtcp.PictureLoss) == []
    rig.plane.remove_peer(3)
    rig.peer(3)
    rig.consume(2, 3, 1)
    rig.collect()
    assert len(rig.of(1, rtcp.PictureLoss)) == 1


def test_ssrc_towards_a_peer_is_never_used_twice_under_the_same_keys(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    again = ConsumerSpec(consumer=2, peer=2, producer=1, ssrc=5001, payload_type=100, codec="VP8")
    rtx_again = ConsumerSpec(
        consumer=2, peer=2, producer=1, ssrc=1, payload_type=100, codec="VP8", rtx_ssrc=6001, rtx_payload_type=101
    )
    for spec in (again, rtx_again):
        with pytest.raises(ValueError, match="SSRC"):
            rig.plane.consume(spec, now=rig.now)
    rig.plane.close_consumer(1)
    with pytest.raises(ValueError, match="SSRC"):
        rig.plane.consume(again, now=rig.now)


def test_an_ssrc_of_a_refused_consumer_is_not_used_up(rig: Rig) -> None:
    rig.consume(1, 2, 1)

    def spec(ssrc: int, rtx_ssrc: int) -> ConsumerSpec:
        return ConsumerSpec(
            consumer=2, peer=2, producer=1, ssrc=ssrc, payload_type=100, codec="VP8", rtx_ssrc=rtx_ssrc,
            rtx_payload_type=101,
        )  # fmt: skip

    for refused in (spec(7, 6001), spec(7, 7)):
        with pytest.raises(ValueError, match="SSRC"):
            rig.plane.consume(refused, now=rig.now)
    assert rig.plane.consume(spec(7, 8), now=rig.now)


def test_closed_consumer_gets_no_feedback_any_more(rig: Rig) -> None:
    rig.consume(1, 2, 1)
    frame(rig, 0, key=True)
    rig.plane.close_consumer(1)
    rig.rtcp(2, rtcp.picture_loss(sender=1, media=5001))
    assert rig.of(1, rtcp.PictureLoss) == []


def test_ssrc_of_a_closed_producer_can_publish_again(rig: Rig) -> None:
    frame(rig, 0, key=True)
    rig.plane.close_producer(1)
    rig.produce(2, 1)
    rig.rtp(1, ssrc=10, sequence=1001, timestamp=0, payload=vp8_payload(key=True), mid="2")
    assert rig.events[-1] == ProducerFlowing(2)
