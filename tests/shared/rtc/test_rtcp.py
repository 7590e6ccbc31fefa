"""RTCP: read back what is built, agree with aiortc's reader, survive padding, strangers and garbage."""

from __future__ import annotations

import contextlib

import pytest
from aiortc import rtp as aiortc_rtp
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc import rtcp
from shared.rtc.transport_cc import TransportFeedback

u32 = st.integers(0, 0xFFFFFFFF)
blocks = st.lists(
    st.builds(
        rtcp.ReportBlock,
        ssrc=u32,
        fraction_lost=st.integers(0, 255),
        lost=st.integers(-0x800000, 0x7FFFFF),
        highest=u32,
        jitter=u32,
        last_sr=u32,
        delay_since_sr=u32,
    ),
    max_size=rtcp.MAX_BLOCKS,
).map(tuple)
BLOCK = rtcp.ReportBlock(ssrc=1, fraction_lost=2, lost=-3, highest=0x10004, jitter=5, last_sr=0x60000, delay_since_sr=7)


@given(ssrc=u32, blocks=blocks)
def test_receiver_report_is_read_back(ssrc: int, blocks: tuple[rtcp.ReportBlock, ...]) -> None:
    built = rtcp.receiver_report(ssrc, blocks)
    assert rtcp.parse(built) == [rtcp.ReceiverReport(ssrc=ssrc, blocks=blocks)]


@given(ssrc=u32, ntp=st.integers(0, (1 << 64) - 1), timestamp=u32, packets=u32, octets=u32, blocks=blocks)
def test_sender_report_is_read_back(
    ssrc: int, ntp: int, timestamp: int, packets: int, octets: int, blocks: tuple[rtcp.ReportBlock, ...]
) -> None:
    report = rtcp.SenderReport(
        ssrc=ssrc, ntp=ntp, rtp_timestamp=timestamp, packets=packets, octets=octets, blocks=blocks
    )
    assert rtcp.parse(rtcp.sender_report(report)) == [report]


@given(start=st.integers(0, 0xFFFF), offsets=st.sets(st.integers(0, 300), min_size=1, max_size=60))
def test_nack_is_read_back_across_the_wrap(start: int, offsets: set[int]) -> None:
    sequences = tuple((start + offset) & 0xFFFF for offset in sorted(offsets))
    built = rtcp.nack(sender=1, media=2, sequences=sequences)
    assert rtcp.parse(built) == [rtcp.Nack(sender=1, media=2, sequences=sequences)]


@given(bitrate=st.integers(0, (1 << 40)), ssrcs=st.lists(u32, max_size=10))
def test_remb_is_read_back_to_eighteen_bits(bitrate: int, ssrcs: list[int]) -> None:
    (packet,) = rtcp.parse(rtcp.remb(sender=1, bitrate_bps=bitrate, ssrcs=ssrcs))
    assert isinstance(packet, rtcp.Remb)
    assert packet.ssrcs == tuple(ssrcs)
    assert bitrate * (1 - 2**-17) <= packet.bitrate_bps <= bitrate


@given(cname=st.text(max_size=80), ssrc=u32)
def test_cname_is_read_back(cname: str, ssrc: int) -> None:
    (packet,) = rtcp.parse(rtcp.source_description(ssrc, cname))
    assert packet == rtcp.SourceDescription(cnames=((ssrc, cname.encode()[:255].decode("utf8", "replace")),))


@pytest.mark.parametrize(
    ("built", "expected"),
    [
        (rtcp.picture_loss(sender=1, media=2), rtcp.PictureLoss(sender=1, media=2)),
        (rtcp.full_intra_request(sender=1, media=2, command=300), rtcp.FullIntraRequest(sender=1, media=(2,))),
        (rtcp.bye([3, 4]), rtcp.Bye(ssrcs=(3, 4))),
        (rtcp.bye([]), rtcp.Bye(ssrcs=())),
        (rtcp.reference_time(sender=7, ntp=(1 << 64) - 1), rtcp.ReferenceTime(ssrc=7, ntp=(1 << 64) - 1)),
    ],
)
def test_small_packets_are_read_back(built: bytes, expected: rtcp.RtcpPacket) -> None:
    assert rtcp.parse(built) == [expected]


def test_aiortc_reads_what_we_build() -> None:
    report = rtcp.SenderReport(ssrc=9, ntp=1 << 40, rtp_timestamp=10, packets=11, octets=12, blocks=(BLOCK,))
    compound = (
        rtcp.sender_report(report)
        + rtcp.source_description(9, "name")
        + rtcp.picture_loss(sender=9, media=1)
        + rtcp.nack(sender=9, media=1, sequences=[5, 7, 40])
    )
    sr, sdes, pli, nack = aiortc_rtp.RtcpPacket.parse(compound)
    assert isinstance(sr, aiortc_rtp.RtcpSrPacket)
    assert (sr.sender_info.ntp_timestamp, sr.reports[0].packets_lost, sr.reports[0].lsr) == (1 << 40, -3, 0x60000)
    assert isinstance(sdes, aiortc_rtp.RtcpSdesPacket)
    assert sdes.chunks[0].items == [(1, b"name")]
    assert isinstance(pli, aiortc_rtp.RtcpPsfbPacket)
    assert (pli.fmt, pli.media_ssrc) == (1, 1)
    assert isinstance(nack, aiortc_rtp.RtcpRtpfbPacket)
    assert sorted(nack.lost) == [5, 7, 40]


def test_aiortc_reads_our_remb() -> None:
    built = rtcp.remb(sender=1, bitrate_bps=2_500_000, ssrcs=[7, 8])
    (packet,) = aiortc_rtp.RtcpPacket.parse(built)
    assert isinstance(packet, aiortc_rtp.RtcpPsfbPacket)
    bitrate, ssrcs = aiortc_rtp.unpack_remb_fci(packet.fci)
    assert (bitrate, ssrcs) == (pytest.approx(2_500_000, rel=1e-4), [7, 8])


def test_padded_transport_cc_costs_nothing_around_it() -> None:
    # As Chromium sends it: transport-cc with RTCP padding. aiortc's reader loses the whole compound.
    padded = bytes.fromhex("afcd0005 00000001 00000002 00010002 00000a00 20020001 00000002".replace(" ", ""))
    padded = padded[:2] + (6).to_bytes(2, "big") + padded[4:]
    compound = rtcp.receiver_report(1, [BLOCK]) + padded + rtcp.picture_loss(sender=1, media=2)
    report, feedback, loss = rtcp.parse(compound)
    assert report == rtcp.ReceiverReport(ssrc=1, blocks=(BLOCK,))
    assert isinstance(feedback, TransportFeedback)
    assert (feedback.base, feedback.reference, feedback.arrivals) == (1, 10, (0, 1))
    assert loss == rtcp.PictureLoss(sender=1, media=2)


@pytest.mark.parametrize(
    "compound",
    [
        b"",
        b"\x80",
        b"\x80\xc9\x00\x01",
        b"\x81\xc9\x00\x01\x00\x00\x00\x01",
        b"\x40\xc9\x00\x01\x00\x00\x00\x01",
        b"\xa0\xc9\x00\x01\x00\x00\x00\x09",
        b"\xa0\xc9\x00\x01\x00\x00\x00\x00",
        b"\xa0\xc9\x00\x00",
        b"\x81\xca\x00\x02\x00\x00\x00\x01\x01\xff\x61\x61",
        b"\x81\xcd\x00\x00",
        b"\x80\xcf\x00\x00",
        b"\x80\xcf\x00\x02\x00\x00\x00\x01\x04\x00\x00\x02",
        b"\xa0\xcf\x00\x02\x00\x00\x00\x01\x04\x00\x00\x02",
        rtcp.receiver_report(1, [BLOCK])[:-1],
    ],
)
def test_broken_compounds_are_refused(compound: bytes) -> None:
    with pytest.raises(BadPacket):
        rtcp.parse(compound)


def test_reference_time_is_found_among_other_blocks_of_an_extended_report() -> None:
    ours = rtcp.reference_time(sender=7, ntp=5 << 32)[8:]
    statistics = b"\x06\xe0\x00\x01\x00\x00\x00\x02"
    odd = b"\x04\x00\x00\x01\x00\x00\x00\x00"  # of the right kind and the wrong length
    body = (7).to_bytes(4, "big") + statistics + odd + ours + statistics
    compound = bytes((0x80, rtcp.XR)) + (len(body) // 4).to_bytes(2, "big") + body
    assert rtcp.parse(compound) == [rtcp.ReferenceTime(ssrc=7, ntp=5 << 32)]


def test_answer_to_a_reference_time_is_laid_out_as_the_rfc_has_it() -> None:
    built = rtcp.since_reference(sender=9, reference=rtcp.ReferenceTime(ssrc=7, ntp=0x1122334455667788), delay=3)
    assert built.hex(" ", 4) == "80cf0005 00000009 05000003 00000007 33445566 00000003"
    assert rtcp.parse(built) == [rtcp.Unread(packet_type=rtcp.XR, count=0)]


def test_nack_of_more_than_a_cache_holds_is_refused() -> None:
    built = rtcp.nack(sender=1, media=2, sequences=[(number * 17) & 0xFFFF for number in range(1001)])
    with pytest.raises(BadPacket, match="too many"):
        rtcp.parse(built)


@given(
    st.binary(max_size=300)
    | st.tuples(st.integers(0, 255), st.integers(192, 223), st.binary(max_size=120)).map(
        lambda parts: bytes(parts[:2]) + (len(parts[2]) // 4).to_bytes(2, "big") + parts[2]
    )
)
def test_only_bad_packet_escapes(compound: bytes) -> None:
    with contextlib.suppress(BadPacket):
        rtcp.parse(compound)
