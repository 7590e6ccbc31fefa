"""From a publisher's offer to its viewers' offers: which codec is taken, and which of its parameters get through."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfu.core.sdp.formats import MediaFormat, choose, refusal_of
from sfu.core.sdp.payload_types import H264_SETS_PTS, PayloadTypes
from shared.rtc.sdp import Codec, MediaSection, h264, opus, rtx, vp8

SETS = "Z0LAHtkDxWhAAAADAEAAAAwDxYuS,aMuMsg=="


def line(kind: str, *codecs: Codec) -> MediaSection:
    return MediaSection(kind=kind, mid="0", codecs=codecs)


def chosen(*codecs: Codec) -> tuple[MediaFormat, Codec]:
    found = choose(line("video" if codecs[0].clock == 90000 else "audio", *codecs))
    assert found is not None
    return found


def with_fmtp(codec: Codec, more: str) -> Codec:
    return replace(codec, fmtp=f"{codec.fmtp};{more}")


@pytest.mark.parametrize(
    ("offered", "taken"),
    [
        (("640c1f", "42e01f"), "42e01f"),
        (("42e01f", "640c1f"), "42e01f"),
        (("4d001f", "42C01F"), "42c01f"),
        (("42001f", "42e01f"), "42e01f"),
        (("640028", "4d001f"), "4d001f"),
        (("42e034", "42e01f"), "42e034"),
        (("640c1f",), "640c1f"),
        (("6e0028",), "6e0028"),
        (("garbage",), "42e01f"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, tuple) else value,
)
def test_of_several_h264_profiles_the_one_that_most_decoders_have_is_taken(
    offered: tuple[str, ...], taken: str
) -> None:
    codecs = [h264(96 + 2 * number, profile=profile) for number, profile in enumerate(offered)]
    fmt, answer = chosen(*codecs)
    assert (fmt.profile, answer.parameters["profile-level-id"]) == (taken, taken)


def test_the_players_order_of_codecs_stands_before_that_of_profiles() -> None:
    assert chosen(vp8(96), h264(98))[0].name == "VP8"
    assert chosen(h264(98, profile="640c1f"), vp8(96))[0].name == "H264"
    single_nal = replace(h264(100), fmtp="packetization-mode=0;profile-level-id=42e01f")
    assert chosen(h264(98, profile="640c1f"), single_nal)[1].pt == 98, "packetization mode 1 before any profile"


@pytest.mark.parametrize(
    ("offered", "answered", "viewers"),
    [
        ("minptime=10;useinbandfec=1", "useinbandfec=1", "useinbandfec=1"),
        ("", "useinbandfec=1", "useinbandfec=1"),
        ("useinbandfec=0", "useinbandfec=0", "useinbandfec=0"),
        (
            "useinbandfec=1;stereo=1;sprop-stereo=1;maxaveragebitrate=128000",
            "useinbandfec=1;stereo=1;sprop-stereo=1;maxaveragebitrate=128000",
            "useinbandfec=1;stereo=1;sprop-stereo=1",
        ),
        ("sprop-stereo=1", "useinbandfec=1;stereo=1;sprop-stereo=1", "useinbandfec=1;stereo=1;sprop-stereo=1"),
        ("stereo=1", "useinbandfec=1;stereo=1;sprop-stereo=1", "useinbandfec=1;stereo=1;sprop-stereo=1"),
        ("stereo=1;sprop-stereo=0", "useinbandfec=1", "useinbandfec=1"),
        ("usedtx=1;cbr=1", "useinbandfec=1;usedtx=1;cbr=1", "useinbandfec=1;usedtx=1"),
        ("maxaveragebitrate=5999", "useinbandfec=1", "useinbandfec=1"),
        ("maxaveragebitrate=²;x-own=1;a=b", "useinbandfec=1", "useinbandfec=1"),
    ],
)
def test_what_opus_is_sent_is_answered_and_what_viewers_get_is_offered_to_them(
    offered: str, answered: str, viewers: str
) -> None:
    fmt, answer = chosen(opus(109, fmtp=offered))
    assert answer.fmtp == f"minptime=10;{answered}"
    assert PayloadTypes().codecs(fmt)[0].fmtp == f"minptime=10;{viewers}"


@pytest.mark.parametrize(
    ("sets", "passed"),
    [
        (SETS, SETS),
        ("", ""),
        ("Z0LA\r\na=x", ""),
        ("Z0LA Z0LA", ""),
        ("A" * 255 + "=," + "A" * 256 + "=", ""),
        (",", ""),
    ],
)
def test_parameter_sets_of_h264_reach_the_viewers_and_nothing_else_does_in_their_name(sets: str, passed: str) -> None:
    fmt, answer = chosen(with_fmtp(h264(102), f"sprop-parameter-sets={sets};x-google-start-bitrate=9"))
    assert fmt.parameter_sets == passed
    assert "sprop" not in answer.fmtp
    codec, repair = PayloadTypes().codecs(fmt)
    assert codec.parameters.get("sprop-parameter-sets", "") == passed
    assert "x-google" not in codec.fmtp
    assert repair.apt == codec.pt


def test_a_payload_type_means_one_configuration() -> None:
    types = PayloadTypes()
    sounds = [
        MediaFormat(kind="audio", name="opus", stereo=stereo, fec=fec, dtx=dtx)
        for stereo in (True, False)
        for fec in (True, False)
        for dtx in (True, False)
    ]
    pictures = [MediaFormat(kind="video", name="VP8")]
    pictures += [MediaFormat(kind="video", name="H264", profile=f"42e0{n:02x}") for n in range(8)]
    pictures += [replace(pictures[-1], parameter_sets=f"AAA{n % 10},AAAA{n // 10}A==") for n in range(20)]
    offered = [codec for fmt in (*sounds, *pictures) for codec in types.codecs(fmt)]
    meanings: dict[int, set[Codec]] = {}
    for codec in offered:
        meanings.setdefault(codec.pt, set()).add(codec)
    assert all(len(meaning) == 1 for meaning in meanings.values())
    assert all(35 <= pt <= 63 or 96 <= pt <= 127 for pt in meanings), "72 to 95 would look like RTCP"
    assert all(types.codecs(fmt) for fmt in (*sounds, *pictures)), "all are offered"
    assert sum(pt in H264_SETS_PTS for pt in meanings) == len(H264_SETS_PTS)
    assert [types.codecs(fmt)[0].pt for fmt in sounds] == [types.codecs(fmt)[0].pt for fmt in sounds]


def test_two_spellings_of_a_profile_share_a_payload_type() -> None:
    types = PayloadTypes()
    one, other = (MediaFormat(kind="video", name="H264", profile=profile) for profile in ("42e01f", "42c01f"))
    assert types.codecs(one) == types.codecs(other)


@pytest.mark.parametrize(
    ("answered", "refused"),
    [
        (h264(98, profile="640c1f"), False),
        (h264(98, profile="640C0D"), False),
        (replace(h264(98), fmtp=""), False),
        (replace(h264(98), fmtp="profile-level-id=640c1f"), False),
        (h264(98, profile="42e01f"), True),
        (replace(h264(98), fmtp="profile-level-id=640c1f;packetization-mode=0"), True),
        (vp8(98), True),
        (rtx(98, apt=98), True),
    ],
)
def test_an_answer_may_state_another_level_but_no_other_profile(answered: Codec, refused: bool) -> None:
    assert refusal_of(h264(98, profile="640c1f"), answered) is refused


@given(st.text(max_size=120))
def test_no_parameter_of_a_stranger_gets_through_unread(fmtp: str) -> None:
    known = {
        *("minptime", "useinbandfec", "usedtx", "stereo", "sprop-stereo", "cbr", "maxaveragebitrate"),
        *("level-asymmetry-allowed", "packetization-mode", "profile-level-id", "sprop-parameter-sets"),
    }
    for codec in (opus(111, fmtp=fmtp), with_fmtp(h264(98), fmtp)):
        found = choose(line("audio" if codec.is_("opus") else "video", codec))
        if found is None:
            continue
        fmt, answer = found
        assert {*answer.parameters, *PayloadTypes().codecs(fmt)[0].parameters} <= known
        assert answer.fmtp.isascii()
