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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class RollRehearsed:
    """How the rehearsed roll goes."""

    surge: int = 1
    """Replacements that are started ahead of the SFUs that go."""
    kills: int = 0
    """How often the command that rolls gets SIGKILL in the middle, and is given again."""


UNDISTURBED = RollRehearsed()
TWELVE = CrowdSize()
"""Four bots in each of three rooms."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class ChaosCrowd(CrowdSize):
    """Who is in a chaos run."""

    bots: int = 8
    """Bots that publish audio and subscribe to their room."""
    rooms: int = 2
    """Rooms they are spread over."""


EIGHT = ChaosCrowd()
"""Four bots in each of two rooms."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class ChaosTime:
    """How long a chaos run lasts, and how hard it is."""

    minutes: float = 10.0
    """No round begins later; the last one goes on until all is well again, or is not for too long."""
    first_round: int = 1
    """Begin with this round of the seed: to see again what an earlier run found."""
    longest_s: float = 40.0
    """No event lasts longer."""
    bound_ms: float = 500.0
    """Silence that a bot may hear which no event touches; what the machine itself held up is added."""
    skew_s: float = 0.0
    """Clocks of routers and SFUs are wrong by up to so many seconds, each by its own; needs Debian's `faketime`."""


TEN_MINUTES = ChaosTime()
