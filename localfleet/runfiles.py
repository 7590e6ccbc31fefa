"""Run files: where `sluice up` says how its fleet is reached, so that the other commands need no flags."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from shared.errors import BadSetting


class RouterAddress(msgspec.Struct, frozen=True, kw_only=True):
    """Where one router is reached."""

    router: str
    ws: str
    http: str


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """A running local fleet. Holds its secret, so the file is readable by its owner only."""

    fleet: str
    redis: str
    secret: str
    page: str
    """Address of the web page."""
    routers: tuple[RouterAddress, ...] = ()
    door: str = ""
    """Path of the socket at which it takes orders (`localfleet.door`)."""
    logs: str = ""
    """Directory of the programs' logs."""
    pid: int = 0
    """The supervisor."""
    pid_started: int = 0
    """Its start in clock ticks since boot: tells it from a later process with the same id."""


@contextlib.contextmanager
def claim(fleet: str, *, where: Path) -> Iterator[None]:
    """Hold the name of a fleet on this host, from before anything is started until it has ended.

    The run file comes only with a fleet that is up; two that start at the same time would share logs and sockets.
    The kernel lets go of the name when we die. Raises `BadSetting` when another process holds it.
    """
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    with os.fdopen(os.open(where / f".{fleet}.lock", os.O_RDWR | os.O_CREAT, 0o600), "r+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            detail = (
                f"{fleet!r} runs here already, or is starting; end it, or start a second fleet with "
                "`sluice up --fleet two` (`make up ARGS='--fleet two'`)"
            )
            raise BadSetting(setting="--fleet", detail=detail) from None
        yield


def write(run: RunFile, *, where: Path) -> Path:
    """Write the run file, readable by its owner only; a reader sees the old or the new one, never half."""
    where.mkdir(parents=True, exist_ok=True, mode=0o700)
    path = where / f"{run.fleet}.json"
    draft = where / f".{run.fleet}.{os.getpid()}.tmp"
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(run))
    draft.replace(path)
    return path


def remove(run: RunFile, *, where: Path) -> None:
    """Remove the run file, if it is still this run's."""
    current = read(where / f"{run.fleet}.json")
    if current is not None and current.pid == run.pid:
        with contextlib.suppress(OSError):
            (where / f"{run.fleet}.json").unlink()


def read(path: Path) -> RunFile | None:
    """The run file at `path`; None when there is none or it can't be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunFile)
    except (OSError, msgspec.DecodeError):
        return None


def alive(run: RunFile) -> bool:
    """Whether the supervisor that wrote it still runs."""
    return run.pid > 0 and started_ticks(run.pid) == run.pid_started


def started_ticks(pid: int) -> int:
    """When a process started, in clock ticks since boot; -1 when there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return -1
    return int(stat.rpartition(")")[2].split()[19])  # field 22 of proc(5); the name before it may hold spaces


def running(*, where: Path) -> list[RunFile]:
    """Every fleet on this host whose supervisor still runs."""
    found = (read(path) for path in sorted(where.glob("*.json")))
    return [run for run in found if run is not None and alive(run)]


def of_redis(redis: str, *, where: Path) -> RunFile | None:
    """The running fleet that uses this Redis; None when there is none, or more than one."""
    runs = [run for run in running(where=where) if run.redis == redis]
    return runs[0] if len(runs) == 1 else None


def choose(fleet: str, *, where: Path) -> RunFile | None:
    """The running fleet of that name; with no name, the only one there is.

    None when there is none. Raises `BadSetting` when no name is given and several run.
    """
    runs = running(where=where)
    if fleet:
        return next((run for run in runs if run.fleet == fleet), None)
    if len(runs) > 1:
        names = ", ".join(run.fleet for run in runs)
        raise BadSetting(setting="--fleet", detail=f"several fleets run here ({names}); say which one")
    return runs[0] if runs else None
