"""A Kubernetes API server: the calls a pool makes, answered as the real one does, and the controllers that follow them.

It keeps one Deployment and its pods. `settle` does what the Deployment's and the ReplicaSet's controllers, the
scheduler and the kubelets do between two looks: make pods, take pods away in the real ReplicaSet's order, start them.
"""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any
from urllib.parse import unquote

from aiohttp import web

NAMESPACE, DEPLOYMENT, TOKEN = "calls", "sluice-sfu", "let-me-in"
_PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
_DEPLOYMENT = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments/{DEPLOYMENT}"


class FakeKube:
    """`start`, then change its public attributes; `stop` at the end."""

    def __init__(self, *, replicas: int = 0) -> None:
        self.version = 100
        self.clock = 0
        self.made = 0
        self.pods: dict[str, dict[str, Any]] = {}
        self.deployment: dict[str, Any] = {
            "kind": "Deployment", "apiVersion": "apps/v1",
            "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE, "uid": "d-1", "resourceVersion": "100",
                         "generation": 1, "creationTimestamp": "2026-11-30T00:00:00Z", "annotations": {"kept": "yes"}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "sfu"}}, "template": {"spec": {}}},
            "status": {},
        }  # fmt: skip
        self.template = "7d9f"
        self.quota = 10**9
        """Most pods that can be made."""
        self.calls: list[tuple[str, str]] = []
        self.patches: list[dict[str, Any]] = []
        self.trouble: dict[str, list[Any]] = {}
        """`METHOD kind` -> what the next calls get instead of an answer, in their order."""
        self.before: dict[str, Any] = {}
        """`METHOD kind` -> called once before such a call: what another program does at that moment."""
        self.settle()

    # --- what the controllers do ---

    def settle(self) -> None:
        """Let everything follow."""
        self.reconcile()
        for name in [name for name, pod in self.pods.items() if "deletionTimestamp" in pod["metadata"]]:
            del self.pods[name]
        for pod in self.pods.values():
            if pod["status"]["phase"] == "Pending" and not pod.get("stuck"):
                self.run(pod)

    def reconcile(self) -> None:
        """Make and delete pods, as the ReplicaSet's controller does; the deleted stay until the next `settle`."""
        active = [pod for pod in self.pods.values() if _active(pod)]
        wanted = self.deployment["spec"]["replicas"]
        for _ in range(min(wanted - len(active), self.quota - len(active))):
            self.make()
        for pod in sorted(active, key=_rank)[: max(0, len(active) - wanted)]:
            pod["metadata"]["deletionTimestamp"] = self.now()

    def make(self) -> dict[str, Any]:
        self.made += 1
        name = f"{DEPLOYMENT}-{self.template}-{self.made:05d}"
        pod: dict[str, Any] = {
            "metadata": {
                "name": name, "namespace": NAMESPACE, "uid": f"u-{self.made}", "creationTimestamp": self.now(),
                "resourceVersion": self.next_version(), "labels": {"app": "sfu", "pod-template-hash": self.template},
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True,
                                     "name": f"{DEPLOYMENT}-{self.template}", "uid": "r-1"}],
            },
            "spec": {"containers": [{"name": "sfu"}]},
            "status": {"phase": "Pending", "conditions": []},
        }  # fmt: skip
        self.pods[name] = pod
        return pod

    @staticmethod
    def run(pod: dict[str, Any], *, ready: bool = True) -> None:
        pod["spec"]["nodeName"] = "machine-1"
        pod["status"] = {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "sfu", "ready": ready, "state": {"running": {"startedAt": "x"}}}],
        }

    def hold_back(self, pod: dict[str, Any], reason: str) -> None:
        """Its container can't be started: the kubelet waits and tries again."""
        self.run(pod, ready=False)
        pod["status"]["phase"] = "Running" if reason == "CrashLoopBackOff" else "Pending"
        pod["status"]["containerStatuses"][0]["state"] = {"waiting": {"reason": reason, "message": "back-off"}}
        pod["stuck"] = True

    def heal(self) -> None:
        """What held pods back is over."""
        for pod in self.pods.values():
            if pod.pop("stuck", False):
                self.run(pod)

    def now(self) -> str:
        self.clock += 1
        return f"2026-11-30T00:{self.clock // 60:02d}:{self.clock % 60:02d}Z"

    def next_version(self) -> str:
        self.version += 1
        return str(self.version)

    # --- the API ---

    async def start(self) -> str:
        """Its URL."""
        app = web.Application(middlewares=[self._answer])
        app.router.add_get(_PODS, self._list)
        app.router.add_get(_DEPLOYMENT, self._get_deployment)
        app.router.add_patch(_DEPLOYMENT, self._patch_deployment)
        app.router.add_patch(_PODS + "/{pod}", self._patch_pod)
        app.router.add_delete(_PODS + "/{pod}", self._delete_pod)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()

    @web.middleware
    async def _answer(self, request: web.Request, handler: Any) -> web.StreamResponse:
        kind = "deployment" if request.path == _DEPLOYMENT else "pod" if request.path != _PODS else "pods"
        call = f"{request.method} {kind}"
        self.calls.append((request.method, request.path_qs))
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return status(401, "Unauthorized", "Unauthorized")
        if (hook := self.before.pop(call, None)) is not None:
            hook()
        if self.trouble.get(call):
            trouble = self.trouble[call].pop(0)
            if trouble == "hang":
                await asyncio.sleep(60)
            elif trouble == "truncate":
                return await self._truncated(request)
            elif trouble == "lost":  # done, but the answer never comes
                await handler(request)
                assert request.transport is not None
                request.transport.abort()
            elif trouble is not None:
                assert isinstance(trouble, web.Response)
                return trouble
        answer = await handler(request)
        assert isinstance(answer, web.StreamResponse)
        return answer

    async def _truncated(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": "5000"})
        await response.prepare(request)
        await response.write(b'{"kind":"PodList","apiVersion":"v1","items":[{"metadata":{"name":"sl')
        assert request.transport is not None
        request.transport.close()
        return response

    async def _list(self, request: web.Request) -> web.Response:
        wanted = dict(part.split("=", 1) for part in unquote(request.query.get("labelSelector", "")).split(",") if part)
        matching = [
            pod for pod in self.pods.values() if wanted.items() <= (pod["metadata"].get("labels") or {}).items()
        ]
        limit = int(request.query.get("limit", "0")) or len(matching)
        start = int(base64.b64decode(request.query["continue"])) if "continue" in request.query else 0
        page = matching[start : start + limit]
        metadata: dict[str, Any] = {"resourceVersion": str(self.version)}
        if start + limit < len(matching):
            metadata["continue"] = base64.b64encode(str(start + limit).encode()).decode()
            metadata["remainingItemCount"] = len(matching) - start - limit
        return web.json_response({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": page})

    async def _get_deployment(self, _: web.Request) -> web.Response:
        return web.json_response(self.deployment)

    async def _patch_deployment(self, request: web.Request) -> web.Response:
        assert request.content_type == "application/merge-patch+json"
        patch = await request.json()
        self.patches.append(patch)
        asked = patch.get("metadata", {}).get("resourceVersion")
        current = self.deployment["metadata"]["resourceVersion"]
        if asked is not None and asked != current:
            return status(
                409, "Conflict",
                f'Operation cannot be fulfilled on deployments.apps "{DEPLOYMENT}": the object has been modified; '
                "please apply your changes to the latest version and try again",
            )  # fmt: skip
        patch.get("metadata", {}).pop("resourceVersion", None)
        _merge(self.deployment, patch)
        self.deployment["metadata"]["resourceVersion"] = self.next_version()
        return web.json_response(self.deployment)

    async def _patch_pod(self, request: web.Request) -> web.Response:
        pod = self.pods.get(request.match_info["pod"])
        if pod is None:
            return _no_pod(request)
        _merge(pod, await request.json())
        pod["metadata"]["resourceVersion"] = self.next_version()
        return web.json_response(pod)

    async def _delete_pod(self, request: web.Request) -> web.Response:
        pod = self.pods.pop(request.match_info["pod"], None)
        return _no_pod(request) if pod is None else web.json_response(pod)


def status(code: int, reason: str, message: str, headers: dict[str, str] | None = None) -> web.Response:
    """What the API says when it says no."""
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message,
            "reason": reason, "code": code}  # fmt: skip
    return web.Response(text=json.dumps(body), status=code, content_type="application/json", headers=headers)


def _no_pod(request: web.Request) -> web.Response:
    return status(404, "NotFound", f'pods "{request.match_info["pod"]}" not found')


def _merge(target: dict[str, Any], patch: dict[str, Any]) -> None:
    """RFC 7396."""
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict):
            if not isinstance(target.get(key), dict):
                target[key] = {}
            _merge(target[key], value)
        else:
            target[key] = value


def _active(pod: dict[str, Any]) -> bool:
    return "deletionTimestamp" not in pod["metadata"] and pod["status"]["phase"] not in ("Succeeded", "Failed")


def _rank(pod: dict[str, Any]) -> tuple[bool, bool, bool, int, str]:
    """Who goes first: no machine, not running, not ready, cheapest, youngest."""
    ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod["status"].get("conditions", ()))
    cost = int((pod["metadata"].get("annotations") or {}).get("controller.kubernetes.io/pod-deletion-cost", 0))
    return ("nodeName" in pod["spec"], pod["status"]["phase"] == "Running", ready, cost, pod["metadata"]["uid"])
