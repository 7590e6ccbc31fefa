"""A pool's containers as Docker's API tells of them, and what it is told to make one (Engine API, ContainerList and
ContainerCreate)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from control.core.pool import NodePhase, Oddity, OddKind, PoolNode
from control.core.pool_settings import DockerPoolSettings

NODE, REQUEST, PORT, HTTP_PORT = "io.sluice.node", "io.sluice.request", "io.sluice.port", "io.sluice.http_port"
"""Labels in addition to those of the fleet and the pool. The last one is the port of its metrics, in the container's
network."""
_EXITED = re.compile(r"Exited \((\d+)\)")
_PHASES = {
    "created": NodePhase.STARTING,
    "restarting": NodePhase.STARTING,
    "running": NodePhase.RUNNING,
    "paused": NodePhase.RUNNING,
    "removing": NodePhase.ENDING,
}
"""By Docker's state; `exited` and `dead` are FAILED."""


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """One container of ours."""

    id: str
    node: str
    request: str = ""
    state: str = ""
    """Docker's state: created, running, paused, restarting, removing, exited, dead."""
    exit_status: int | None = None
    labels: Mapping[str, str] = {}


class _Listed(msgspec.Struct, frozen=True, kw_only=True):
    """What we read of an entry of ContainerList."""

    id: str = msgspec.field(name="Id")
    state: str = msgspec.field(name="State", default="")
    status: str = msgspec.field(name="Status", default="")
    names: tuple[str, ...] = msgspec.field(name="Names", default=())
    labels: dict[str, str] | None = msgspec.field(name="Labels", default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Containers:
    """What a host has."""

    ours: tuple[Container, ...]
    odd: tuple[Oddity, ...]
    complete: bool
    """False when one has our labels but does not say which node it is."""


def read_containers(answer: Any, *, labels: Mapping[str, str]) -> Containers:
    """The containers in an answer. Raises `msgspec.ValidationError` when it has another shape."""
    found, odd, complete = [], [], True
    for each in msgspec.convert(answer, list[_Listed]):
        marks = each.labels or {}
        name = each.names[0].lstrip("/") if each.names else each.id[:12]
        if any(marks.get(key) != value for key, value in labels.items()):
            odd.append(Oddity(kind=OddKind.STRANGER, node=name, detail="without this pool's labels"))
        elif not marks.get(NODE):
            odd.append(Oddity(kind=OddKind.STRANGER, node=name, detail="ours by its labels, but of no node"))
            complete = False
        else:
            exited = _EXITED.match(each.status)
            found.append(
                Container(
                    id=each.id,
                    node=marks[NODE],
                    request=marks.get(REQUEST, ""),
                    state=each.state,
                    exit_status=int(exited[1]) if exited else None,
                    labels=marks,
                )
            )
    return Containers(ours=tuple(found), odd=tuple(odd), complete=complete)


def node_of(container: Container) -> PoolNode:
    """The container as a node; its SFU was given the node's name as id."""
    phase = _PHASES.get(container.state, NodePhase.FAILED)
    status = "" if container.exit_status is None else f" with status {container.exit_status}"
    return PoolNode(
        node=container.node,
        sfu=container.node,
        phase=phase,
        request=container.request,
        detail=f"{container.state or 'no state'}{status}" if phase is NodePhase.FAILED else "",
    )


def ports_of(container: Container) -> set[int]:
    """The ports it was given. One of a network of its own is not taken on the host, but left alone as well."""
    texts = (container.labels.get(label, "") for label in (PORT, HTTP_PORT))
    return {int(text) for text in texts if text.isdecimal() and len(text) <= 5}


def labels_of(labels: Mapping[str, str], *, node: str, request: str, port: int, http_port: int) -> dict[str, str]:
    """All labels of a new container."""
    return {**labels, NODE: node, REQUEST: request, PORT: str(port), HTTP_PORT: str(http_port)}


def container_config(
    settings: DockerPoolSettings, *, environ: Mapping[str, str], labels: Mapping[str, str], port: int
) -> dict[str, Any]:
    """The body of ContainerCreate. The port is the same inside and outside, so that the SFU announces what is true."""
    logs = {"LogConfig": {"Type": settings.log_driver, "Config": {}}} if settings.log_driver else {}
    opened = [] if settings.network == "host" else [f"{port}/tcp", f"{port}/udp"]
    return {
        "Image": settings.image,
        "Cmd": ["sfu", *settings.flags],
        "Env": [f"{name}={value}" for name, value in environ.items()],
        "Labels": dict(labels),
        "StopSignal": "SIGTERM",
        # When it is stopped by hand, or the daemon ends: the same grace as ours.
        "StopTimeout": round(settings.stop_grace_s),
        "ExposedPorts": {name: {} for name in opened},
        "HostConfig": {
            # Docker's own init is process 1: a SIGTERM before our interpreter runs would be lost otherwise.
            "Init": True,
            "NetworkMode": settings.network,
            "PortBindings": {name: [{"HostIp": settings.bind, "HostPort": str(port)}] for name in opened},
            # A drained SFU exits with status 0 and stays down; one that crashed is replaced by the autoscaler.
            "RestartPolicy": {"Name": "no"},
            **logs,
        },
    }
