"""Settings of an SFU: flags of `sluice sfu`, or SLUICE_... in the environment."""

from __future__ import annotations

import ipaddress
import secrets
import socket
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from sfu.core.drain.bounds import DrainBounds
from sfu.plane.choice import PlaneKind
from shared.errors import BadSetting
from shared.front.settings import DEFAULT_FRONT, FrontSettings
from shared.load import (
    LEAST_CPU_GUARD,
    LEAST_EGRESS_MBPS,
    LEAST_STREAMS,
    MOST_CORES,
    MOST_CPU,
    MOST_EGRESS_MBPS,
    MOST_STREAMS,
    Ceilings,
)
from shared.tokens import check_secret

PLAYERS_PATH = "/media"
"""Of players' websockets."""


def default_sfu_id() -> str:
    """The host's name and a few random characters: unique without a choice."""
    return f"{socket.gethostname().split('.')[0][:40]}-{secrets.token_hex(3)}"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class SfuConfig:
    """Settings of one SFU process."""

    secret: Annotated[str, Parameter(show_default=False)] = ""
    """The fleet's secret, at least 32 bytes; the same on routers and SFUs. Better given as SLUICE_SECRET."""

    secret_file: str = ""
    """A file with the secret, instead of it. Further lines are further keys: all are accepted, the first signs."""

    sfu: Annotated[str, Parameter(show_default=False)] = field(default_factory=default_sfu_id)
    """Id of this SFU, unique in the fleet. Default: the host's name and six random characters."""

    routers: Annotated[tuple[str, ...], Parameter(json_list=True)] = ("ws://127.0.0.1:7000",)
    """Websocket URLs of the routers to report to; in the environment separated by spaces, or as a JSON list."""

    links: int = 2
    """How many of the routers to be linked with at a time."""

    host: str = "127.0.0.1"
    """Address to listen on: 0.0.0.0 in a container, :: for IPv6 and IPv4."""

    ws_port: int = 7101
    """TCP port of the players' websockets; 0: any free one."""

    udp_port: int = 7101
    """UDP port of all media; 0: any free one."""

    tcp: bool = True
    """Take media over TCP too (ICE-TCP), from players whose network lets no UDP through."""

    tcp_port: int = 0
    """TCP port of that media; 0: the number of the UDP port, or any free one where that is taken."""

    plane: PlaneKind = PlaneKind.COMPILED
    """Which data plane forwards media: `compiled`, or the slow, readable `reference`."""

    gso: bool = True
    """Send runs of equal datagrams as one where the kernel can (UDP GSO)."""

    http_port: int = 9090
    """TCP port of health, metrics and state; 0: any free one."""

    announced_ip: Annotated[tuple[str, ...], Parameter(json_list=True)] = ()
    """Addresses, IPv4 or IPv6, at which players reach the UDP port, best first. Default: 127.0.0.1, for this host."""

    announced_udp_port: int = 0
    """UDP port at which players reach it; 0: the same as `udp_port`."""

    announced_tcp_port: int = 0
    """TCP port at which players reach it; 0: the same as `tcp_port`."""

    announced_ws: str = ""
    """Websocket URL at which players reach it. Default: made of `announced_ip` and `ws_port`."""

    version: str = "dev"
    """Version label of the release; a forced exit can name it, and drain metrics carry it."""

    cell: str = "default"
    """The cell it belongs to."""

    drain_max_s: float = 1800.0
    """Seconds into a drain at which the remaining players are asked to move."""

    grace_s: float = 3600.0
    """Seconds from SIGTERM to the kill: Kubernetes' terminationGracePeriodSeconds, Docker's stop_grace_period."""

    final_lead_s: float = 60.0
    """The final sequence begins this many seconds before the kill, but never more than a quarter of `grace_s`."""

    egress_ceiling_mbps: float = 700.0
    """Sent Mbit/s at which the node counts as full: 70 % of its network port."""

    stream_ceiling: int = 1200
    """Forwarded outbound streams at which the node counts as full."""

    cpu_guard: float = 0.85
    """CPU share at which the node counts as full [0..1]."""

    cores: int = 1
    """Cores that this process may use."""

    machine_cpu: bool = True
    """Count the machine's CPU as this node's when it is the fuller one: where a neighbour uses the cores, there is no
    room for players. Off: only this process' own, for trials with players and fleet on one machine."""

    publisher_cap_kbps: int = 2500
    """Bandwidth told to each publisher [kbit/s]; browsers ramp up to it."""

    max_players: int = 2000
    """Most player sessions."""

    front: Annotated[FrontSettings, Parameter(name="*")] = DEFAULT_FRONT
    """What strangers may do to its TCP ports."""

    max_publications: int = 16
    """Most publications of one player."""

    max_subscriptions: int = 2048
    """Most publications that one player may want from here."""

    log_level: str = "INFO"
    """DEBUG, INFO, WARNING or ERROR."""

    def bounds(self) -> DrainBounds:
        """The drain's bounds. Raises `BadSetting`."""
        return DrainBounds(drain_max_s=self.drain_max_s, grace_s=self.grace_s, final_lead_s=self.final_lead_s)

    def ceilings(self) -> Ceilings:
        """What counts as full."""
        return Ceilings(
            egress_bps=self.egress_ceiling_mbps * 1e6, streams=self.stream_ceiling, cpu_guard=self.cpu_guard
        )

    def ips(self) -> tuple[str, ...]:
        """The announced addresses, with the default filled in."""
        return self.announced_ip or ("127.0.0.1",)

    def check(self) -> None:
        """Raise `BadSetting`, which names the setting and the fix, when the settings can't be used together."""
        check_secret(self.secret)
        self.bounds()
        self.front.check()
        for name in ("ws_port", "udp_port", "tcp_port", "http_port", "announced_udp_port", "announced_tcp_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise BadSetting(setting=name, detail="is no port; give 0 to 65535")
        for name in ("links", "publisher_cap_kbps", "max_players", "max_publications", "max_subscriptions"):
            if getattr(self, name) < 1:
                raise BadSetting(setting=name, detail="must be at least 1")
        self._check_ceilings()
        if not 0 < len(self.sfu) <= 64 or not self.sfu.isprintable() or " " in self.sfu:
            raise BadSetting(setting="sfu", detail="give an id of 1 to 64 characters without spaces")
        for url in (*self.routers, *filter(None, [self.announced_ws])):
            if not url.startswith(("ws://", "wss://")):
                raise BadSetting(setting="routers, announced_ws", detail=f"{url!r} is no ws:// or wss:// URL")
        for ip in self.ips():
            _check_announced(ip, host=self.host)

    def _check_ceilings(self) -> None:
        """Routers do not believe a ceiling out of bounds, and the node's load would stay unknown."""
        bounds = {
            "stream_ceiling": (LEAST_STREAMS, MOST_STREAMS),
            "egress_ceiling_mbps": (LEAST_EGRESS_MBPS, MOST_EGRESS_MBPS),
            "cpu_guard": (LEAST_CPU_GUARD, MOST_CPU),
            "cores": (1, MOST_CORES),
        }
        for name, (least, most) in bounds.items():
            if not least <= getattr(self, name) <= most:  # NaN fails as well
                raise BadSetting(setting=name, detail=f"must be {least:.7g} to {most:.7g}")


def _check_announced(text: str, *, host: str) -> None:
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise BadSetting(setting="announced_ip", detail=f"{text!r} is no IP address; give numbers, no name") from None
    if address.is_unspecified:
        raise BadSetting(setting="announced_ip", detail=f"players can't send to {text}; give the address they use")
    if address.version == 6 and ":" not in host:
        raise BadSetting(setting="host", detail=f"{host} takes no IPv6, which {text} announces; listen on ::")
