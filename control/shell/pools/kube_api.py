"""The few calls to Kubernetes' API that a pool makes: bounded, typed, and every failure a `PoolError`."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec

from control.core.kube_objects import Deployment, Pod, PodPage
from control.core.pool_settings import KubernetesPoolSettings
from control.errors import PoolError, PoolTrouble
from control.shell.pools.extras import need
from control.shell.pools.trouble import trouble_of_status

MAX_ANSWER = 64 * 1024 * 1024
"""Bytes; 250 pods with all their fields are some MB."""
MAX_PAGES = 400
MAX_RETRY_AFTER_S = 3600.0
_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_MERGE = {"Content-Type": "application/merge-patch+json", "Accept": "application/json"}

T = TypeVar("T")


class _Status(msgspec.Struct, frozen=True):
    """The API's answer when it refuses a request."""

    message: str = ""
    reason: str = ""


class KubeApi:
    """One namespace of one cluster; connects at the first call. Raises `BadSetting` without the client library."""

    def __init__(self, settings: KubernetesPoolSettings) -> None:
        self._client_module = need("kubernetes_asyncio.client", extra="kubernetes")
        self._config_module = need("kubernetes_asyncio.config", extra="kubernetes")
        self._settings = settings
        self._client: Any = None
        self._namespace = settings.namespace

    async def deployment(self, call: str) -> Deployment:
        """The Deployment as it is now."""
        return self._read(call, await self._ask(call, "GET", self._of_deployment()), Deployment)

    async def patch_deployment(self, call: str, patch: Mapping[str, Any]) -> Deployment:
        """Merge a patch into it. A conflict when it names a resource version that is no longer the newest."""
        return self._read(call, await self._ask(call, "PATCH", self._of_deployment(), body=patch), Deployment)

    async def pods(self, call: str, selector: str) -> list[Pod]:
        """All pods that the selector matches, or an error: never some of them.

        A listing that takes too long expires on the server (410) and is started again, once.
        """
        try:
            return await self._pages(call, selector)
        except PoolError as error:
            if error.kind is not PoolTrouble.EXPIRED:
                raise
        return await self._pages(call, selector)

    async def patch_pod(self, call: str, pod: str, annotations: Mapping[str, str | None]) -> bool:
        """Set annotations, or remove them (None); False when there is no such pod."""
        body = {"metadata": {"annotations": dict(annotations)}}
        return await self._ask(call, "PATCH", self._of_pods(pod), body=body, missing_is_fine=True) is not None

    async def delete_pod(self, call: str, pod: str) -> None:
        """Delete a pod with the grace it has; nothing happens when there is none."""
        await self._ask(call, "DELETE", self._of_pods(pod), missing_is_fine=True)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    def error(self, call: str, kind: PoolTrouble, detail: str, *, retry_after_s: float | None = None) -> PoolError:
        """A failure of one of the pool's calls."""
        return PoolError(
            pool=self._settings.name, call=call, kind=kind, detail=detail[:300], retry_after_s=retry_after_s
        )

    # --- inside ---

    async def _pages(self, call: str, selector: str) -> list[Pod]:
        pods: list[Pod] = []
        token = ""
        for _ in range(MAX_PAGES):
            query = [("labelSelector", selector), ("limit", str(self._settings.page))]
            query += [("continue", token)] if token else []
            page = self._read(call, await self._ask(call, "GET", self._of_pods(), query=query), PodPage)
            if page.kind != "PodList":
                raise self.error(call, PoolTrouble.UNREADABLE, f"a {page.kind or 'nameless object'} in place of pods")
            pods += page.items or ()
            token = page.metadata.continue_
            if not token:
                return pods
        raise self.error(call, PoolTrouble.UNREADABLE, f"a listing without end: {MAX_PAGES} pages")

    def _of_deployment(self) -> str:
        return f"/apis/apps/v1/namespaces/{{namespace}}/deployments/{self._settings.deployment}"

    def _of_pods(self, pod: str = "") -> str:
        return "/api/v1/namespaces/{namespace}/pods" + (f"/{pod}" if pod else "")

    async def _ask(
        self,
        call: str,
        method: str,
        path: str,
        *,
        query: list[tuple[str, str]] | None = None,
        body: Mapping[str, Any] | None = None,
        missing_is_fine: bool = False,
    ) -> bytes | None:
        """One request; its answer's body, None for a 404 that is fine."""
        try:
            async with asyncio.timeout(self._settings.timeout_s):
                client = await self._connected(call)
                response = await client.call_api(
                    path, method,
                    path_params={"namespace": self._namespace}, query_params=query or [],
                    header_params=dict(_MERGE if body is not None else {"Accept": "application/json"}), body=body,
                    auth_settings=["BearerToken"], _preload_content=False,
                    _request_timeout=self._settings.timeout_s,
                )  # fmt: skip
                async with response:
                    answer = await self._body(call, response)
        except TimeoutError:
            detail = f"no answer within {self._settings.timeout_s:g} s"
            raise self.error(call, PoolTrouble.TIMEOUT, detail) from None
        except aiohttp.ClientPayloadError as error:
            raise self.error(call, PoolTrouble.UNREADABLE, f"the answer broke off: {error}") from None
        except (aiohttp.ClientError, OSError) as error:
            raise self.error(call, PoolTrouble.UNREACHABLE, repr(error)) from None
        if 200 <= response.status < 300:
            return answer
        if response.status == 404 and missing_is_fine:
            return None
        raise self._refusal(call, response, answer)

    async def _body(self, call: str, response: aiohttp.ClientResponse) -> bytes:
        chunks, size = [], 0
        async for chunk in response.content.iter_chunked(1 << 20):
            chunks.append(chunk)
            size += len(chunk)
            if size > MAX_ANSWER:
                raise self.error(call, PoolTrouble.UNREADABLE, f"an answer of more than {MAX_ANSWER} bytes")
        return b"".join(chunks)

    def _refusal(self, call: str, response: aiohttp.ClientResponse, answer: bytes) -> PoolError:
        try:
            status = msgspec.json.decode(answer, type=_Status)
        except msgspec.DecodeError:  # a proxy's own message
            status = _Status(message=answer[:100].decode(errors="replace"))
        detail = f"{response.status} {status.reason} {status.message}".strip()
        return self.error(
            call, trouble_of_status(response.status), detail, retry_after_s=_retry_after_s(response.headers)
        )

    def _read(self, call: str, answer: bytes | None, kind: type[T]) -> T:
        try:
            return msgspec.json.decode(answer or b"", type=kind)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise self.error(call, PoolTrouble.UNREADABLE, f"no {kind.__name__}: {error}") from None

    # --- connecting ---

    async def _connected(self, call: str) -> Any:
        if self._client is None:
            configuration = self._client_module.Configuration()
            try:
                namespace = await self._configure(configuration)
            except (self._config_module.ConfigException, ValueError, KeyError, TypeError) as error:
                raise self.error(call, PoolTrouble.NOT_FOUND, f"no cluster to ask: {error}") from None
            self._namespace = self._namespace or namespace
            self._client = self._client_module.ApiClient(configuration)
        return self._client

    async def _configure(self, configuration: Any) -> str:
        """Fill in where the cluster is and who we are; the namespace that goes with it."""
        settings, config = self._settings, self._config_module
        if not settings.kubeconfig and not settings.context and _NAMESPACE.exists():
            config.load_incluster_config(client_configuration=configuration)
            return _NAMESPACE.read_text().strip()
        file, context = settings.kubeconfig or None, settings.context or None
        await config.load_kube_config(config_file=file, context=context, client_configuration=configuration)
        contexts, current = config.list_kube_config_contexts(config_file=file)
        chosen = next((each for each in contexts if each["name"] == context), current) if context else current
        return str(chosen["context"].get("namespace") or "default")


def _retry_after_s(headers: Mapping[str, str]) -> float | None:
    """The header's seconds; None when there is none, or another form of it."""
    text = headers.get("Retry-After", "")
    return min(float(text), MAX_RETRY_AFTER_S) if text.isascii() and text.isdecimal() else None
