"""What a fleet on this machine consists of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cyclopts import Parameter

from shared.errors import BadSetting


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
"""Two routers and three SFUs: the smallest fleet that shows everything."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class LocalFleet(FleetSize):
    """What `sluice up` starts."""

    sfus: int = 0
    """SFU processes, each a node of its own; 0: one per core, two at least, so that players have somewhere to go."""

    def sized(self, cores: int, *, most: int | None = None) -> LocalFleet:
        """This fleet with the number of SFUs filled in for a machine of that many cores and a pool of `most` nodes.

        Raises `BadSetting` when more are asked for than the pool may have.
        """
        if most is not None and self.sfus > most:
            detail = f"{self.sfus} SFUs are more than the scaling file's max_nodes, which is {most}; change one of them"
            raise BadSetting(setting="--sfus", detail=detail)
        sfus = self.sfus or max(2, cores)
        return replace(self, sfus=sfus if most is None else min(sfus, most))


PER_CORE = LocalFleet()
"""Two routers, and an SFU per core."""
