"""What clients of the generator offer and answer to Janus, and what they read from it."""

from __future__ import annotations

import pytest

from bench.janus import sdp as janus_sdp
from bench.janus.process import JanusFailed
from bench.relay.peers import OfferedTrack
from shared.rtc import dtls, sdp
from shared.rtc.sdp import Direction, ExtensionUri

OURS = dtls.Fingerprint("sha-256", ":".join(["AB"] * 32))
THEIRS = ":".join(["CD"] * 32)
TRACKS = [
    OfferedTrack(mid="0", kind="video", ssrc=1000),
    OfferedTrack(mid="1", kind="audio", ssrc=1001),
]


def janus_says(*, setup: str = "actpass", port: int = 9, candidate: bool = True) -> str:
    """The shape of Janus' offers to subscribers."""
    lines = [
        "v=0",
        "o=- 1 1 IN IP4 127.0.0.1",
        "s=VideoRoom 1",
        "t=0 0",
        "a=group:BUNDLE 0 1",
        f"a=fingerprint:sha-256 {THEIRS}",
        "a=ice-lite",
    ]
    for mid, kind, payload_type, codec in (("0", "video", 96, "VP8/90000"), ("1", "audio", 111, "opus/48000/2")):
        lines += [
            f"m={kind} {port} UDP/TLS/RTP/SAVPF {payload_type}",
            "c=IN IP4 127.0.0.1",
            "a=sendonly",
            f"a=mid:{mid}",
            "a=rtcp-mux",
            "a=ice-ufrag:Qx1/",
            "a=ice-pwd:aaaaaaaaaaaaaaaaaaaaaa",
            f"a=setup:{setup}",
            f"a=rtpmap:{payload_type} {codec}",
            "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
            "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
            f"a=ssrc:{12345 + payload_type} cname:janus",
        ]
        if candidate:
            lines += ["a=candidate:1 1 udp 2015363327 127.0.0.1 23456 typ host", "a=end-of-candidates"]
    return "".join(f"{line}\r\n" for line in lines)


def test_an_offer_names_what_the_generator_sends() -> None:
    offered = sdp.parse(janus_sdp.offer(OURS, TRACKS))
    assert offered.bundle == ("0", "1")
    assert [section.kind for section in offered.media] == ["video", "audio"]
    assert [section.ssrcs[0].ssrc for section in offered.media] == [1000, 1001]
    assert [section.codecs[0].pt for section in offered.media] == [96, 111]
    for section in offered.media:
        assert section.direction is Direction.SENDONLY
        assert (section.setup, section.ufrag) == ("active", "load")
        assert section.fingerprints[0].value == OURS.value
        assert section.extension_id(ExtensionUri.ABS_SEND_TIME) == 2
        assert section.extension_id(ExtensionUri.MID) == 4


def test_an_answer_takes_all_media_and_only_our_extensions() -> None:
    answered = sdp.parse(janus_sdp.answer(janus_says(), OURS))
    assert [(section.mid, section.direction, section.setup) for section in answered.media] == [
        ("0", Direction.RECVONLY, "active"),
        ("1", Direction.RECVONLY, "active"),
    ]
    assert not any(section.rejected for section in answered.media)
    assert [extension.uri for extension in answered.media[0].extensions] == [ExtensionUri.MID]


def test_where_to_connect_is_read_from_the_first_section() -> None:
    remote = janus_sdp.remote(janus_says())
    assert remote.address == ("127.0.0.1", 23456)
    assert (remote.ufrag, remote.pwd) == ("Qx1/", "aaaaaaaaaaaaaaaaaaaaaa")
    assert remote.fingerprint == ("sha-256", THEIRS)


def test_streams_are_known_by_their_mids() -> None:
    assert janus_sdp.streams(janus_says()) == {"0": 12345 + 96, "1": 12345 + 111}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (janus_says(setup="active"), "DTLS client"),
        (janus_says(port=0), "refuses the media"),
        (janus_says(candidate=False), "no candidate"),
    ],
)
def test_a_description_we_cannot_use_is_an_error(text: str, why: str) -> None:
    with pytest.raises(JanusFailed, match=why):
        janus_sdp.remote(text)
