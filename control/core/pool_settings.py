"""The `[pool]` table of the scaling settings, one class a kind (A8)."""

from __future__ import annotations

import dataclasses
import hashlib
import re
import types
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args, get_origin, get_type_hints

from control.core.scaling_settings import PoolTable

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?")
_PORTS = re.compile(r"(\d{1,5})-(\d{1,5})")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommonPool:
    """What every kind has."""

    name: str = "sfu"
    """Name of the pool: the beginning of its nodes' names, and a label of its metrics."""
    stop_grace_s: float = 3600.0
    """Seconds from SIGTERM to the kill; the SFUs get the same number as their `grace_s`."""
    timeout_s: float = 10.0
    """The longest time that one call to the platform may take [s]."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MadePool(CommonPool):
    """What a pool needs to know when it makes its nodes itself."""

    routers: tuple[str, ...] = ()
    """Websocket URLs of the routers; empty: what SLUICE_ROUTERS says to the controller."""
    version: str = "local"
    """Version label of the SFUs."""
    flags: tuple[str, ...] = ()
    """Further flags of `sluice sfu`, such as `--stream-ceiling=400`."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Further environment of the SFUs. The fleet's secret comes from the controller's own environment."""
    announced_ip: str = "127.0.0.1"
    """IPv4 address at which players reach the nodes."""
    bind: str = "127.0.0.1"
    """Address of this host on which the nodes' ports are opened; 0.0.0.0 for players elsewhere."""
    ports: str = "20000-31999"
    """Range of the nodes' ports, below the ephemeral ones."""

    def port_range(self) -> range:
        """The range as one."""
        match = _PORTS.fullmatch(self.ports)
        return range(int(match[1]), int(match[2]) + 1) if match else range(0)


@dataclass(frozen=True, kw_only=True, slots=True)
class ProcessPoolSettings(MadePool):
    """SFU processes on the controller's machine."""

    kind: ClassVar[str] = "process"

    state_dir: str = ""
    """Directory with a record of each process, so that another controller finds them; empty: in the user's state
    home."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DockerPoolSettings(MadePool):
    """Containers of one Docker host."""

    kind: ClassVar[str] = "docker"

    image: str = ""
    """Image of Sluice, with its tag."""
    docker: str = ""
    """URL of the Docker API (unix://, tcp://); empty: what DOCKER_HOST says, else the usual socket."""
    network: str = "bridge"
    """Network of the containers; routers must be reached from it. With `host` no ports are mapped."""
    log_driver: str = "local"
    """Docker's log driver for the containers: `local` keeps 5 files of 20 MB each; empty: the daemon's default, which
    without further settings grows without bound."""


@dataclass(frozen=True, kw_only=True, slots=True)
class KubernetesPoolSettings(CommonPool):
    """Pods of one Deployment, whose pod template an operator has written (see deploy/kubernetes/)."""

    kind: ClassVar[str] = "kubernetes"

    deployment: str = ""
    """The Deployment whose replicas are changed. No StatefulSet: that one always loses its last pod, and which SFU goes
    is our choice."""
    namespace: str = ""
    """Its namespace; empty: the controller's own, or that of the kubeconfig's context."""
    kubeconfig: str = ""
    """File with the cluster's address and credentials; empty: the service account within a pod, else the usual file."""
    context: str = ""
    """Context of the kubeconfig; empty: its current one."""
    page: int = 250
    """Pods asked for at a time."""


PoolSettings = ProcessPoolSettings | DockerPoolSettings | KubernetesPoolSettings
KINDS: dict[str, type[PoolSettings]] = {
    each.kind: each for each in (ProcessPoolSettings, DockerPoolSettings, KubernetesPoolSettings)
}


def read_pool(table: PoolTable) -> PoolSettings:
    """The settings in a `[pool]` table. Raises `BadSetting`, which names file, line, key and the fix."""
    kind = KINDS.get(table.kind)
    if kind is None:
        raise table.bad("kind", f"{table.kind!r} is not a kind of pool; there are {', '.join(KINDS)}")
    hints = get_type_hints(kind)
    table.source.check_known(table.keys, (each.name for each in dataclasses.fields(kind)), under="pool.")
    settings = kind(**{key: _value(table, key, hints[key], value) for key, value in table.keys.items()})
    _check(settings, table)
    return settings


def _value(table: PoolTable, key: str, hint: Any, value: object) -> Any:
    """A value of the field's type. TOML's `3600` is a float's value as well."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if hint is float and is_number:
        return float(value)  # type: ignore[arg-type]
    if hint is int and isinstance(value, int) and is_number:
        return value
    if hint is str and isinstance(value, str):
        return value
    if get_origin(hint) is tuple and isinstance(value, list) and all(isinstance(each, str) for each in value):
        return tuple(value)
    if hint == Mapping[str, str] and isinstance(value, dict) and all(isinstance(v, str) for v in value.values()):
        return types.MappingProxyType(dict(value))
    raise table.bad(key, f"must be {_in_words(hint)}, not {value!r}"[:200])


def _in_words(hint: Any) -> str:
    if get_origin(hint) is tuple:
        return "a list of strings"
    if get_args(hint):
        return "a table of strings"
    return {float: "a number", int: "a whole number", str: "text in quotes"}[hint]


def _check(settings: PoolSettings, table: PoolTable) -> None:
    """Raise `BadSetting` for what can't be used."""
    if not _NAME.fullmatch(settings.name):
        raise table.bad("name", "give 1 to 32 lower-case letters, digits and hyphens")
    if not 1 <= settings.stop_grace_s <= 7 * 86400:
        raise table.bad("stop_grace_s", "must be 1 to 604800 seconds")
    if not 0 < settings.timeout_s <= 120:
        raise table.bad("timeout_s", "must be over 0 and at most 120 seconds")
    if isinstance(settings, MadePool):
        ports = settings.port_range()
        if not ports or ports[0] < 1 or ports[-1] > 65535 or len(ports) < 3:
            raise table.bad("ports", f"{settings.ports!r} is not a range of at least 3 ports, such as 20000-31999")
        for url in settings.routers:
            if not url.startswith(("ws://", "wss://")):
                raise table.bad("routers", f"{url!r} is not a ws:// or wss:// URL")
    if isinstance(settings, DockerPoolSettings) and not settings.image:
        raise table.bad("image", "name the image of Sluice to run")
    if isinstance(settings, KubernetesPoolSettings):
        if not settings.deployment:
            raise table.bad("deployment", "name the Deployment whose replicas are to be changed")
        if not 1 <= settings.page <= 1000:
            raise table.bad("page", "must be 1 to 1000")


def node_name(*, fleet: str, pool: str, request: str) -> str:
    """The name of the node of a request: the same each time it is asked for, so that asking twice makes one node."""
    return f"{pool}-{hashlib.sha256(f'{fleet}/{pool}/{request}'.encode()).hexdigest()[:10]}"
