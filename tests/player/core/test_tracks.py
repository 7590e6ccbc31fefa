"""Tracks that an application feeds: they go on while it pauses, and their time never goes back."""

from __future__ import annotations

import av
import pytest

from player.core import frames, opus
from player.core.track import Numbers
from player.core.tracks import BLACK, PAUSE_S, SILENCE_EVERY_S, STILL_AFTER_S, OpusTrack, Vp8Track
from shared.rtc import rtp

NUMBERS = Numbers(ssrc=7, rtx_ssrc=8, sequence=65_530, timestamp=2**32 - 100, picture=32_760)
SOUND = bytes([31 << 3]) + b"twenty milliseconds"
KEY, INTER = b"\x00 a key frame", b"\x01 another one"


def audio(at: float = 100.0) -> OpusTrack:
    return OpusTrack(publication="mic", mid="0", numbers=NUMBERS, at=at)


def video(at: float = 100.0) -> Vp8Track:
    return Vp8Track(publication="cam", mid="1", numbers=NUMBERS, at=at)


def times(packets: list[bytes]) -> list[int]:
    """Ticks since the beginning."""
    return [rtp.timestamp_delta(rtp.parse(packet).timestamp, NUMBERS.timestamp) for packet in packets]


def payload(packet: bytes) -> bytes:
    header = rtp.parse(packet)
    return packet[header.payload_start : header.payload_end]


@pytest.mark.parametrize(
    ("packet", "ms"),
    [
        (bytes([31 << 3]), 20.0),
        (bytes([31 << 3 | 1]), 40.0),
        (bytes([28 << 3]), 2.5),
        (bytes([3 << 3]), 60.0),
        (bytes([13 << 3]), 20.0),
        (bytes([31 << 3 | 3, 6]), 120.0),
        (opus.SILENCE, 20.0),
        (bytes([31 << 3 | 3]), 0.0),
        (b"", 0.0),
    ],
)
def test_an_opus_packet_says_how_long_it_is(packet: bytes, ms: float) -> None:
    assert opus.ticks(packet) == ms * 48


def test_sound_follows_on_sound_though_it_comes_unevenly() -> None:
    track = audio()
    sent = [packet for at in (100.0, 100.03, 100.031, 100.08) for packet in track.packets(SOUND, at=at)]
    assert times(sent) == [0, 960, 1920, 2880]
    assert [rtp.parse(packet).sequence for packet in sent] == [65_530, 65_531, 65_532, 65_533]
    assert [rtp.parse(packet).marker for packet in sent] == [True, False, False, False]


def test_after_a_pause_sound_is_of_the_moment_and_begins_a_talk_spurt() -> None:
    track = audio()
    track.packets(SOUND, at=100.0)
    (packet,) = track.packets(SOUND, at=101.0)
    assert times([packet]) == [48_000]
    assert rtp.parse(packet).marker
    assert times(track.packets(SOUND, at=101.02 + PAUSE_S / 2)) == [48_960]


def test_a_pause_is_filled_with_silence_and_time_does_not_go_back() -> None:
    track = audio()
    assert track.filler(100.1) == []
    filled = [packet for n in range(3) for packet in track.filler(100.5 + n * (SILENCE_EVERY_S + 0.001))]
    assert [payload(packet) for packet in filled] == [opus.SILENCE] * 3
    sent = track.packets(SOUND, at=101.31)
    assert times([*filled, *sent]) == sorted(set(times([*filled, *sent])))
    assert track.filler(101.4) == []


def test_a_time_of_the_sources_own_counts_from_its_first_unit() -> None:
    track = audio()
    sent = [packet for n in range(3) for packet in track.packets(SOUND, at=105.0 + n, media_s=7.0 + 0.02 * n)]
    assert times(sent) == [240_000, 240_960, 241_920]
    assert times(track.packets(SOUND, at=108.0, media_s=1.0)) == [384_000], "its clock was set back"


def test_a_time_that_is_a_little_early_is_taken_as_it_is() -> None:
    """A source's clock rounds, and its packets may overlap by a tick."""
    track = audio()
    sent = [packet for s in (0.0, 0.01999, 0.04001) for packet in track.packets(SOUND, at=100.0, media_s=s)]
    assert times(sent) == [0, 960, 1920]
    assert times(track.packets(SOUND, at=100.0, media_s=0.0599)) == [2875]


def test_nothing_is_sent_of_what_is_no_sound() -> None:
    assert audio().packets(b"", at=100.0) == []
    assert video().packets(b"", at=100.0) == []


def test_a_picture_begins_with_a_key_frame() -> None:
    track = video()
    assert track.packets(INTER, at=100.0) == []
    assert (track.key_wanted, track.dropped) == (True, 1)
    assert track.packets(KEY, at=100.0)
    assert not track.key_wanted
    (packet,) = track.packets(INTER, at=100.04)
    assert payload(packet)[4:] == INTER
    assert times([packet]) == [3600]


def test_frames_handed_over_in_one_moment_have_different_times() -> None:
    track = video()
    assert times([*track.packets(KEY, at=100.0), *track.packets(INTER, at=100.0)]) == [0, 1]


def test_a_copy_that_begins_gets_the_last_key_frame_of_a_still_picture_once() -> None:
    track = video()
    track.packets(KEY, at=100.0)
    assert track.filler(105.0) == [], "no copy begins"
    track.want_key()
    assert track.key_wanted
    (packet,) = track.filler(105.0)
    assert payload(packet)[4:] == KEY
    assert track.filler(107.0) == []
    assert track.packets(INTER, at=108.0) == [], "it does not build on what receivers have"
    assert track.packets(KEY, at=108.1)


def test_a_picture_that_moves_is_not_interrupted() -> None:
    track = video()
    track.packets(KEY, at=100.0)
    track.want_key()
    assert track.filler(100.0 + STILL_AFTER_S / 2) == []


def test_before_the_first_picture_it_is_black() -> None:
    (packet,) = video().filler(101.0)
    assert payload(packet)[4:] == BLACK
    assert frames.is_key(BLACK)
    decoder = av.CodecContext.create("vp8", "r")
    (picture,) = decoder.decode(av.Packet(BLACK))
    assert (picture.width, picture.height) == (16, 16)
    assert picture.to_ndarray()[:16].max() == 16


def test_silence_is_silent() -> None:
    decoder = av.CodecContext.create("libopus", "r")
    decoder.sample_rate, decoder.layout = 48_000, "mono"
    (sound,) = decoder.decode(av.Packet(opus.SILENCE))
    assert (sound.samples, abs(sound.to_ndarray()).max()) == (960, 0)
