"""Who is in a rehearsal."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class CrowdSize:
    """Who is in a rehearsal."""

    bots: int = 12
    """Bots that publish audio and video and subscribe to their room."""
    rooms: int = 3
    """Rooms they are spread over."""
    seed: int = 1
    """Seed of everything that is drawn: the same seed gives the same rehearsal."""


TWELVE = CrowdSize()
"""Four bots in each of three rooms."""
