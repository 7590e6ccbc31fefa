"""Settings of controllers, local fleets and rehearsals."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, field, replace
from typing import Annotated

from cyclopts import Parameter

from shared.errors import BadSetting


def default_controller_id() -> str:
    """The host's name and a few random characters: unique without anybody choosing it."""
    return f"{socket.gethostname().split('.')[0][:40]}-{secrets.token_hex(3)}"


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
class ControlConfig:
    """Flags and `SLUICE_*` environment variables of `sluice control`; the autoscaler's own are in the scaling file."""

    controller: Annotated[str, Parameter(show_default=False)] = field(default_factory=default_controller_id)
    """Id of this controller, unique in the fleet. Default: the host's name and six random characters."""
    host: str = "127.0.0.1"
    """Address to listen on: 0.0.0.0 in a container."""
    http_port: int = 7090
    """Port for health and metrics; 0: any free one."""
    redis: str = "redis://127.0.0.1:6379/0"
    """URL of the fleet's Redis or Valkey, as the routers have it."""
    fleet: str = "sluice"
    """Prefix of the fleet's keys in Redis."""
    log_level: str = "INFO"
    """Least severe log line that is written."""

    def check(self) -> ControlConfig:
        """These settings, if they make sense; raises `BadSetting`."""
        if not 0 < len(self.controller) <= 64 or not self.controller.isprintable() or " " in self.controller:
            raise BadSetting(setting="controller", detail="give an id of 1 to 64 characters without spaces")
        if not 0 <= self.http_port <= 65535:
            raise BadSetting(setting="http_port", detail="must be 0 to 65535")
        return self


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
class LocalFleet(FleetSize):
    """What `sluice up` starts."""

    sfus: int = 0
    """SFU processes, each a node of its own; 0: one per core, two at least, so that players have somewhere to go."""

    def sized(self, cores: int, *, most: int | None = None) -> LocalFleet:
        """With the number of SFUs filled in for a machine of that many cores, and for a pool of `most` nodes.

        Raises `BadSetting` when more are asked for than the pool may have.
        """
        if most is not None and self.sfus > most:
            detail = f"{self.sfus} SFUs are more than the scaling file's max_nodes, which is {most}; change one of them"
            raise BadSetting(setting="--sfus", detail=detail)
        sfus = self.sfus or max(2, cores)
        return replace(self, sfus=sfus if most is None else min(sfus, most))


PER_CORE = LocalFleet()
"""Two routers, and an SFU per core."""


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
