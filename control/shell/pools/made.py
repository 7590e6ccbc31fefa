"""What a pool that makes its nodes itself tells each SFU, as environment."""

from __future__ import annotations

from collections.abc import Mapping

from control.core.pool_settings import MadePool

DRAIN_MAX_S = 1800.0
"""An SFU's own default; half the grace where that is short, because the second bound must come well after the first."""


def sfu_environment(
    settings: MadePool,
    *,
    node: str,
    environ: Mapping[str, str],
    listen: str,
    ws_port: int,
    udp_port: int,
    http_port: int,
    inherit: bool = True,
) -> dict[str, str]:
    """The environment of the SFU of this node; the ports are those it is reached at.

    Of the controller's own SLUICE_* settings only the secret and the routers are passed on.
    """
    kept = {name: value for name, value in environ.items() if inherit and not name.startswith("SLUICE_")}
    ours = {name: environ[name] for name in ("SLUICE_SECRET", "SLUICE_ROUTERS") if name in environ}
    if settings.routers:
        ours["SLUICE_ROUTERS"] = " ".join(settings.routers)
    return {
        **kept,
        **ours,
        "PYTHONUNBUFFERED": "1",
        "SLUICE_SFU": node,
        "SLUICE_VERSION": settings.version,
        "SLUICE_HOST": listen,
        "SLUICE_WS_PORT": str(ws_port),
        "SLUICE_UDP_PORT": str(udp_port),
        "SLUICE_HTTP_PORT": str(http_port),
        "SLUICE_ANNOUNCED_IP": settings.announced_ip,
        "SLUICE_ANNOUNCED_UDP_PORT": str(udp_port),
        "SLUICE_ANNOUNCED_WS": f"ws://{settings.announced_ip}:{ws_port}",
        "SLUICE_GRACE_S": f"{settings.stop_grace_s:g}",
        "SLUICE_DRAIN_MAX_S": f"{min(DRAIN_MAX_S, settings.stop_grace_s / 2):g}",
        **settings.env,
    }
