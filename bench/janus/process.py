"""Debian's Janus as a child process, for `sluice bench relay --peer janus`.

Everything is as the package ships it but for: one plugin (videoroom), one transport (websockets, on a Unix socket), one
event loop, ICE-lite on 127.0.0.1, and a bounded range of ports. Its files live in a temporary directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from bench.machine import pinned
from bench.relay.peers import PeerMissing
from bench.stats import cpu_seconds, resident_bytes
from shared.errors import SluiceError
from shared.host.child import leash

PORTS = (20_000, 31_999)
"""UDP ports, one for each PeerConnection; below the range that Linux gives out (32768 and up)."""

REMEDY = "apt-get install --no-install-recommends janus"
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 3.0
LOG_LINES = 15
_LIBRARIES = Path("/usr/lib")


class JanusFailed(SluiceError):
    """Janus did not start, ended early, or refused a request."""

    code = "janus-failed"

    def __init__(self, detail: str) -> None:
        super().__init__()
        self.detail = detail

    def sentence(self) -> str:
        return f"Janus failed: {self.detail}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """Where the package's files are."""

    program: Path
    plugin: Path
    transport: Path
    shim: Path
    """Our library that lets it listen on 127.0.0.1 (`janus_loopback.c`)."""


def find_janus(libraries: Path = _LIBRARIES) -> Installed:
    """Where Debian put Janus, and where its shim is. Raises `PeerMissing`."""
    program = shutil.which("janus")
    if program is None:
        raise PeerMissing(name="Janus", remedy=REMEDY)
    plugin, transport = (
        next(iter(sorted(libraries.glob(f"*/janus/{name}"))), None)
        for name in ("plugins/libjanus_videoroom.so", "transports/libjanus_websockets.so")
    )
    if plugin is None or transport is None:
        raise PeerMissing(name="Janus' videoroom plugin or its websocket transport", remedy=REMEDY)
    shim = importlib.util.find_spec("bench.janus.loopback")
    if shim is None or shim.origin is None:
        raise PeerMissing(name="bench.janus.loopback", remedy="install Sluice again where there is a C compiler")
    return Installed(program=Path(program), plugin=plugin, transport=transport, shim=Path(shim.origin))


def write_configuration(folder: Path, installed: Installed, *, event_loops: int) -> None:
    """The files of a Janus that listens on `folder/api`. `event_loops` 0 is Debian's default, one for each handle."""
    for kind, library in (("plugins", installed.plugin), ("transports", installed.transport)):
        (folder / kind).mkdir()
        (folder / kind / library.name).symlink_to(library)
    for kind in ("events", "loggers"):
        (folder / kind).mkdir()
    folders = "".join(
        f'\t{kind}_folder = "{folder / kind}"\n' for kind in ("plugins", "transports", "events", "loggers")
    )
    loops = f"\tevent_loops = {event_loops}\n" if event_loops else ""
    (folder / "janus.jcfg").write_text(
        f'general: {{\n\tconfigs_folder = "{folder}"\n{folders}\tdebug_colors = false\n{loops}}}\n'
        f'media: {{\n\trtp_port_range = "{PORTS[0]}-{PORTS[1]}"\n}}\n'
        'nat: {\n\tice_lite = true\n\tfull_trickle = false\n\tice_enforce_list = "127.0.0.1"\n}\n'
    )
    (folder / "janus.transport.websockets.jcfg").write_text(
        f'general: {{\n\tjson = "compact"\n\tws = true\n\tws_unix = "{folder / "api"}"\n\twss = false\n}}\n'
        "admin: {\n\tadmin_ws = false\n\tadmin_wss = false\n}\n"
    )
    (folder / "janus.plugin.videoroom.jcfg").write_text("general: {\n}\n")


class JanusProcess:
    """A running Janus; `api` is its socket."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path) -> None:
        self._process = process
        self._folder = folder
        self.pid = process.pid
        self.api = folder / "api"

    def cpu_seconds(self) -> tuple[float, float]:
        """User and system CPU of all its threads so far [s]. Raises `JanusFailed` when it has ended."""
        self.check()
        return cpu_seconds(self.pid)

    def resident_bytes(self) -> int:
        self.check()
        return resident_bytes(self.pid)

    def check(self) -> None:
        """Raise `JanusFailed`, with the end of its log, unless it runs."""
        if self._process.returncode is not None:
            raise JanusFailed(f"it ended with status {self._process.returncode}\n{self.log_tail()}")

    def log_tail(self) -> str:
        lines = (self._folder / "log").read_text(errors="replace").splitlines()
        return "\n".join(lines[-LOG_LINES:])

    async def ready(self) -> None:
        """Until its API takes connections. Raises `JanusFailed`."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(START_TIMEOUT_S):
                while not _listens(self.api):
                    self.check()
                    await asyncio.sleep(0.02)
                return
        raise JanusFailed(f"it took no connections within {START_TIMEOUT_S:g} s\n{self.log_tail()}")

    async def stop(self) -> None:
        """Ask, then kill."""
        for end, patience_s in ((self._process.terminate, STOP_TIMEOUT_S), (self._process.kill, None)):
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    end()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(patience_s):
                    await self._process.wait()


@contextlib.asynccontextmanager
async def janus_process(installed: Installed, *, core: int | None, event_loops: int) -> AsyncIterator[JanusProcess]:
    """A Janus pinned to `core`, ready for requests, that ends with the block however that ends, and with this process
    if it is killed. Raises `JanusFailed`."""
    with tempfile.TemporaryDirectory(prefix="sluice-janus-") as name:
        folder = Path(name)
        write_configuration(folder, installed, event_loops=event_loops)
        with (folder / "log").open("wb") as log, pinned(core):
            process = await asyncio.create_subprocess_exec(
                installed.program, "-F", folder, "-C", folder / "janus.jcfg",
                env={**os.environ, "LD_PRELOAD": str(installed.shim)},
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, preexec_fn=leash(os.getpid()),
            )  # fmt: skip
        janus = JanusProcess(process, folder)
        try:
            await janus.ready()
            yield janus
        finally:
            await asyncio.shield(janus.stop())


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as one:
        return one.connect_ex(str(path)) == 0
