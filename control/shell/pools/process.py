"""A pool of SFU processes on this machine. They outlive the controller; the next one finds them in the state directory.

A node is named after its launch request, and its SFU has the same id. Its file is written before its process is started
and the process carries its name in the environment: so no process runs that is not listed, even if the controller dies
in between.
"""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TypeVar

import msgspec

from control.core.pool import Listing, NodePhase, Oddity, OddKind, PoolNode, without_oddities
from control.core.pool_settings import ProcessPoolSettings, node_name
from control.errors import PoolError, PoolTrouble
from control.shell.pools import proc
from control.shell.pools.made import sfu_environment
from control.shell.pools.process_records import NodeFile, NodeFiles
from shared.host.child import python, tail
from shared.host.ports import in_any_order, is_free
from shared.host.state import state_directory

MARK = "SLUICE_POOL_NODE"
"""In each process' environment: the state directory and the node."""

T = TypeVar("T")


class ProcessPool:
    """`Pool` of local processes. Two controllers can hold one each for the same directory."""

    def __init__(
        self,
        settings: ProcessPoolSettings,
        *,
        fleet: str,
        environ: Mapping[str, str],
        command: Sequence[str] = (),
    ) -> None:
        """`environ` is the controller's; `command` starts an SFU that takes its settings from the environment;
        empty: our own."""
        self.name = settings.name
        self._settings = settings
        self._fleet = fleet
        self._environ = environ
        self._command = list(command) or python("sfu")
        place = Path(settings.state_dir) if settings.state_dir else state_directory(dict(environ)) / "pools" / fleet
        self._files = NodeFiles(place.resolve() / settings.name)

    @property
    def logs(self) -> Path:
        """Where each node's process logs to, as `NODE.log`."""
        return self._files.directory

    def last_lines(self, node: str) -> str:
        """The end of a node's log."""
        return tail(self._files.log(node))

    # --- what an autoscaler asks ---

    async def list(self) -> Listing:
        """Every node that has a file, with those that have ended without being told to."""
        return await self._call("list", self._list)

    async def launch(self, request: str) -> PoolNode:
        """Start the process of this request, or find it started."""
        return await self._call("launch", lambda: self._launch(request))

    async def prefer_victim(self, node: str) -> None:
        """Nothing: no platform chooses nodes here."""

    async def terminate(self, node: str) -> None:
        """SIGTERM; a process that has ended is forgotten."""
        await self._call("terminate", lambda: self._terminate(node))

    async def end_all(self) -> None:
        """SIGKILL for every node, and forget them: for a fleet that ends as a whole. No autoscaler asks for this."""
        await self._call("end_all", self._end_all)

    async def close(self) -> None:
        """Nothing: processes and files stay for the next controller."""

    async def _call(self, call: str, work: Callable[[], T]) -> T:
        """Do blocking work in a thread, alone with the directory."""

        def alone() -> T:
            with self._files.locked():
                return work()

        try:
            return await asyncio.to_thread(alone)
        except TimeoutError as error:
            raise self._error(call, PoolTrouble.TIMEOUT, str(error)) from None
        except OSError as error:
            raise self._error(call, PoolTrouble.UNREACHABLE, str(error)) from None
        except msgspec.DecodeError as error:
            raise self._error(call, PoolTrouble.UNREADABLE, f"{self._files.directory}: {error}") from None

    # --- under the lock ---

    def _list(self) -> Listing:
        files, unreadable = self._files.read_all()
        running = self._marked()
        nodes = [node for file in files if (node := self._look(file, running)) is not None]
        odd = [Oddity(kind=OddKind.STRANGER, node=name, detail="can't be read") for name in unreadable]
        known = {file.node for file in files} | {name.removesuffix(".json") for name in unreadable}
        odd += [
            Oddity(kind=OddKind.STRANGER, node=name, detail=f"process {pid} has no file")
            for name, pid in running.items()
            if name not in known
        ]
        # A file that can't be read, or a process without one, may be any node: a missing node may still be there.
        return without_oddities(nodes, complete=not odd, odd=odd)

    def _look(self, file: NodeFile, running: Mapping[str, int]) -> PoolNode | None:
        """A node as it is now; None when it has ended as it was told to."""
        file = self._found(file, running)
        if proc.started_ticks(file.pid) == file.started and file.pid:
            self._hurry(file)
            self._files.cap_log(file.node)
            return self._node(file, NodePhase.RUNNING if file.ending_at is None else NodePhase.ENDING)
        if not file.pid:
            return self._node(file, NodePhase.STARTING, "not started yet")
        status = proc.reap(file.pid)
        if file.ending_at is not None:
            self._files.remove(file.node, failed=False)
            return None
        if status is not None:
            file = self._files.write(msgspec.structs.replace(file, exit_status=status))
        return self._node(file, NodePhase.FAILED, self._last_words(file))

    def _launch(self, request: str) -> PoolNode:
        name = node_name(fleet=self._fleet, pool=self.name, request=request)
        file = self._files.read(name)
        if file is None:
            file = self._files.write(self._new(name, request))
        running = self._marked()
        file = self._found(file, running)
        if not file.pid and file.ending_at is None:
            file = self._start(file)
        return self._look(file, running) or self._node(file, NodePhase.ENDING)

    def _terminate(self, node: str) -> None:
        file = self._files.read(node)
        if file is None:
            return
        file = self._found(file, self._marked())
        if proc.started_ticks(file.pid) != file.started or not file.pid:
            proc.reap(file.pid)
            self._files.remove(node, failed=bool(file.pid))
            return
        if file.ending_at is None:
            file = self._files.write(msgspec.structs.replace(file, ending_at=_since_boot()))
        proc.send(file.pid, file.started, signal.SIGTERM)

    def _end_all(self) -> None:
        for pid in self._marked().values():
            if (started := proc.started_ticks(pid)) is not None:
                proc.send(pid, started, signal.SIGKILL)
        for file in self._files.read_all()[0]:
            proc.reap(file.pid)
            self._files.remove(file.node, failed=False)

    # --- processes ---

    def _new(self, name: str, request: str) -> NodeFile:
        others, _ = self._files.read_all()
        taken = {port for other in others for port in other.ports}
        host = "127.0.0.1" if self._settings.bind == "0.0.0.0" else self._settings.bind
        drawn = in_any_order(self._settings.port_range(), but=taken)
        free = list(islice((port for port in drawn if is_free(port, host=host)), 3))
        if len(free) < 3:
            raise self._error("launch", PoolTrouble.FULL, f"no three free ports in {self._settings.ports}")
        ws_port, udp_port, http_port = free
        return NodeFile(node=name, request=request, ws_port=ws_port, udp_port=udp_port, http_port=http_port)

    def _start(self, file: NodeFile) -> NodeFile:
        environ = sfu_environment(
            self._settings, node=file.node, environ=self._environ, listen=self._settings.bind,
            ws_port=file.ws_port, udp_port=file.udp_port, http_port=file.http_port,
        )  # fmt: skip
        log = self._files.log(file.node)
        command = [*self._command, *self._settings.flags]
        try:
            pid = proc.spawn(command, environ={**environ, MARK: self._mark(file.node)}, log=log)
        except OSError as error:
            self._files.remove(file.node, failed=False)
            raise self._error("launch", PoolTrouble.REFUSED, f"{command[0]}: {error}") from None
        return self._files.write(msgspec.structs.replace(file, pid=pid, started=proc.started_ticks(pid) or 0))

    def _found(self, file: NodeFile, running: Mapping[str, int]) -> NodeFile:
        """The record with its process, which is found by its mark when it was not recorded."""
        pid = running.get(file.node)
        started = proc.started_ticks(pid) if pid is not None and not file.pid else None
        if started is None or pid is None:
            return file
        return self._files.write(msgspec.structs.replace(file, pid=pid, started=started))

    def _hurry(self, file: NodeFile) -> None:
        """The kill that follows a SIGTERM after the grace, as on every platform: the SFU knows the same number and ends
        before that, unless it hangs."""
        if file.ending_at is not None and _since_boot() - file.ending_at > self._settings.stop_grace_s:
            proc.send(file.pid, file.started, signal.SIGKILL)

    def _marked(self) -> dict[str, int]:
        """Node -> process, by the marks of our directory."""
        prefix = self._mark("")
        return {mark.removeprefix(prefix): pid for pid, mark in proc.marked(MARK) if mark.startswith(prefix)}

    def _mark(self, node: str) -> str:
        return f"{self._files.directory}:{node}"

    def _last_words(self, file: NodeFile) -> str:
        how = "ended unasked" if file.exit_status is None else f"ended unasked with status {file.exit_status}"
        words = tail(self._files.log(file.node), limit=400).strip().splitlines()
        return f"{how}: {words[-1][:200]}" if words else how

    @staticmethod
    def _node(file: NodeFile, phase: NodePhase, detail: str = "") -> PoolNode:
        return PoolNode(node=file.node, sfu=file.node, phase=phase, request=file.request, detail=detail)

    def _error(self, call: str, kind: PoolTrouble, detail: str) -> PoolError:
        return PoolError(pool=self.name, call=call, kind=kind, detail=detail[:300])


def _since_boot() -> float:
    """A clock that all processes of this machine share, and that can't be set."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
