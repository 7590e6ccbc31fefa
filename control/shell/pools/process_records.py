"""The state directory of a process pool: one file per node, and a lock that two controllers take in turn."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import msgspec

LOCK_WITHIN_S = 5.0
MOST_LOG = 16 * 1024 * 1024
"""Longest log of a node [bytes]; the log before it is kept as well, so the most is twice that."""


class NodeFile(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a node. Written before its process is started, so that no process is ever unknown."""

    node: str
    request: str
    ws_port: int
    udp_port: int
    http_port: int
    pid: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """0: not started yet, or started by a controller that died before it could record it."""
    started: int = 0
    """Clock ticks since boot; with the id they name one process."""
    ending_at: float | None = None
    """When it was told to end, by the machine's clock since boot [s]."""
    exit_status: int | None = None
    """How it ended, where we were the parent."""

    @property
    def ports(self) -> tuple[int, int, int]:
        """All of them."""
        return (self.ws_port, self.udp_port, self.http_port)


class NodeFiles:
    """The directory. Raises `OSError` when it can't be used."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def prepare(self) -> None:
        """Make it, for its owner only: logs and environments of the nodes lie here."""
        self.directory.mkdir(parents=True, exist_ok=True, mode=0o700)

    def log(self, node: str) -> Path:
        """Where a node's process logs to."""
        return self.directory / f"{node}.log"

    def cap_log(self, node: str) -> None:
        """Move a long log aside, in place of the one before. Its process appends and goes on at the beginning; a line
        that it writes at this very moment may be lost. Raises nothing: a lost log does not affect the node."""
        log = self.log(node)
        with contextlib.suppress(OSError):
            if log.stat().st_size > MOST_LOG:
                shutil.copyfile(log, self._older(node))
                os.truncate(log, 0)

    def _older(self, node: str) -> Path:
        return self.directory / f"{node}.log.1"

    def read(self, node: str) -> NodeFile | None:
        """A node's file; None when there is none. Raises `msgspec.DecodeError` when it can't be read."""
        try:
            return msgspec.json.decode((self.directory / f"{node}.json").read_bytes(), type=NodeFile)
        except FileNotFoundError:
            return None

    def read_all(self) -> tuple[list[NodeFile], list[str]]:
        """All nodes, and the names of the files that can't be read."""
        found, bad = [], []
        for path in sorted(self.directory.glob("*.json")):
            try:
                file = self.read(path.stem)
            except msgspec.DecodeError:
                file = None
                bad.append(path.name)
            if file is not None and file.node == path.stem:
                found.append(file)
            elif file is not None:
                bad.append(path.name)
        return found, bad

    def write(self, file: NodeFile) -> NodeFile:
        """Write it so that a reader, or we after a crash, see the old or the new one and never half."""
        path = self.directory / f"{file.node}.json"
        draft = path.with_suffix(".tmp")
        with draft.open("wb") as sink:
            sink.write(msgspec.json.encode(file))
            sink.flush()
            os.fsync(sink.fileno())
        draft.replace(path)
        return file

    def remove(self, node: str, *, failed: bool) -> None:
        """Forget a node. The log of the last that failed is kept."""
        if failed:
            with contextlib.suppress(OSError):
                self.log(node).replace(self.directory / "last-failed.log")
        self.log(node).unlink(missing_ok=True)
        self._older(node).unlink(missing_ok=True)
        (self.directory / f"{node}.json").unlink(missing_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory's lock. Raises `TimeoutError` when another controller holds it for too long."""
        self.prepare()
        with (self.directory / "lock").open("ab") as lock:
            deadline = time.monotonic() + LOCK_WITHIN_S
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise TimeoutError("another controller holds the state directory") from None
                    time.sleep(0.02)
            yield
