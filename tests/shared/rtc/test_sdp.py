"""Session descriptions: real ones are read whole, written ones come back equal, and nothing but `BadSdp` escapes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.errors import BadSdp
from shared.rtc.sdp import (
    MAX_CHARS,
    Direction,
    Extension,
    ExtensionUri,
    Fingerprint,
    MediaSection,
    Rid,
    Ssrc,
    describe,
    h264,
    host_candidate,
    opus,
    parse,
    refusal,
    rtx,
    tcp_candidate,
    vp8,
    write,
)
from tests.budget import examples

DATA = Path(__file__).parents[2] / "data"
REAL = [path.read_text() for path in sorted(DATA.glob("*.sdp"))]
FINGERPRINT = Fingerprint("sha-256", ":".join(["AB"] * 32))


def real(name: str) -> str:
    return (DATA / f"chromium-156-{name}.sdp").read_text()


def test_a_browsers_simulcast_offer_is_read_whole() -> None:
    offer = parse(real("offer-simulcast-publish"))
    audio, video = offer.media
    assert offer.bundle == ("0", "1")
    assert (audio.kind, audio.mid, audio.direction, audio.setup) == ("audio", "0", Direction.SENDONLY, "actpass")
    assert audio.ufrag == "rb90"
    assert audio.pwd == "CjoNdYvKipA4Ngta2a65VQE8"
    assert audio.rtcp_mux
    assert audio.named("OPUS")[0].channels == 2
    assert audio.extension_id(ExtensionUri.AUDIO_LEVEL) == 1
    assert audio.ssrcs[0].ssrc == 1272072529
    assert audio.ssrcs[0].cname == "qpmakWM+fRO6snyw"
    assert [rid.rid for rid in video.rids] == ["l", "m", "h"]
    assert video.simulcast_send == ("l", "m", "h")
    assert video.extension_id(ExtensionUri.REPAIRED_RID) == 11
    repair = video.rtx_for(96)
    assert repair is not None
    assert repair.pt == 97
    assert "nack pli" in video.codecs[0].feedback


def test_a_plain_offer_has_its_profiles_groups_and_data_channel() -> None:
    video, audio, data = parse(real("offer-plain")).media
    assert [codec.parameters["profile-level-id"] for codec in video.named("h264")][:2] == ["42001f", "42001f"]
    assert video.fid_groups == ((88632202, 567771134),)
    assert audio.named("PCMU")[0].pt == 0
    assert data.kind == "application"
    assert data.sctp_port == 5000


@pytest.mark.parametrize(("text", "ptime_ms"), [("20", 20), ("120", 120), ("0", 0), ("121", 0), ("2.5", 0), ("²", 0)])
def test_a_wish_for_the_length_of_packets_is_read_or_passed_over(text: str, ptime_ms: int) -> None:
    (audio,) = parse(f"v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=ptime:{text}\r\n").media
    assert audio.ptime_ms == ptime_ms
    assert parse(write(describe([audio], session_id="1", version=1))).media[0].ptime_ms == ptime_ms


@pytest.mark.parametrize("text", REAL)
def test_what_was_read_and_written_reads_the_same(text: str) -> None:
    once = parse(text)
    assert parse(write(once)).media == once.media


def test_a_section_with_everything_survives_the_round_trip() -> None:
    section = MediaSection(
        kind="video",
        mid="v",
        formats=("96", "97", "102"),
        direction=Direction.RECVONLY,
        ufrag="abcd",
        pwd="p" * 22,
        fingerprints=(FINGERPRINT,),
        setup="passive",
        codecs=(vp8(96), rtx(97, apt=96), h264(102)),
        extensions=(Extension(id=4, uri=ExtensionUri.MID), Extension(id=2, uri="urn:x", direction="sendonly")),
        rids=(Rid(rid="l", direction="recv"), Rid(rid="h", direction="recv")),
        simulcast_recv=("l", "h"),
        ssrcs=(Ssrc(ssrc=1, cname="c", msid="- t"), Ssrc(ssrc=2, cname="c")),
        fid_groups=((1, 2),),
        msid="- t",
        candidates=(host_candidate("127.0.0.1", 5000), host_candidate("10.0.0.1", 5000, index=1)),
        end_of_candidates=True,
        rtcp_mux=True,
        rtcp_rsize=True,
    )
    description = describe([section], session_id="5", version=3, ice_lite=True)
    assert parse(write(description)) == description


def test_session_level_credentials_apply_to_sections_without_their_own() -> None:
    text = (
        f"v=0\r\na=ice-ufrag:abcd\r\na=ice-pwd:{'p' * 22}\r\na=setup:actpass\r\n"
        f"a=fingerprint:SHA-256 {FINGERPRINT.value.lower()}\r\n"
        "m=audio 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 OPUS/48000/2\r\n"
    )
    (audio,) = parse(text).media
    assert (audio.ufrag, audio.setup, audio.fingerprints) == ("abcd", "actpass", (FINGERPRINT,))
    assert audio.codecs[0].is_("opus")


def test_a_refused_section_is_not_bundled() -> None:
    section = MediaSection(kind="application", mid="2", protocol="UDP/DTLS/SCTP", formats=("webrtc-datachannel",))
    answer = describe(
        [MediaSection(kind="audio", mid="0", codecs=(opus(),)), refusal(section)], session_id="1", version=1
    )
    assert answer.bundle == ("0",)
    assert parse(write(answer)).media[1].rejected


def test_bundle_only_sections_are_not_rejected() -> None:
    text = "v=0\nm=audio 0 UDP/TLS/RTP/SAVPF 96\na=bundle-only\n"
    assert not parse(text).media[0].rejected


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("", "v=0"),
        ("garbage", "v=0"),
        ("v=0\nm=audio", "short m-line"),
        ("v=0\nm=audio 99999 X 0", "port"),
        ("v=0\nm=audio 9 X 96\na=rtpmap:96 opus", "rtpmap"),
        ("v=0\nm=audio 9 X 96\na=rtpmap:٩٦ opus/48000", "payload type"),
        ("v=0\nm=audio 9 X 96\na=fingerprint:sha-256 AB", "fingerprint"),
        ("v=0\nm=audio 9 X 96\na=ice-ufrag:a", "ice-ufrag"),
        ("v=0\nm=audio 9 X 96\na=ssrc:4294967296 cname:x", "SSRC"),
        ("v=0\nm=audio 9 X 96\na=mid:0\nm=audio 9 X 96\na=mid:0", "twice"),
        ("v=0\n" + "m=audio 9 X 96\n" * 201, "m-lines"),
        ("v=0\nm=audio 9 X 96\n" + "".join(f"a=extmap:{1 + n % 200} urn:{n}\n" for n in range(65)), "extensions"),
        ("v=0\nm=audio 9 X " + " ".join(str(n) for n in range(65)), "formats"),
        ("v=0\n" + "a=x\n" * 10_001, "lines"),
        ("v=0\n" + "x" * MAX_CHARS, "longer"),
    ],
)
def test_bad_text_is_refused_with_what_is_wrong(text: str, detail: str) -> None:
    with pytest.raises(BadSdp, match=detail):
        parse(text)


def test_a_payload_type_of_thousands_of_digits_is_no_payload_type() -> None:
    assert parse("v=0\nm=audio 9 X " + "9" * 5000).media[0].codecs == ()


def parse_or_refuse(text: str) -> None:
    """Whatever was taken must also be writable and readable again."""
    try:
        description = parse(text)
    except BadSdp:
        return
    parse(write(description))


@settings(max_examples=examples(200), deadline=None)
@given(st.text())
def test_arbitrary_text_raises_nothing_else(text: str) -> None:
    parse_or_refuse(text)
    parse_or_refuse("v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 96\r\na=" + text)


NAMES = ["rtpmap", "fmtp", "rtcp-fb", "extmap", "rid", "simulcast", "ssrc", "ssrc-group", "candidate", "mid", "group"]


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES), st.text(alphabet="09 /:;,=~*.sendrcvFIDcaopt²٣", max_size=30))))
def test_arbitrary_attributes_raise_nothing_else(attributes: list[tuple[str, str]]) -> None:
    lines = "".join(f"a={name}:{value}\r\n" for name, value in attributes)
    parse_or_refuse("v=0\r\nm=video 9 UDP/TLS/RTP/SAVPF 0 9 09 90\r\n" + lines)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(REAL), st.integers(0, 2**32), st.integers(1, 20))
def test_mutated_real_descriptions_raise_nothing_else(text: str, seed: int, edits: int) -> None:
    rng = random.Random(seed)
    characters = list(text)
    for _ in range(edits):
        place = rng.randrange(len(characters))
        match rng.randrange(4):
            case 0:
                characters[place] = chr(rng.choice([0, 9, 10, 13, 32, 47, 48, 57, 58, 255, 0x0663, 0x2028]))
            case 1:
                del characters[place : place + rng.randrange(1, 40)]
            case 2:
                characters[place:place] = characters[rng.randrange(len(characters)) :][: rng.randrange(1, 200)]
            case _:
                characters.insert(place, rng.choice("0123456789 :;=/-"))
    parse_or_refuse("".join(characters))


def test_a_tcp_candidate_says_who_connects_and_comes_after_those_of_udp() -> None:
    over_udp, over_tcp = host_candidate("127.0.0.1", 5000, index=7), tcp_candidate("127.0.0.1", 5001)
    assert over_tcp.priority < over_udp.priority
    section = MediaSection(kind="audio", mid="0", codecs=(opus(),), candidates=(over_udp, over_tcp))
    text = write(describe([section], session_id="1", version=1))
    assert f"a=candidate:t1 1 tcp {over_tcp.priority} 127.0.0.1 5001 typ host tcptype passive\r\n" in text
    assert parse(text).media[0].candidates == (over_udp, over_tcp)
