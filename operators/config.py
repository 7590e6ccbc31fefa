"""Which fleet an operator means."""

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
    redis_file: str = ""
    """A file with that URL, instead of it. Also SLUICE_REDIS_FILE."""
    secret: str = ""
    """The fleet's secret, to make tokens. Better given as SLUICE_SECRET than as a flag."""
    secret_file: str = ""
    """A file with it, instead of it. Also SLUICE_SECRET_FILE."""


HERE = Where()
"""The fleet that runs here."""
