"""A clip: encoded once, replayed for ever. Each Opus packet and each frame differs from all others by content."""

from __future__ import annotations

import hashlib

import msgspec

from shared.errors import BadInput

AUDIO_MS = 20
"""An Opus packet, as browsers send it."""
FORMAT = 4
"""Version of the file in the cache; a file of another version is made again."""


class BadClip(BadInput):
    """A clip that can't be used: empty, or with units that look the same."""

    code = "bad-clip"

    def __init__(self, detail: str) -> None:
        super().__init__()
        self.detail = detail

    def sentence(self) -> str:
        return f"clip refused: {self.detail}"


class Clip(msgspec.Struct, frozen=True, kw_only=True):
    """Encoded media, as long in sound as in picture. `check_clip` says whether it can be replayed and recognised."""

    audio: tuple[bytes, ...]
    """Opus packets of `AUDIO_MS` each."""
    video: tuple[bytes, ...]
    """VP8 frames, the first one a key frame."""
    keys: tuple[int, ...]
    """Indices of the key frames."""
    fps: int
    width: int
    height: int
    format: int = FORMAT

    @property
    def id(self) -> str:
        """A name for the content: publishers put it into `source`, so that receivers know what they ought to get."""
        digest = hashlib.sha256()
        for unit in (*self.audio, *self.video):
            digest.update(unit)
        return digest.hexdigest()[:12]

    @property
    def length_s(self) -> float:
        """Playing time of one lap [s]."""
        return len(self.audio) * AUDIO_MS / 1000.0


def check_clip(clip: Clip) -> Clip:
    """The clip, if it will do. Raises `BadClip`."""
    if clip.format != FORMAT:
        raise BadClip("made by another version")
    if not clip.audio or not clip.video or not clip.keys or clip.keys[0] != 0:
        raise BadClip("no sound, no picture, or no key frame at its beginning")
    if len(clip.audio) * AUDIO_MS * clip.fps != len(clip.video) * 1000:
        raise BadClip("sound and picture differ in length, so laps would drift apart")
    for name, units in (("sound packets", clip.audio), ("frames", clip.video)):
        if len(set(units)) != len(units):
            raise BadClip(f"two of its {name} are the same, so a receiver could not tell them apart")
    return clip


class ClipIndex:
    """Which unit of the clip some content is. Compares whole contents, so a changed byte is seen as damage."""

    def __init__(self, clip: Clip) -> None:
        self.clip_id = clip.id
        self.audio = {packet: index for index, packet in enumerate(clip.audio)}
        self.video = {frame: index for index, frame in enumerate(clip.video)}
        self.audio_length = len(clip.audio)
        self.video_length = len(clip.video)
        self.frame_ms = 1000.0 / clip.fps
