"""Pools of nodes, one file per platform; the platforms' client libraries are loaded when they are needed."""

from __future__ import annotations

from collections.abc import Mapping

from control.core.pool import Pool
from control.core.pool_settings import DockerPoolSettings, KubernetesPoolSettings, PoolSettings, ProcessPoolSettings


def make_pool(settings: PoolSettings, *, fleet: str, environ: Mapping[str, str]) -> Pool:
    """The pool of these settings; `environ` is the controller's environment, from which new nodes get the secret.

    Raises `BadSetting` when a client library is missing; nothing is connected yet.
    """
    match settings:
        case ProcessPoolSettings():
            from control.shell.pools.process import ProcessPool

            return ProcessPool(settings, fleet=fleet, environ=environ)
        case DockerPoolSettings():
            from control.shell.pools.docker import DockerPool

            return DockerPool(settings, fleet=fleet, environ=environ)
        case KubernetesPoolSettings():
            from control.shell.pools.kubernetes import KubernetesPool

            return KubernetesPool(settings)
