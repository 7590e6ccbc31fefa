"""Which fleet a command acts on: flags first, then SLUICE_…, then the fleet that runs here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from localfleet import runfiles
from operators.config import Where
from operators.errors import NoFleet
from shared.errors import BadSetting
from shared.host.secret_files import with_files_read
from shared.host.state import state_directory
from shared.tokens import check_secret

DEFAULT_FLEET = "sluice"


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """A fleet's Redis and the name of its keys."""

    redis: str
    fleet: str


def find_target(where: Where, *, runs: Path | None = None) -> Target:
    """The fleet to act on. Raises `NoFleet` or `BadSetting` with what to say instead."""
    where = with_files_read(where)
    if where.redis:
        return Target(redis=where.redis, fleet=where.fleet or DEFAULT_FLEET)
    run = runfiles.choose(where.fleet, where=runs or state_directory())
    if run is None:
        raise NoFleet(where.fleet)
    return Target(redis=run.redis, fleet=run.fleet)


def find_door(where: Where, *, runs: Path | None = None) -> str:
    """Where the `sluice up` of this fleet takes orders. Raises `NoFleet` when none runs here."""
    run = None if where.redis else runfiles.choose(where.fleet, where=runs or state_directory())
    if run is None or not run.door:
        raise NoFleet(where.fleet)
    return run.door


def known_secret(where: Where, *, runs: Path | None = None) -> str:
    """The fleet's secret, or empty: for commands that can do without it."""
    try:
        return find_secret(where, runs=runs)
    except BadSetting:
        return ""


def find_secret(where: Where, *, runs: Path | None = None) -> str:
    """The fleet's secret. Raises `BadSetting` when it is not given."""
    where = with_files_read(where)
    if where.secret:
        return check_secret(where.secret)
    at = runs or state_directory()
    run = runfiles.of_redis(where.redis, where=at) if where.redis else runfiles.choose(where.fleet, where=at)
    if run is None:
        raise BadSetting(
            setting="--secret", detail="set SLUICE_SECRET to the fleet's secret, or start one with 'sluice up'"
        )
    return run.secret
