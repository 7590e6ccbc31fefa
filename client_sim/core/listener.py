"""One publication as a player hears or sees it, over all its copies: which units are new, and what its gaps come to."""

from __future__ import annotations

from client_sim.core.clip import AUDIO_MS, ClipIndex
from client_sim.core.gaps import GapMeter, GapReport, Unwrapper

FOREIGN_FRAME_MS = 1000.0 / 30
"""Frame time assumed of a publisher that is no bot."""
SOURCE_PREFIX = "clip-"


def source_of(clip_id: str) -> str:
    """What a bot puts into `source` of its publications: receivers with the same clip can check the content."""
    return f"{SOURCE_PREFIX}{clip_id}"


class Listener:
    """Feed it each Opus packet or each complete frame of any copy, in order of arrival."""

    def __init__(self, *, publication: str, player: str, kind: str, source: str, index: ClipIndex | None) -> None:
        self.publication = publication
        self.player = player
        self.kind = kind
        known = index if index is not None and source == source_of(index.clip_id) else None
        self.checked = known is not None
        """Content is compared with the clip."""
        if known is None:
            self._units: dict[bytes, int] | None = None
            unit_ms, length = (float(AUDIO_MS) if kind == "audio" else FOREIGN_FRAME_MS), 1
        elif kind == "audio":
            self._units, unit_ms, length = known.audio, float(AUDIO_MS), known.audio_length
        else:
            self._units, unit_ms, length = known.video, known.frame_ms, known.video_length
        self.meter = GapMeter(unit_ms=unit_ms)
        self._unwrap = Unwrapper(length=length, unit_s=unit_ms / 1000.0)

    def take(self, unit: bytes, *, at: float) -> bool:
        """A unit arrived; True when it is new content, or content that can't be known."""
        if self._units is None:
            return self.meter.arrived(None, at=at)
        index = self._units.get(unit)
        if index is None:
            self.meter.damage()
            return False
        return self.meter.arrived(self._unwrap.number(index, at=at), at=at)

    def report(self, *, now: float) -> GapReport:
        """The figures so far."""
        return self.meter.report(now=now)
