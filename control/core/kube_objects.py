"""What we read of the objects of Kubernetes' API; unknown fields are skipped."""

from __future__ import annotations

import msgspec

_COMING = {"", "ContainerCreating", "PodInitializing"}
"""Reasons of a container that waits and has not failed."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of an object; what we do not read is skipped."""


class OwnerReference(_Part, frozen=True, kw_only=True):
    """Who made it."""

    kind: str = ""
    name: str = ""
    controller: bool = False


class Meta(_Part, frozen=True, kw_only=True):
    """The metadata of any object."""

    name: str
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    """RFC 3339 with whole seconds, by the API server's clock: their texts sort like the times."""
    deletion_timestamp: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    owner_references: list[OwnerReference] | None = None

    def annotation(self, name: str) -> str:
        """Its value; empty when there is none."""
        return (self.annotations or {}).get(name, "")


class ContainerReason(_Part, frozen=True, kw_only=True):
    """Why a container waits or has ended."""

    reason: str = ""
    message: str = ""


class Running(_Part, frozen=True, kw_only=True):
    """Present while a container runs."""


class ContainerState(_Part, frozen=True, kw_only=True):
    """What a container does: one of these."""

    waiting: ContainerReason | None = None
    running: Running | None = None
    terminated: ContainerReason | None = None


class ContainerStatus(_Part, frozen=True, kw_only=True):
    """One container of a pod."""

    state: ContainerState | None = None

    @property
    def runs(self) -> bool:
        """Its process runs."""
        return self.state is not None and self.state.running is not None

    @property
    def trouble(self) -> str:
        """Why it does not run, when that is more than that it has not been started yet; empty otherwise."""
        why = (self.state.waiting or self.state.terminated) if self.state else None
        if why is None or why.reason in _COMING:
            return ""
        return f"{why.reason}: {why.message}" if why.message else why.reason


class Condition(_Part, frozen=True, kw_only=True):
    """One condition of a pod."""

    type: str
    status: str
    reason: str = ""
    message: str = ""


class PodStatus(_Part, frozen=True, kw_only=True):
    """The state of a pod."""

    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] | None = None
    container_statuses: list[ContainerStatus] | None = None


class PodSpec(_Part, frozen=True, kw_only=True):
    """The wanted state of a pod."""

    node_name: str = ""


class Pod(_Part, frozen=True, kw_only=True):
    """One pod."""

    metadata: Meta
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        """Its name, which its SFU has as id, by the downward API."""
        return self.metadata.name

    @property
    def going(self) -> bool:
        """It is being deleted."""
        return self.metadata.deletion_timestamp is not None

    @property
    def active(self) -> bool:
        """The Deployment counts it as one of its replicas."""
        return not self.going and self.status.phase not in ("Succeeded", "Failed")

    @property
    def ready(self) -> bool:
        """Its probes succeed."""
        return any(each.type == "Ready" and each.status == "True" for each in self.status.conditions or ())

    @property
    def template(self) -> str:
        """Which version of the Deployment's template it was made of."""
        return (self.metadata.labels or {}).get("pod-template-hash", "")


class ListMeta(_Part, frozen=True, kw_only=True):
    """The metadata of one page of a list."""

    continue_: str = msgspec.field(name="continue", default="")


class PodPage(_Part, frozen=True, kw_only=True):
    """One answer of a list. `kind` and `items` have no default: an empty object is not an empty list."""

    kind: str
    items: list[Pod] | None
    metadata: ListMeta = ListMeta()


class Selector(_Part, frozen=True, kw_only=True):
    """Whose pods are a Deployment's."""

    match_labels: dict[str, str] | None = None
    match_expressions: list[msgspec.Raw] | None = None


class DeploymentSpec(_Part, frozen=True, kw_only=True):
    """The wanted state of a Deployment."""

    selector: Selector
    replicas: int = 1


class Deployment(_Part, frozen=True, kw_only=True):
    """A Deployment."""

    metadata: Meta
    spec: DeploymentSpec
