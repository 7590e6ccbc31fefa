"""What a player receives of others, as its application gets it."""

from __future__ import annotations

from dataclasses import dataclass

from shared.records import PublicationRecord


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaFrame:
    """An Opus packet or a whole VP8 frame. Over moves a publication's frames are one stream, each frame once."""

    publication: PublicationRecord
    """Of whom and of what kind; its `sfu` and `generation` change when it moves."""
    data: bytes
    key: bool
    """A decoder can begin here; true for all sound."""
    ticks: int
    """Time since the publication's first frame, in units of 1/`clock` s; never wraps, and goes on over moves."""
    clock: int
    """48,000 for Opus, 90,000 for VP8 [Hz]."""
    at: float
    """Arrival [monotonic seconds]."""

    @property
    def time_s(self) -> float:
        """Seconds since the publication's first frame, by its publisher's clock."""
        return self.ticks / self.clock


@dataclass(frozen=True, kw_only=True, slots=True)
class RtpPacket:
    """A decrypted RTP packet, as it came from one SFU. While its publication moves, packets come from two."""

    publication: PublicationRecord
    sfu: str
    """The SFU that sent it: with the packet's SSRC it tells copies apart."""
    data: bytes
    """Header included; one that was lost comes again in its original form, without header extensions."""
    at: float
    """Arrival [monotonic seconds]."""
