"""Clips: encoded once, cached, and playable by any decoder, also across the seam of two laps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest

from client_sim.core.clip import BadClip, Clip, check_clip
from client_sim.shell import clip as clips
from shared.errors import BadSetting


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def clip(cache: Path) -> Clip:
    return clips.load(cache=cache)


def decode(codec: str, packets: list[bytes]) -> list[Any]:
    decoder: Any = av.CodecContext.create(codec, "r")
    return [frame for packet in packets for frame in decoder.decode(av.Packet(packet))]


def test_the_generated_clip_can_be_replayed_and_recognised(clip: Clip) -> None:
    assert check_clip(clip) is clip
    assert (len(clip.audio), len(clip.video), clip.fps) == (500, 200, 20)
    assert max(later - earlier for earlier, later in zip(clip.keys, clip.keys[1:], strict=False)) == clips.KEY_EVERY


def test_every_frame_decodes_across_the_seam_and_shows_its_number(clip: Clip) -> None:
    frames = decode("libvpx", [*clip.video[-clips.KEY_EVERY :], *clip.video[: clips.KEY_EVERY]])
    assert len(frames) == 2 * clips.KEY_EVERY
    assert (frames[0].width, frames[0].height) == (clips.WIDTH, clips.HEIGHT)
    seven, eight = (frames[n].to_ndarray()[:70, 80:120].astype(int) for n in (17, 18))
    assert np.abs(seven - eight).max() > 100, "the last digit of the counter differs"


def test_the_beep_of_each_second_is_heard_in_both_laps(clip: Clip) -> None:
    decoded = decode("libopus", [*clip.audio, *clip.audio[:50]])
    assert len(decoded) == 550
    per_frame = np.array([np.abs(frame.to_ndarray().astype(float)).max() for frame in decoded])
    loud = per_frame > 0.1 * per_frame.max()
    for second in range(11):
        assert loud[second * 50 : second * 50 + 8].any()
        assert not loud[second * 50 + 20 : second * 50 + 45].any()


def test_the_second_load_comes_from_the_cache(clip: Clip, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> Clip:
        raise AssertionError("encoded again")

    monkeypatch.setattr(clips, "_encode", refuse)
    assert clips.load(cache=cache) == clip


def test_a_broken_cache_is_made_again(clip: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clips, "_encode", lambda *_: clip)
    monkeypatch.setattr(clips, "_material", lambda _: ((), ()))
    clips.load(cache=tmp_path)
    (file,) = tmp_path.iterdir()
    file.write_bytes(file.read_bytes()[:1000])
    assert clips.load(cache=tmp_path) == clip
    assert len(file.read_bytes()) > 1000, "and replaced"


def test_a_cache_that_can_not_be_written_costs_time_only(
    clip: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clips, "_encode", lambda *_: clip)
    monkeypatch.setattr(clips, "_material", lambda _: ((), ()))
    (tmp_path / "file").write_text("")
    assert clips.load(cache=tmp_path / "file" / "below") == clip


def write_media(path: Path, *, seconds: float, sound: bool, picture: bool) -> None:
    """A file of silence and of one grey that jumps now and then."""
    with av.open(str(path), "w") as container:
        video: Any = container.add_stream("libvpx", rate=30) if picture else None
        audio: Any = container.add_stream("pcm_s16le", rate=48_000) if sound else None
        if video is not None:
            video.width, video.height, video.pix_fmt = 64, 48, "yuv420p"
            for n in range(int(seconds * 30)):
                planes = np.full((72, 64), n // 10 * 60, dtype=np.uint8)
                container.mux(video.encode(av.VideoFrame.from_ndarray(planes, format="yuv420p")))
            container.mux(video.encode(None))
        if audio is not None:
            silence = np.zeros((1, int(seconds * 48_000)), dtype=np.int16)
            frame = av.AudioFrame.from_ndarray(silence, format="s16", layout="mono")
            frame.sample_rate = 48_000
            container.mux(audio.encode(frame))
            container.mux(audio.encode(None))


@pytest.mark.parametrize(("sound", "picture"), [(True, True), (True, False), (False, True)])
def test_a_short_file_even_of_silence_makes_a_full_clip(tmp_path: Path, sound: bool, picture: bool) -> None:
    path = tmp_path / "media.mkv"
    write_media(path, seconds=0.7, sound=sound, picture=picture)
    made = clips.load(path, cache=tmp_path / "cache")
    assert (len(made.audio), len(made.video)) == (500, 200)


def test_a_changed_file_is_encoded_again(tmp_path: Path) -> None:
    path = tmp_path / "media.mkv"
    path.write_bytes(b"x")
    first = clips._cache_key(path)
    os.utime(path, ns=(1, 1))
    assert clips._cache_key(path) != first


@pytest.mark.parametrize("content", [None, b"", b"this is no media file"])
def test_a_file_that_is_no_media_is_a_bad_setting(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "media.mkv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises((BadSetting, BadClip), match="clip"):
        clips.load(path, cache=tmp_path / "cache")
