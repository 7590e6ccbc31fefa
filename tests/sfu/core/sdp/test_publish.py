"""The answer to a publish offer: what is taken, what is rejected, and which sentence says what is missing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sfu.core.sdp.formats import MediaFormat
from sfu.core.sdp.publish import PublishedLine, take_offer
from sfu.core.sdp.transport import LocalTransport, RemoteTransport
from shared.errors import BadSdp
from shared.messages.media import TrackOffer
from shared.rtc.sdp import (
    Codec,
    Direction,
    Extension,
    ExtensionUri,
    Fingerprint,
    MediaSection,
    SessionDescription,
    Ssrc,
    describe,
    h264,
    host_candidate,
    opus,
    parse,
    rtx,
    vp8,
    write,
)
from tests.budget import examples

DATA = Path(__file__).parents[3] / "data"
FINGERPRINT = Fingerprint("sha-256", ":".join(["AB"] * 32))
LOCAL = LocalTransport(
    ufrag="ours",
    pwd="o" * 24,
    fingerprint=FINGERPRINT,
    candidates=(host_candidate("127.0.0.1", 7101), host_candidate("10.0.0.1", 7101, index=1)),
)
A, V = TrackOffer(mid="0", publication="mic", kind="audio"), TrackOffer(mid="1", publication="cam", kind="video")


def browser(name: str = "offer-simulcast-publish") -> SessionDescription:
    return parse((DATA / f"chromium-156-{name}.sdp").read_text())


def section(kind: str, mid: str, *codecs: Codec, **more: object) -> MediaSection:
    base = MediaSection(
        kind=kind,
        mid=mid,
        direction=Direction.SENDONLY,
        ufrag="them",
        pwd="t" * 24,
        fingerprints=(FINGERPRINT,),
        setup="actpass",
        codecs=codecs,
        extensions=(Extension(id=4, uri=ExtensionUri.MID),),
        rtcp_mux=True,
    )
    return replace(base, **more)  # type: ignore[arg-type]


def offer(*sections: MediaSection) -> SessionDescription:
    return describe(sections, session_id="9", version=1)


class Answered(NamedTuple):
    answer: SessionDescription
    remote: RemoteTransport
    tracks: tuple[PublishedLine, ...]


def answer(description: SessionDescription, *tracks: TrackOffer) -> Answered:
    taken = take_offer(description, tracks)
    return Answered(taken.answer(LOCAL, session_id="5", version=1), taken.remote, taken.tracks)


def test_a_browsers_simulcast_is_taken_with_its_rids_extensions_and_feedback() -> None:
    result = answer(browser(), A, V)
    mic, cam = result.tracks
    assert (mic.publication, mic.format, mic.rtx, mic.nack) == (
        "mic",
        MediaFormat(kind="audio", name="opus"),
        None,
        False,
    )
    assert mic.ssrcs == ((1272072529, None),)
    assert {e.uri: e.id for e in mic.extensions} == {
        ExtensionUri.AUDIO_LEVEL: 1,
        ExtensionUri.ABS_SEND_TIME: 2,
        ExtensionUri.TRANSPORT_CC: 3,
        ExtensionUri.MID: 4,
    }
    assert (cam.rids, cam.ssrcs, cam.codec.pt, cam.nack) == (("l", "m", "h"), (), 96, True)
    assert cam.rtx is not None
    assert cam.rtx.pt == 97
    text = write(result.answer)
    for line in ("a=ice-lite", "a=simulcast:recv l;m;h", "a=rid:m recv", "a=rtcp-fb:96 goog-remb", "a=setup:passive"):
        assert line in text
    for feedback in ("a=rtcp-fb:111 transport-cc", "a=rtcp-fb:96 transport-cc"):
        assert feedback in text
    assert "a=candidate:1 1 udp" in text
    assert "10.0.0.1 7101 typ host" in text
    assert (result.remote.ufrag, result.remote.pwd) == ("rb90", "CjoNdYvKipA4Ngta2a65VQE8")


def test_the_answer_has_the_offers_m_lines_in_its_order_and_reads_back() -> None:
    given_ = browser("offer-plain")
    result = answer(given_, TrackOffer(mid="1", publication="mic"))
    again = parse(write(result.answer))
    assert [(s.kind, s.mid) for s in again.media] == [("video", "0"), ("audio", "1"), ("application", "2")]
    video, audio, data = again.media
    assert video.direction is Direction.INACTIVE, "a line that no track names can be taken into use later"
    assert audio.direction is Direction.RECVONLY
    assert data.rejected
    assert again.bundle == ("0", "1")
    assert [s.rtcp_mux for s in (video, audio)] == [True, True]


def test_h264_is_taken_in_packetization_mode_1_only_and_keeps_its_profile() -> None:
    mode0 = replace(h264(100), fmtp="packetization-mode=0;profile-level-id=42e01f")
    constrained_high = h264(102, profile="640C1F")
    result = answer(offer(section("video", "1", mode0, constrained_high, rtx(103, apt=102))), V)
    assert result.tracks[0].format == MediaFormat(kind="video", name="H264", profile="640c1f")
    assert [codec.pt for codec in result.answer.media[0].codecs] == [102, 103]


def test_a_wish_for_the_length_of_packets_is_answered() -> None:
    wishing = parse(write(offer(section("audio", "0", opus(), ptime_ms=60), section("video", "1", vp8()))))
    assert [m.ptime_ms for m in answer(wishing, A, V).answer.media] == [60, 0]


def test_gstreamers_spelling_and_missing_mid_extension_are_taken() -> None:
    shouting = Codec(pt=96, name="OPUS", clock=48000, channels=2)
    (track,) = answer(offer(section("audio", "0", shouting, extensions=(), ssrcs=(Ssrc(ssrc=7),))), A).tracks
    assert (track.format.name, track.ssrcs, track.extensions) == ("opus", ((7, None),), ())


def test_ssrcs_are_paired_with_their_retransmissions() -> None:
    video = section("video", "1", vp8(96), rtx(97, apt=96), ssrcs=(Ssrc(ssrc=1), Ssrc(ssrc=2)), fid_groups=((1, 2),))
    assert answer(offer(video), V).tracks[0].ssrcs == ((1, 2),)


def test_feedback_that_was_not_offered_is_not_answered() -> None:
    bare = replace(vp8(96), feedback=("nack pli",))
    (track,) = answer(offer(section("video", "1", bare)), V).tracks
    assert track.codec.feedback == ("nack pli",)
    assert not track.nack


def test_two_byte_extension_ids_are_not_taken() -> None:
    high = section("audio", "0", opus(), extensions=(Extension(id=15, uri=ExtensionUri.MID),))
    assert answer(offer(high), A).tracks[0].extensions == ()


def test_a_stopped_line_carries_nothing() -> None:
    stopped = section("audio", "0", opus(), direction=Direction.INACTIVE)
    live = section("video", "1", vp8(96))
    assert [track.publication for track in answer(offer(stopped, live), A, V).tracks] == ["cam"]


AUDIO = section("audio", "0", opus())
SAME_SSRC = (replace(AUDIO, ssrcs=(Ssrc(ssrc=1),)), section("video", "1", vp8(), ssrcs=(Ssrc(ssrc=1),)))


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("with_feedback", [True, False])
def test_transport_wide_numbers_are_taken_only_with_feedback_about_them(numbered: bool, with_feedback: bool) -> None:
    codec = replace(vp8(96), feedback=("transport-cc", "nack") if with_feedback else ("nack",))
    ids = (Extension(id=4, uri=ExtensionUri.MID), Extension(id=7, uri=ExtensionUri.TRANSPORT_CC))
    result = answer(offer(section("video", "1", codec, extensions=ids if numbered else ids[:1])), V)
    taken = {e.uri: e.id for e in result.tracks[0].extensions}.get(ExtensionUri.TRANSPORT_CC)
    assert taken == (7 if numbered and with_feedback else None)
    assert ("transport-cc" in write(result.answer)) == (numbered and with_feedback)


NO_EXTENSIONS = tuple(replace(s, extensions=()) for s in browser().media)


@pytest.mark.parametrize(
    ("description", "tracks", "missing"),
    [
        (offer(), (), "no m-line"),
        (replace(offer(AUDIO), bundle=()), (A,), "BUNDLE"),
        (replace(offer(AUDIO, section("video", "1", vp8())), bundle=("0",)), (A, V), "not in the BUNDLE"),
        (offer(replace(AUDIO, rtcp_mux=False)), (A,), "rtcp-mux"),
        (offer(replace(AUDIO, ufrag="")), (A,), "ice-ufrag"),
        (offer(replace(AUDIO, fingerprints=(Fingerprint("sha-1", "AB:CD"),))), (A,), "fingerprint"),
        (offer(replace(AUDIO, setup="passive")), (A,), "setup is passive"),
        (offer(replace(AUDIO, mid="")), (), "BUNDLE"),
        (offer(replace(AUDIO, codecs=(Codec(pt=0, name="PCMU", clock=8000),))), (A,), "no codec we forward"),
        (offer(AUDIO), (V,), "no m-line has the mid '1'"),
        (offer(AUDIO), (TrackOffer(mid="0", publication="x", kind="video"),), "its m-line is audio"),
        (offer(AUDIO), (TrackOffer(mid="0", publication="a b"),), "publication id"),
        (offer(AUDIO), (TrackOffer(mid="0", publication="a", generation=0),), "generation"),
        (offer(AUDIO), (A, A), "named twice"),
        (
            offer(replace(AUDIO, ssrcs=(Ssrc(ssrc=1),)), section("video", "1", vp8(), ssrcs=(Ssrc(ssrc=1),))),
            (A, V),
            "SSRC",
        ),
        (
            replace(browser(), media=tuple(replace(s, extensions=()) for s in browser().media)),
            (A, V),
            "simulcast without",
        ),
    ],
)
def test_what_is_missing_is_named(
    description: SessionDescription, tracks: tuple[TrackOffer, ...], missing: str
) -> None:
    with pytest.raises(BadSdp, match=missing):
        answer(description, *tracks)


def test_a_line_without_a_codec_of_ours_is_rejected_when_no_track_needs_it() -> None:
    g722 = section("audio", "0", Codec(pt=9, name="G722", clock=8000))
    result = answer(offer(g722, section("video", "1", vp8())), V)
    assert result.answer.media[0].rejected
    assert result.answer.bundle == ("1",)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_no_offer_makes_anything_but_an_answer_or_bad_sdp(data: st.DataObject) -> None:
    lines = (DATA / "chromium-156-offer-simulcast-publish.sdp").read_text().splitlines()
    kept = data.draw(st.lists(st.sampled_from(lines), max_size=80))
    try:
        result = answer(parse("\r\n".join(["v=0", *kept])), A, V)
    except BadSdp:
        return
    parse(write(result.answer))
