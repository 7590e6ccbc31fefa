"""A pool of containers on one Docker host, told apart by labels.

A container is named after its launch request, so Docker itself refuses to make a second one. Its SFU's id is the node's
name, given by environment. Labels can't be changed later: that a node was told to end is known from this object's
memory and from its SFU's state.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from control.core.containers import (
    Container,
    Containers,
    container_config,
    labels_of,
    node_of,
    ports_of,
    read_containers,
)
from control.core.pool import Listing, NodePhase, PoolNode, without_oddities
from control.core.pool_settings import DockerPoolSettings, node_name
from control.errors import PoolError, PoolTrouble
from control.shell.pools.extras import need
from control.shell.pools.made import sfu_environment
from control.shell.pools.trouble import trouble_of_status
from shared.host.ports import in_any_order

HTTP_PORT = 9090
"""The metrics port of an SFU in a network of its own; not opened on the host."""
PORT_TRIES = 5
_NO_CONNECTION = 900
"""What aiodocker says in place of a status."""
_PORT_TAKEN = ("port is already allocated", "address already in use")

log = logging.getLogger("control.pool")


class DockerPool:
    """`Pool` of containers. Raises `BadSetting` when the client library is missing."""

    def __init__(
        self,
        settings: DockerPoolSettings,
        *,
        fleet: str,
        environ: Mapping[str, str],
    ) -> None:
        """`environ` is the controller's."""
        self._aiodocker = need("aiodocker", extra="docker")
        self.name = settings.name
        self._settings = settings
        self._fleet = fleet
        self._environ = environ
        self._client: Any = None
        self._ending: dict[str, float] = {}
        """Container id -> when we told it to end [monotonic s]."""

    # --- what an autoscaler asks ---

    async def list(self) -> Listing:
        """Every container of the pool, those that crashed included."""
        async with self._asking("list") as docker:
            containers = await self._containers(docker)
        nodes = [node for each in containers.ours if (node := await self._look(each)) is not None]
        there = {each.id for each in containers.ours}
        self._ending = {id_: at for id_, at in self._ending.items() if id_ in there}
        return without_oddities(nodes, complete=containers.complete, odd=containers.odd)

    async def launch(self, request: str) -> PoolNode:
        """Create and start the container of this request, or find it there. The image must be on the host."""
        name = node_name(fleet=self._fleet, pool=self.name, request=request)
        async with self._asking("launch") as docker:
            for _ in range(PORT_TRIES):
                found = await self._find(docker, name) or await self._create(docker, name, request)
                if found.state not in ("created", ""):
                    return node_of(found)
                if await self._start(docker, found):
                    return node_of(msgspec.structs.replace(found, state="running"))
        raise self._error("launch", PoolTrouble.FULL, f"ports in {self._settings.ports} are taken by others")

    async def prefer_victim(self, node: str) -> None:
        """Nothing: Docker does not choose nodes to end."""

    async def terminate(self, node: str) -> None:
        """SIGTERM; a container that does not run is removed."""
        async with self._asking("terminate") as docker:
            found = await self._find(docker, node)
            if found is None:
                return
            if found.state in ("running", "paused", "restarting"):
                self._ending.setdefault(found.id, time.monotonic())
                await self._signal(docker, found.id, "SIGTERM")
            else:
                await self._remove(docker, found.id)

    async def close(self) -> None:
        """Close the connection; containers stay as they are."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    # --- calls ---

    @asynccontextmanager
    async def _asking(self, call: str) -> AsyncIterator[Any]:
        """The client; what goes wrong comes out as `PoolError`, never as an empty answer."""
        docker_error = self._aiodocker.DockerError
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                yield self._docker()
        except docker_error as error:
            kind = PoolTrouble.UNREACHABLE if error.status == _NO_CONNECTION else trouble_of_status(error.status)
            raise self._error(call, kind, str(error.message)) from None
        except TimeoutError:
            detail = f"no answer within {self._settings.timeout_s:g} s"
            raise self._error(call, PoolTrouble.TIMEOUT, detail) from None
        except (aiohttp.ClientPayloadError, msgspec.ValidationError, ValueError, LookupError, TypeError) as error:
            # aiodocker reads answers with json and [] and lets through what these raise.
            raise self._error(call, PoolTrouble.UNREADABLE, repr(error)) from None
        except (aiohttp.ClientError, OSError) as error:
            raise self._error(call, PoolTrouble.UNREACHABLE, repr(error)) from None

    def _docker(self) -> Any:
        if self._client is None:
            try:
                self._client = self._aiodocker.Docker(url=self._settings.docker or None)
            except (ValueError, AssertionError) as error:
                # It asserts that DOCKER_HOST or one of the usual sockets is there.
                raise OSError(f"there is no Docker to ask: {str(error) or 'no DOCKER_HOST and no socket'}") from None
        return self._client

    async def _containers(self, docker: Any) -> Containers:
        labels = [f"{key}={value}" for key, value in self._labels().items()]
        query = {"all": "1", "filters": msgspec.json.encode({"label": labels}).decode()}
        answer = await docker._query_json("containers/json", params=query)
        return read_containers(answer, labels=self._labels())

    async def _find(self, docker: Any, node: str) -> Container | None:
        """The container of a node, whatever its state; None when there is none."""
        return next((each for each in (await self._containers(docker)).ours if each.node == node), None)

    async def _create(self, docker: Any, name: str, request: str) -> Container:
        taken = {port for each in (await self._containers(docker)).ours for port in ports_of(each)}
        free = in_any_order(self._settings.port_range(), but=taken)
        if len(free) < 2:
            raise self._error("launch", PoolTrouble.FULL, f"no free port in {self._settings.ports}")
        port, http_port = free[:2]
        on_host = self._settings.network == "host"
        http_port = http_port if on_host else HTTP_PORT
        environ = sfu_environment(
            self._settings, node=name, environ=self._environ, inherit=False, ws_port=port, udp_port=port,
            http_port=http_port, listen=self._settings.bind if on_host else "0.0.0.0",
        )  # fmt: skip
        labels = labels_of(self._labels(), node=name, request=request, port=port, http_port=http_port)
        config = container_config(self._settings, environ=environ, labels=labels, port=port)
        try:
            made = await docker.containers.create(config, name=f"{self._fleet}-{name}")
        except self._aiodocker.DockerError as error:
            if error.status == 409 and (found := await self._find(docker, name)) is not None:
                return found  # another controller was quicker
            raise
        return Container(id=made.id, node=name, request=request, state="created", labels=labels)

    async def _start(self, docker: Any, container: Container) -> bool:
        """Start it; False when its port is in use: the container is removed then, for another try."""
        try:
            await docker.containers.container(container.id).start()
        except self._aiodocker.DockerError as error:
            if any(words in str(error.message) for words in _PORT_TAKEN):
                await self._remove(docker, container.id)
                return False
            raise
        return True

    async def _signal(self, docker: Any, container: str, number: str) -> None:
        try:
            await docker.containers.container(container).kill(signal=number)
        except self._aiodocker.DockerError as error:
            if error.status not in (404, 409):  # it has ended meanwhile
                raise

    async def _remove(self, docker: Any, container: str) -> None:
        try:
            await docker.containers.container(container).delete()
        except self._aiodocker.DockerError as error:
            if error.status not in (404, 409):  # gone, or being removed
                raise

    # --- looking ---

    async def _look(self, container: Container) -> PoolNode | None:
        """A container as a node; None for one that has ended as it should, which is removed."""
        told_at = self._ending.get(container.id)
        if container.state == "exited" and (container.exit_status == 0 or told_at is not None):
            await self._quietly(container.id, None)
            return None
        node = node_of(container)
        if told_at is None or node.phase is NodePhase.FAILED:
            return node
        if time.monotonic() - told_at > self._settings.stop_grace_s:
            await self._quietly(container.id, "SIGKILL")  # as `docker stop` does; the SFU ends before, unless it hangs
        return PoolNode(node=node.node, sfu=node.sfu, phase=NodePhase.ENDING, request=node.request)

    async def _quietly(self, container: str, number: str | None) -> None:
        """Clean up; after a failure it is tried again at the next listing, and this listing is still valid."""
        try:
            async with self._asking("tidy") as docker:
                await (self._signal(docker, container, number) if number else self._remove(docker, container))
        except PoolError as error:
            log.warning("[pool] %s", error)

    def _labels(self) -> dict[str, str]:
        return {"io.sluice.fleet": self._fleet, "io.sluice.pool": self.name}

    def _error(self, call: str, kind: PoolTrouble, detail: str) -> PoolError:
        return PoolError(pool=self.name, call=call, kind=kind, detail=detail[:300])
