"""A player's descriptions are what any client would say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from player.core import session_sdp as s
from player.core.track import Numbers
from player.core.tracks import OpusTrack, Vp8Track
from shared.errors import BadSdp
from shared.messages.media import TrackOffer
from shared.rtc import sdp

PRINT = sdp.Fingerprint("sha-256", ":".join(["AB"] * 32))
OWN = s.OwnEnd("ufrag1", "password-of-sufficient-length", PRINT)
TRACKS = (
    OpusTrack(publication="mic", mid="0", numbers=Numbers(1, 2, 3, 4, 5), at=0.0),
    Vp8Track(publication="cam", mid="1", numbers=Numbers(11, 12, 13, 14, 15), at=0.0),
)


def sfu_section(kind: str, mid: str, **changes: object) -> sdp.MediaSection:
    video = kind == "video"
    section = sdp.MediaSection(
        kind=kind,
        mid=mid,
        direction=sdp.Direction.SENDONLY,
        ufrag="sfu1",
        pwd="another-password-of-length",
        fingerprints=(PRINT,),
        setup="actpass",
        codecs=(sdp.vp8(96), sdp.rtx(97, apt=96)) if video else (sdp.opus(111),),
        extensions=(sdp.Extension(id=1, uri=sdp.ExtensionUri.MID),),
        candidates=(sdp.host_candidate("192.0.2.1", 5000, index=1), sdp.host_candidate("127.0.0.1", 4000)),
        fid_groups=((71, 72),) if video else (),
        ssrcs=(sdp.Ssrc(ssrc=71), sdp.Ssrc(ssrc=72)) if video else (sdp.Ssrc(ssrc=61),),
        rtcp_mux=True,
    )
    return replace(section, **changes)  # type: ignore[arg-type]


def offer(*sections: sdp.MediaSection) -> sdp.SessionDescription:
    return sdp.parse(sdp.write(sdp.describe(sections, session_id="9", version=1, ice_lite=True)))


def test_the_publish_offer_names_codecs_streams_and_the_mid_extension() -> None:
    read = sdp.parse(s.publish_offer(TRACKS, OWN, version=3, cname="ann"))
    audio, video = read.media
    assert read.bundle == ("0", "1")
    assert [(c.pt, c.name) for c in audio.codecs] == [(111, "opus")]
    assert [(c.pt, c.name) for c in video.codecs] == [(96, "VP8"), (97, "rtx")]
    assert video.fid_groups == ((11, 12),)
    assert [stream.ssrc for stream in audio.ssrcs] == [1]
    for section in read.media:
        assert (section.direction, section.setup, section.rtcp_mux) == (sdp.Direction.SENDONLY, "actpass", True)
        assert section.extension_id(sdp.ExtensionUri.MID) == 4
        assert (section.ufrag, section.fingerprints) == ("ufrag1", (PRINT,))


def test_the_best_candidate_is_where_the_sfu_is() -> None:
    far = s.far_end(offer(sfu_section("audio", "0")))
    assert (far.ip, far.port, far.ufrag) == ("127.0.0.1", 4000, "sfu1")


@pytest.mark.parametrize(
    "sections",
    [
        [],
        [sfu_section("audio", "0", candidates=())],
        [sfu_section("audio", "0", fingerprints=())],
        [sfu_section("audio", "0", port=0)],
    ],
)
def test_a_description_without_a_transport_is_refused(sections: list[sdp.MediaSection]) -> None:
    with pytest.raises(BadSdp):
        s.far_end(offer(*sections))


def test_an_answer_that_refuses_a_track_is_noticed() -> None:
    good = [sfu_section("audio", "0"), sfu_section("video", "1")]
    s.check_accepted(offer(*good), TRACKS)
    for bad in ([good[0]], [good[0], sfu_section("video", "1", port=0)], [sfu_section("audio", "1"), good[0]]):
        with pytest.raises(BadSdp):
            s.check_accepted(offer(*bad), TRACKS)


def test_the_subscribe_answer_takes_what_we_can_play() -> None:
    h264 = sfu_section("video", "2", codecs=(sdp.h264(102),))
    ended = sfu_section("audio", "3", direction=sdp.Direction.INACTIVE)
    text = s.answer_subscribe(offer(sfu_section("audio", "0"), sfu_section("video", "1"), h264, ended), OWN, version=2)
    audio, video, refused, inactive = sdp.parse(text).media
    assert (audio.direction, audio.setup) == (sdp.Direction.RECVONLY, "active")
    assert [codec.pt for codec in video.codecs] == [96, 97]
    assert refused.rejected
    assert inactive.direction == sdp.Direction.INACTIVE


def test_stereo_is_answered_as_offered() -> None:
    stereo = sdp.opus(110, fmtp="minptime=10;useinbandfec=1;stereo=1;sprop-stereo=1")
    text = s.answer_subscribe(offer(sfu_section("audio", "0", codecs=(stereo,))), OWN, version=1)
    assert sdp.parse(text).media[0].codecs[0].parameters["stereo"] == "1"


def test_streams_are_found_by_the_tracks_and_ssrcs_of_the_offer() -> None:
    tracks = (TrackOffer(mid="0", publication="sound"), TrackOffer(mid="1", publication="picture"))
    sections = (sfu_section("audio", "0"), sfu_section("video", "1"), sfu_section("audio", "5"))
    audio, video = s.incoming(offer(*sections), tracks)
    assert (audio.publication, audio.ssrc, audio.rtx_ssrc, audio.clock) == ("sound", 61, None, 48_000)
    assert (video.publication, video.ssrc, video.rtx_ssrc, video.pt, video.rtx_pt) == ("picture", 71, 72, 96, 97)
