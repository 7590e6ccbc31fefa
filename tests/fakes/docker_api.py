"""A Docker Engine API on a unix socket: the calls a pool makes, answered as the real one does, errors included."""

from __future__ import annotations

import asyncio
import json
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web


@dataclass
class FakeContainer:
    """One container."""

    id: str
    name: str
    config: dict[str, Any]
    state: str = "created"
    exit_status: int = 0
    deaf: bool = False
    """Does not follow SIGTERM."""
    signals: list[str] = field(default_factory=list)

    def end(self, status: int = 0) -> None:
        self.state, self.exit_status = "exited", status

    def listed(self) -> dict[str, Any]:
        words = {"exited": f"Exited ({self.exit_status}) 2 seconds ago", "running": "Up 3 seconds"}
        return {
            "Id": self.id, "Names": [f"/{self.name}"], "Image": self.config["Image"], "ImageID": "sha256:0",
            "Command": "sluice sfu", "Created": 1795990000, "Ports": [], "Labels": self.config.get("Labels"),
            "State": self.state, "Status": words.get(self.state, "Created"), "HostConfig": {"NetworkMode": "bridge"},
            "NetworkSettings": {"Networks": {}}, "Mounts": [],
        }  # fmt: skip


class FakeDocker:
    """`start`, then change its public attributes; `stop` at the end."""

    def __init__(self, socket: Path) -> None:
        self.socket = socket
        self.images = {"sluice:1"}
        self.containers: dict[str, FakeContainer] = {}
        self.taken_ports: set[str] = set()
        self.calls: list[str] = []
        self.trouble: dict[str, Any] = {}
        """Last part of a path -> a status with a message, `hang`, `truncate` or `garbage`; until it is taken away."""
        self.shown: list[dict[str, Any]] | None = None
        """What ContainerList says in place of the truth."""
        self.start_at_most = 10**9

    @property
    def url(self) -> str:
        return f"unix://{self.socket}"

    async def start(self) -> None:
        app = web.Application(middlewares=[self._answer])
        app.router.add_get("/version", self._version)
        app.router.add_get("/v1.47/containers/json", self._list)
        app.router.add_post("/v1.47/containers/create", self._create)
        app.router.add_post("/v1.47/containers/{id}/start", self._start)
        app.router.add_post("/v1.47/containers/{id}/kill", self._kill)
        app.router.add_delete("/v1.47/containers/{id}", self._delete)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.socket)).start()

    async def stop(self) -> None:
        await self._runner.cleanup()

    def named(self, name: str) -> FakeContainer:
        return next(each for each in self.containers.values() if each.name == name)

    @web.middleware
    async def _answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        call = request.path.rpartition("/")[2] if request.method != "DELETE" else "delete"
        self.calls.append(call)
        match self.trouble.get(call):
            case "hang":
                await asyncio.sleep(60)
            case "truncate":
                return await _truncated(request, b'[{"Id": "ab')
            case "garbage":
                return web.json_response({"message": ["what", 7]})
            case (int() as status, str() as message):
                return web.json_response({"message": message}, status=status)
        answer = await handler(request)
        assert isinstance(answer, web.StreamResponse)
        return answer

    async def _version(self, _: web.Request) -> web.Response:
        return web.json_response({"Version": "28.5.1", "ApiVersion": "1.47", "MinAPIVersion": "1.24"})

    async def _list(self, request: web.Request) -> web.Response:
        wanted = json.loads(request.query.get("filters", "{}")).get("label", [])
        every = request.query.get("all") in ("1", "true", "True")
        listed = [
            each.listed()
            for each in self.containers.values()
            if (every or each.state == "running") and all(_has(each, label) for label in wanted)
        ]
        return web.json_response(listed if self.shown is None else self.shown)

    async def _create(self, request: web.Request) -> web.Response:
        config, name = await request.json(), request.query["name"]
        if config["Image"] not in self.images:
            return _error(404, f"No such image: {config['Image']}")
        for each in self.containers.values():
            if each.name == name:
                text = f'Conflict. The container name "/{name}" is already in use by container "{each.id}".'
                return _error(
                    409, text + " You have to remove (or rename) that container to be able to reuse that name."
                )
        id_ = secrets.token_hex(32)
        self.containers[id_] = FakeContainer(id_, name, config)
        return web.json_response({"Id": id_, "Warnings": []}, status=201)

    async def _start(self, request: web.Request) -> web.Response:
        container = self.containers.get(request.match_info["id"])
        if container is None:
            return _no_such(request)
        if container.state == "running":
            return web.Response(status=304)
        bindings = container.config["HostConfig"]["PortBindings"]
        for binding in bindings.values():
            if binding[0]["HostPort"] in self.taken_ports:
                where = f"{binding[0]['HostIp']}:{binding[0]['HostPort']}"
                return _error(
                    500,
                    f"driver failed programming external connectivity on endpoint {container.name} (0): "
                    f"Bind for {where} failed: port is already allocated",
                )
        container.state = "running"
        return web.Response(status=204)

    async def _kill(self, request: web.Request) -> web.Response:
        container = self.containers.get(request.match_info["id"])
        if container is None:
            return _no_such(request)
        if container.state != "running":
            return _error(409, f"cannot kill container: {container.id}: container {container.id} is not running")
        number = request.query.get("signal", "SIGKILL")
        container.signals.append(number)
        if number == "SIGKILL":
            container.end(137)
        elif not container.deaf:
            container.end(0)
        return web.Response(status=204)

    async def _delete(self, request: web.Request) -> web.Response:
        container = self.containers.get(request.match_info["id"])
        if container is None:
            return _no_such(request)
        if container.state == "running":
            return _error(409, f"cannot remove container {container.id}: container is running: stop it or use force")
        del self.containers[container.id]
        return web.Response(status=204)


def _has(container: FakeContainer, label: str) -> bool:
    key, _, value = label.partition("=")
    return bool((container.config.get("Labels") or {}).get(key) == value)


def _error(status: int, message: str) -> web.Response:
    return web.json_response({"message": message}, status=status)


def _no_such(request: web.Request) -> web.Response:
    return _error(404, f"No such container: {request.match_info['id']}")


async def _truncated(request: web.Request, body: bytes) -> web.StreamResponse:
    """Promises more than it sends."""
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(body) + 100)})
    await response.prepare(request)
    await response.write(body)
    assert request.transport is not None
    request.transport.close()
    return response
