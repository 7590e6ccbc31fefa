"""The pods of a Deployment as Kubernetes' API tells of them: which are ours, how far each is, which one goes first."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from control.core.kube_objects import Deployment, Pod
from control.core.pool import Listing, NodePhase, Oddity, OddKind, PoolNode, without_oddities

REQUEST = "sluice.dev/request"
"""On a pod: the launch request it was made for."""
LAUNCH = "sluice.dev/launch"
"""On the Deployment: the last launch, written together with its replicas."""
LOWERED = "sluice.dev/lowered-for"
"""On the Deployment: the pods that replicas were lowered for and that are still there, written with the replicas."""
COST = "controller.kubernetes.io/pod-deletion-cost"
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
VICTIM_COST = "-1000"
"""Under every pod without the annotation, which counts as 0."""


class LaunchNote(msgspec.Struct, frozen=True, kw_only=True):
    """A launch, as it stands on the Deployment: who asked, for which absolute number, and what was there before."""

    request: str
    replicas: int
    newest: str = ""
    """Creation time of the newest pod that was there."""
    of_then: tuple[str, ...] = ()
    """The pods created at that very second."""

    def is_new(self, pod: Pod) -> bool:
        """The pod came after the launch."""
        created = pod.metadata.creation_timestamp
        return created > self.newest or (created == self.newest and pod.name not in self.of_then)


def note_of(request: str, *, replicas: int, pods: Sequence[Pod]) -> LaunchNote:
    """The note of a launch that begins now."""
    newest = max((pod.metadata.creation_timestamp for pod in pods), default="")
    then = tuple(sorted(pod.name for pod in pods if pod.metadata.creation_timestamp == newest))
    return LaunchNote(request=request, replicas=replicas, newest=newest, of_then=then)


def read_note(deployment: Deployment) -> LaunchNote | None:
    """The last launch; None when there is none, or when the note can't be read."""
    try:
        return msgspec.json.decode(deployment.metadata.annotation(LAUNCH) or "null", type=LaunchNote | None)
    except msgspec.DecodeError:
        return None


def lowered_for(deployment: Deployment, pods: Sequence[Pod]) -> list[str]:
    """The pods that replicas were lowered for already and that still run: another pod was taken instead."""
    names = deployment.metadata.annotation(LOWERED).split(",")
    return [pod.name for pod in pods if pod.active and pod.name in names]


def unclaimed(note: LaunchNote | None, pods: Sequence[Pod]) -> Pod | None:
    """The pod that the last launch has made and that is not marked with it yet."""
    if note is None or any(pod.metadata.annotation(REQUEST) == note.request for pod in pods):
        return None
    new = [pod for pod in pods if pod.active and not pod.metadata.annotation(REQUEST) and note.is_new(pod)]
    return min(new, key=lambda pod: (pod.metadata.creation_timestamp, pod.name), default=None)


def placeholder(request: str) -> str:
    """The node's name while no pod of a launch has been made."""
    return f"request:{request}"


def listing(deployment: Deployment, pods: Sequence[Pod]) -> Listing:
    """The pool. A pod that the Deployment did not make is a stranger; a launch without a pod is a node all the same."""
    ours = [pod for pod in pods if is_of(pod, deployment)]
    odd = [
        Oddity(
            kind=OddKind.STRANGER, node=pod.name, detail=f"matches the selector; not made by {deployment.metadata.name}"
        )
        for pod in pods
        if not is_of(pod, deployment)
    ]
    note = read_note(deployment)
    claimed = unclaimed(note, ours)
    nodes = [node_of(pod, request=note.request if note and pod is claimed else "") for pod in ours]
    lacking = deployment.spec.replicas - sum(pod.active for pod in ours)
    if note is not None and lacking > 0 and all(node.request != note.request for node in nodes):
        nodes.append(pending(note.request))
    return without_oddities(nodes, odd=odd)


def pending(request: str) -> PoolNode:
    """The node of a launch whose pod has not been made yet."""
    return PoolNode(
        node=placeholder(request), sfu="", phase=NodePhase.STARTING, request=request, detail="no pod of it yet"
    )


def is_of(pod: Pod, deployment: Deployment) -> bool:
    """Made by a ReplicaSet of the Deployment: those are named after it and the template's hash."""
    name = f"{deployment.metadata.name}-{pod.template}"
    owners = pod.metadata.owner_references or ()
    return bool(pod.template) and any(o.controller and o.kind == "ReplicaSet" and o.name == name for o in owners)


def node_of(pod: Pod, *, request: str = "") -> PoolNode:
    """The pod as a node."""
    phase, detail = phase_of(pod)
    request = pod.metadata.annotation(REQUEST) or request
    return PoolNode(node=pod.name, sfu=pod.name, phase=phase, request=request, detail=detail[:200])


def phase_of(pod: Pod) -> tuple[NodePhase, str]:
    """How far it has come, and why when it goes no further.

    FAILED is for a pod that Kubernetes has given up (`Failed`, evicted): it is no longer a replica. A container that
    can't be started is tried again for ever, and the cause is mostly not the pod's own: a registry, DNS, a Secret that
    is put right a minute later. Such a pod is STARTING. If it were FAILED, the removal of failed nodes would take a
    replica for each pod that the same mistake keeps down. Other containers say nothing about an SFU that runs.
    """
    status = pod.status
    if pod.going:
        return NodePhase.ENDING, ""
    if not pod.active:
        return NodePhase.FAILED, status.reason or status.message or status.phase
    containers = status.container_statuses or ()
    trouble = next((each.trouble for each in containers if each.trouble), "")
    if status.phase == "Running" and (not containers or any(each.runs for each in containers)):
        return NodePhase.RUNNING, trouble
    stuck = [each for each in status.conditions or () if each.type == "PodScheduled" and each.status == "False"]
    unscheduled = f"{stuck[0].reason}: {stuck[0].message}" if stuck else ""
    return NodePhase.STARTING, trouble or unscheduled or status.phase


def in_the_way(victim: Pod, pods: Sequence[Pod]) -> str:
    """Why lowering the replicas might take another pod than the victim; empty when it will not.

    A ReplicaSet first removes pods without a machine, then those not running, then those not ready, and only then does
    it look at the deletion cost. During a rollout there are two ReplicaSets, and the Deployment shrinks either.
    """
    active = [pod for pod in pods if pod.active]
    if len({pod.template for pod in active}) > 1:
        return "a rollout is under way: two templates have pods"
    sooner = [pod.name for pod in active if pod.name != victim.name and _rank(pod) <= _rank(victim)]
    return f"{sooner[0]} would be taken in its place" if sooner else ""


def with_cost(pod: Pod, cost: str) -> Pod:
    """The pod as it is with our mark, or without it; the deletion costs of others stay."""
    annotations = {**(pod.metadata.annotations or {})}
    if cost or annotations.get(COST) == VICTIM_COST:
        annotations[COST] = cost
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))


def _rank(pod: Pod) -> tuple[bool, bool, bool, int]:
    """Sorts pods as a ReplicaSet takes them away (kubernetes/pkg/controller, ActivePodsWithRanks)."""
    try:
        cost = int(pod.metadata.annotation(COST) or 0)
    except ValueError:
        cost = 0
    return (bool(pod.spec.node_name), pod.status.phase == "Running", pod.ready, cost)
