"""A pool of pods: the replicas of one Deployment.

A launch is one write: replicas to an absolute number, and on the same object a note that says for which request, under
the object's version. A caller that repeats the launch after a failure finds it done and does not raise the number
twice; the scale subresource could not carry the note. A removal marks its pod as the cheapest to lose, and lowers the
replicas when the ReplicaSet will then remove that pod and no other.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import msgspec

from control.core.kube_objects import Deployment, Pod
from control.core.pods import (
    COST,
    LAUNCH,
    LOWERED,
    REQUEST,
    SAFE_TO_EVICT,
    VICTIM_COST,
    in_the_way,
    is_of,
    listing,
    lowered_for,
    note_of,
    pending,
    placeholder,
    read_note,
    unclaimed,
    with_cost,
)
from control.core.pool import Listing, PoolNode
from control.core.pool_settings import KubernetesPoolSettings
from control.errors import PoolError, PoolTrouble
from control.shell.pools.kube_api import KubeApi

TRIES = 4
"""Tries of a write while other programs write the same object first."""
SETTLE_S = 1.0
"""Time for a deletion cost to reach the ReplicaSet's controller, when it was not set at the cordon [s]."""

T = TypeVar("T")
log = logging.getLogger("control.pool")


class KubernetesPool:
    """`Pool` of pods. Raises `BadSetting` when the client library is missing."""

    def __init__(self, settings: KubernetesPoolSettings) -> None:
        self.name = settings.name
        self._api = KubeApi(settings)

    async def list(self) -> Listing:
        """Every pod of the Deployment, and the launch whose pod has not been made yet."""
        deployment, pods = await self._look("list")
        await self._claim(deployment, pods)
        return listing(deployment, pods)

    async def launch(self, request: str) -> PoolNode:
        """One replica more for this request, unless it was added before."""
        return await self._again_on_conflict(lambda: self._launch(request))

    async def prefer_victim(self, node: str) -> None:
        """Make it the cheapest pod to lose, alone, and keep cluster autoscalers from moving it while it drains."""
        await self._again_on_conflict(lambda: self._prefer(node))

    async def terminate(self, node: str) -> None:
        """One replica less, if that removes this pod; otherwise `PoolError` with what prevents it."""
        await self._again_on_conflict(lambda: self._terminate(node))

    async def close(self) -> None:
        """Close the connections; pods stay as they are."""
        await self._api.close()

    # --- one try each ---

    async def _launch(self, request: str) -> PoolNode:
        deployment, pods = await self._look("launch")
        ours = [pod for pod in pods if is_of(pod, deployment)]
        note = read_note(deployment)
        if (note is None or note.request != request) and all(p.metadata.annotation(REQUEST) != request for p in ours):
            replicas = deployment.spec.replicas + 1
            note_now = msgspec.json.encode(note_of(request, replicas=replicas, pods=ours)).decode()
            deployment = await self._set_replicas("launch", deployment, replicas, {LAUNCH: note_now})
        found = [node for node in listing(deployment, pods).nodes if node.request == request]
        return found[0] if found else pending(request)

    async def _prefer(self, node: str) -> None:
        deployment, pods = await self._look("prefer_victim")
        await self._mark(node, pods)
        if node in (lowered := lowered_for(deployment, pods)):
            # The mark is of an earlier removal that was taken back; this one still has to lower the replicas.
            rest = ",".join(name for name in lowered if name != node)
            await self._set_replicas("prefer_victim", deployment, deployment.spec.replicas, {LOWERED: rest or None})

    async def _terminate(self, node: str) -> None:
        deployment, pods = await self._look("terminate")
        ours = [pod for pod in pods if is_of(pod, deployment)]
        pod = next((each for each in ours if each.name == node), None)
        note = read_note(deployment)
        if pod is None and note is not None and node == placeholder(note.request):
            pod = unclaimed(note, ours) or next(
                (p for p in ours if p.metadata.annotation(REQUEST) == note.request), None
            )
            if pod is None and sum(each.active for each in ours) < deployment.spec.replicas:
                # Its pod could not even be made: the replica without a pod is removed.
                await self._set_replicas("terminate", deployment, deployment.spec.replicas - 1, {LAUNCH: None})
                return
        if pod is None or pod.going:
            return
        if not pod.active:
            await self._api.delete_pod("terminate", pod.name)  # a failed pod is no longer a replica
        elif sum(each.active for each in ours) > deployment.spec.replicas:
            return  # lowered already, but the pod is still there
        elif pod.name in lowered_for(deployment, ours):
            # Another pod was removed in spite of the costs. Lowering once more would remove the next one, and so on
            # down to none; when this one is deleted, the ReplicaSet replaces the other.
            log.warning("[pool] replicas were lowered for %s, and another pod went: deleting it", pod.name)
            await self._api.delete_pod("terminate", pod.name)
        else:
            await self._lower(deployment, pod, ours)

    async def _lower(self, deployment: Deployment, victim: Pod, pods: Sequence[Pod]) -> None:
        others = [pod for pod in pods if pod.name != victim.name]
        if {pod.name for pod in pods if pod.metadata.annotation(COST) == VICTIM_COST} != {victim.name}:
            await self._mark(victim.name, pods)
            await asyncio.sleep(SETTLE_S)
        after = [with_cost(victim, VICTIM_COST), *(with_cost(pod, "") for pod in others)]
        if reason := in_the_way(after[0], after):
            raise self._api.error(
                "terminate", PoolTrouble.REFUSED, f"not lowering replicas for {victim.name}: {reason}"
            )
        lowered = ",".join([*lowered_for(deployment, pods), victim.name])
        await self._set_replicas("terminate", deployment, deployment.spec.replicas - 1, {LOWERED: lowered})

    # --- parts of them ---

    async def _look(self, call: str) -> tuple[Deployment, Sequence[Pod]]:
        deployment = await self._api.deployment(call)
        selector = deployment.spec.selector
        if selector.match_expressions or not selector.match_labels:
            raise self._api.error(call, PoolTrouble.REFUSED, "the Deployment's selector must be by labels alone")
        labels = ",".join(f"{name}={value}" for name, value in sorted(selector.match_labels.items()))
        return deployment, await self._api.pods(call, labels)

    async def _set_replicas(
        self, call: str, deployment: Deployment, replicas: int, annotations: Mapping[str, str | None]
    ) -> Deployment:
        """One write under the version that was read; annotations that are None go."""
        metadata = {"resourceVersion": deployment.metadata.resource_version, "annotations": dict(annotations)}
        return await self._api.patch_deployment(call, {"metadata": metadata, "spec": {"replicas": max(0, replicas)}})

    async def _mark(self, victim: str, pods: Sequence[Pod]) -> None:
        for pod in pods:
            if pod.name == victim:
                await self._api.patch_pod("prefer_victim", victim, {COST: VICTIM_COST, SAFE_TO_EVICT: "false"})
            elif pod.metadata.annotation(COST) == VICTIM_COST:
                await self._api.patch_pod("prefer_victim", pod.name, {COST: None})  # of a removal that was cancelled

    async def _claim(self, deployment: Deployment, pods: Sequence[Pod]) -> None:
        """Write on the pod which request made it. Until that succeeds, every listing finds the same pod again."""
        note = read_note(deployment)
        pod = unclaimed(note, [each for each in pods if is_of(each, deployment)])
        if note is None or pod is None:
            return
        try:
            await self._api.patch_pod("list", pod.name, {REQUEST: note.request})
        except PoolError as error:
            log.warning("[pool] %s", error)

    async def _again_on_conflict(self, attempt: Callable[[], Awaitable[T]]) -> T:
        for _ in range(TRIES - 1):
            try:
                return await attempt()
            except PoolError as error:
                if error.kind is not PoolTrouble.CONFLICT:
                    raise
        return await attempt()
