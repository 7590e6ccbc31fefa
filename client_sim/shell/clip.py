"""Makes clips through av (FFmpeg), generated or from a file, and caches them so that a fleet of bots starts fast."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import msgspec
import numpy as np
import numpy.typing as npt

from client_sim.core import picture
from client_sim.core.clip import AUDIO_MS, FORMAT, BadClip, Clip, check_clip
from shared.errors import BadSetting

SECONDS = 10
WIDTH, HEIGHT, FPS = 320, 180, 20
KEY_EVERY = 10
"""Frames from key frame to key frame: half a second, for a replayed clip can't make one on demand."""
VIDEO_BPS = 180_000
AUDIO_BPS = 32_000
MAX_FILE = 1 << 30
"""Largest media file read [bytes]."""
_SAMPLES = picture.SAMPLE_RATE * AUDIO_MS // 1000

Samples = npt.NDArray[np.int16]
Planes = npt.NDArray[np.uint8]


def load(source: Path | None = None, *, cache: Path | None = None) -> Clip:
    """The clip of a media file, or the generated one; from the cache when it was made before.

    Raises `BadSetting` when the file can't be read, `BadClip` when what comes out can't be replayed.
    """
    directory = cache or _cache_directory()
    path = directory / f"{_cache_key(source)}.clip"
    with contextlib.suppress(OSError, msgspec.DecodeError, BadClip):
        return check_clip(msgspec.msgpack.decode(path.read_bytes(), type=Clip))
    clip = check_clip(_encode(*_material(source)))
    with contextlib.suppress(OSError):  # a read-only home costs time, not the run
        _store(path, msgspec.msgpack.encode(clip))
    return clip


def _cache_directory() -> Path:
    """`$XDG_CACHE_HOME/sluice`, `~/.cache/sluice`, or a directory of this user's under the temporary one."""
    base = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError, OSError):
        directory = (Path(base) if base else Path.home() / ".cache") / "sluice"
        directory.mkdir(parents=True, exist_ok=True)
        if os.access(directory, os.W_OK):
            return directory
    return Path(tempfile.gettempdir()) / f"sluice-{os.getuid()}"


def _cache_key(source: Path | None) -> str:
    parts: list[object] = [FORMAT, SECONDS, WIDTH, HEIGHT, FPS, KEY_EVERY, VIDEO_BPS, AUDIO_BPS]
    if source is not None:
        try:
            facts = source.stat()
        except OSError as error:
            raise BadSetting(setting="clip", detail=f"{source} can't be read: {error.strerror}") from None
        if facts.st_size > MAX_FILE:
            raise BadSetting(setting="clip", detail=f"{source} is larger than {MAX_FILE >> 20} MiB")
        parts += [str(source.resolve()), facts.st_size, facts.st_mtime_ns]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _store(path: Path, data: bytes) -> None:
    """Put a file into the cache in one step: other processes see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        Path(name).replace(path)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise


def _material(source: Path | None) -> tuple[Samples, list[Planes]]:
    """Ten seconds of raw sound and of pictures as planar YUV, frame counter included."""
    if source is None:
        return picture.sound(SECONDS), [_generated(number) for number in range(SECONDS * FPS)]
    try:
        samples, frames = _decode_sound(source), _decode_pictures(source)
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise BadSetting(setting="clip", detail=f"{source} can't be decoded: {str(error)[:200]}") from None
    if not len(samples) and not frames:
        raise BadSetting(setting="clip", detail=f"{source} has neither sound nor picture")
    for number, frame in enumerate(frames):
        picture.draw_counter(frame[:HEIGHT], number)
    return (
        samples if len(samples) else picture.sound(SECONDS),
        frames or [_generated(number) for number in range(SECONDS * FPS)],
    )


def _generated(number: int) -> Planes:
    planes = np.full((HEIGHT * 3 // 2, WIDTH), 128, dtype=np.uint8)
    planes[:HEIGHT] = picture.gradient(number, width=WIDTH, height=HEIGHT, total=SECONDS * FPS)
    picture.draw_counter(planes[:HEIGHT], number)
    return planes


def _decode_sound(source: Path) -> Samples:
    """The first ten seconds of sound, repeated to that length, with the noise floor that tells packets apart."""
    wanted = SECONDS * picture.SAMPLE_RATE
    pieces: list[Any] = []
    with av.open(str(source)) as container:
        if not container.streams.audio:
            return np.zeros(0, dtype=np.int16)
        resampler = av.AudioResampler(format="s16", layout="mono", rate=picture.SAMPLE_RATE)
        for frame in container.decode(container.streams.audio[0]):
            pieces += [piece.to_ndarray().reshape(-1) for piece in resampler.resample(frame)]
            if sum(map(len, pieces)) >= wanted:
                break
    if not pieces:
        return np.zeros(0, dtype=np.int16)
    samples: Any = np.resize(np.concatenate(pieces), wanted).astype(np.int32)
    samples += picture.noise(wanted, np.random.default_rng(1))
    clipped: Samples = np.clip(samples, -32768, 32767).astype(np.int16)
    return clipped


def _decode_pictures(source: Path) -> list[Planes]:
    """The frame on screen at each tick of our frame rate, for ten seconds, from the start again in a shorter file."""
    wanted = SECONDS * FPS
    frames: list[Planes] = []
    with av.open(str(source)) as container:
        if not container.streams.video:
            return []
        for frame in container.decode(container.streams.video[0]):
            planes: Any = frame.reformat(width=WIDTH, height=HEIGHT, format="yuv420p").to_ndarray()
            due = 1 if frame.time is None else int(frame.time * FPS) + 1 - len(frames)
            frames += [planes.copy() for _ in range(min(max(due, 0), wanted - len(frames)))]
            if len(frames) >= wanted:
                break
    return [frames[number % len(frames)].copy() for number in range(wanted)] if frames else []


def _encode(samples: Samples, frames: list[Planes]) -> Clip:
    video, keys = _encode_video(frames)
    return Clip(audio=_encode_audio(samples), video=video, keys=keys, fps=FPS, width=WIDTH, height=HEIGHT)


def _encode_audio(samples: Samples) -> tuple[bytes, ...]:
    """Encode two laps and keep the second: its beginning then follows on its end, as it does in a loop."""
    codec: Any = av.CodecContext.create("libopus", "w")
    codec.sample_rate = picture.SAMPLE_RATE
    codec.layout = "mono"
    codec.format = "s16"
    codec.bit_rate = AUDIO_BPS
    codec.options = {"frame_duration": str(AUDIO_MS), "application": "audio", "vbr": "on"}
    count = len(samples) // _SAMPLES
    packets = [bytes(packet) for packet in _packets(codec, _audio_frames(np.concatenate([samples, samples])))]
    return tuple(packets[count : 2 * count])


def _audio_frames(samples: Samples) -> Iterator[Any]:
    for start in range(0, len(samples), _SAMPLES):
        frame = av.AudioFrame.from_ndarray(samples[None, start : start + _SAMPLES], format="s16", layout="mono")
        frame.sample_rate = picture.SAMPLE_RATE
        frame.pts = start
        yield frame


def _encode_video(frames: list[Planes]) -> tuple[tuple[bytes, ...], tuple[int, ...]]:
    codec: Any = av.CodecContext.create("libvpx", "w")
    codec.width, codec.height, codec.pix_fmt = WIDTH, HEIGHT, "yuv420p"
    codec.bit_rate = VIDEO_BPS
    codec.time_base = Fraction(1, FPS)
    codec.framerate = Fraction(FPS)
    codec.gop_size = KEY_EVERY
    codec.thread_count = 1
    # Alternate reference frames are not shown and would break "one packet, one picture".
    codec.options = {
        "deadline": "realtime",
        "cpu-used": "4",
        "lag-in-frames": "0",
        "auto-alt-ref": "0",
        "keyint_min": str(KEY_EVERY),
    }
    packets = list(_packets(codec, _video_frames(frames)))
    keys = tuple(index for index, packet in enumerate(packets) if packet.is_keyframe)
    return tuple(bytes(packet) for packet in packets), keys


def _video_frames(frames: list[Planes]) -> Iterator[Any]:
    for number, planes in enumerate(frames):
        frame = av.VideoFrame.from_ndarray(planes, format="yuv420p")
        frame.pts = number
        frame.time_base = Fraction(1, FPS)
        yield frame


def _packets(codec: Any, frames: Iterator[Any]) -> Iterator[Any]:
    for frame in frames:
        yield from codec.encode(frame)
    yield from codec.encode(None)
