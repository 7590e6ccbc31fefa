"""Settings of local fleets and rehearsals."""

from __future__ import annotations

from dataclasses import dataclass

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """Which fleet a command acts on; without any of these, the one that `sluice up` runs here."""

    fleet: str = ""
    """Name of the fleet. Also SLUICE_FLEET."""
    redis: str = ""
    """URL of its Redis: redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://. Also SLUICE_REDIS."""
    secret: str = ""
    """The fleet's secret, to make tokens. Better given as SLUICE_SECRET than as a flag."""


HERE = Where()
"""The fleet that runs here."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class FleetSize:
    """What a local fleet consists of."""

    routers: int = 2
    """Router processes."""
    sfus: int = 3
    """SFU processes."""
    redis: str = ""
    """URL of a Redis to use; empty: a server of our own is started and ended with the fleet."""
    server: str = ""
    """Path of the Redis or Valkey server to start when no URL is given; empty: the embedded one."""
    host: str = "127.0.0.1"
    """Address to listen on and to announce. Another one opens the fleet to that network."""


SMALL = FleetSize()
"""Two routers and three SFUs: the least that shows everything."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class Crowd:
    """Who is in a rehearsal."""

    bots: int = 12
    """Bots that publish audio and video and subscribe to their room."""
    rooms: int = 3
    """Rooms they are spread over."""
    seed: int = 1
    """Seed of everything that is drawn: the same seed gives the same rehearsal."""


TWELVE = Crowd()
"""Four bots in each of three rooms."""
