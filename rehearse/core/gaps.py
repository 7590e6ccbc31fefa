"""The longest gaps that receivers measured, and how long they may be before a player counts as cut."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

AUDIO_BOUND_MS = 40.0
"""Longest audio gap of a drain: two packets of 20 ms (issue: reach)."""
VIDEO_BOUND_FRAMES = 2.0
"""Longest video gap of a drain, in frame times (issue: reach)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Bounds:
    """Gaps beyond which a player counts as cut in a drain or a roll."""

    audio_ms: float = AUDIO_BOUND_MS
    video_frames: float = VIDEO_BOUND_FRAMES


ON_LOOPBACK = Bounds()


class LongestGaps(msgspec.Struct, frozen=True, kw_only=True):
    """The longest gaps any receiver measured [ms]; None when nothing was measured."""

    audio_ms: float | None = None
    video_ms: float | None = None
    frame_ms: float = 1000.0 / 30
    """Time of one video frame."""


def gaps_beyond(gaps: LongestGaps, bounds: Bounds) -> list[str]:
    """A sentence for each gap beyond its bound, and for gaps that were not measured."""
    cut: list[str] = []
    if gaps.audio_ms is None or gaps.video_ms is None:
        cut.append("no receiver measured its media, so nothing is known of gaps")
    if gaps.audio_ms is not None and gaps.audio_ms > bounds.audio_ms:
        cut.append(f"audio was silent for {gaps.audio_ms:.0f} ms; bound {bounds.audio_ms:.0f} ms")
    bound = bounds.video_frames * gaps.frame_ms
    if gaps.video_ms is not None and gaps.video_ms > bound + 0.05:  # frame times are rounded by RTP's 90 kHz clock
        cut.append(f"video stood still for {gaps.video_ms:.0f} ms; bound {bound:.0f} ms")
    return cut
