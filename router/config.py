"""The settings of a router."""

from __future__ import annotations

from dataclasses import dataclass, field

from cyclopts import Parameter

from router.core.selector import Kind, NodeSelector, SortBy
from shared.errors import BadSetting
from shared.tokens import check_secret


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class RouterConfig:
    """Flags and `SLUICE_*` environment variables of `sluice router`."""

    router: str = "router-1"
    """Id of this router; unique in the fleet."""
    host: str = "127.0.0.1"
    """Address to listen on."""
    ws_port: int = 7000
    """Port for players (`/player`) and SFUs (`/sfu`); 0: any free one."""
    http_port: int = 7080
    """Port for the API, metrics and pages; 0: any free one."""
    announced_ws: str = ""
    """URL at which players reach the websocket port, without a path; empty: `ws://HOST:PORT`."""
    announced_http: str = ""
    """URL at which browsers and commands reach the HTTP port; empty: `http://HOST:PORT`."""
    redis: str = "redis://127.0.0.1:6379/0"
    """URL of the fleet's Redis or Valkey: `redis://`, `rediss://`, `unix://`, `redis+sentinel://`, `redis+cluster://`."""
    fleet: str = "sluice"
    """Prefix of the fleet's keys in Redis."""
    secret: str = field(default="", repr=False)
    """The fleet's secret that signs all tokens; at least 32 bytes."""
    version: str = "dev"
    """Version label of this router's release."""
    sync_interval_s: float = 1.0
    """Seconds between two exchanges with Redis."""
    node_selector_kind: Kind = Kind.ANY
    """Which limit filters SFUs: any, cpuload, sysload."""
    sort_by: SortBy = SortBy.LOAD
    """What orders SFUs: random, sysload, cpuload, rooms, clients, tracks, bytespersec, load."""
    cpu_load_limit: float = 0.9
    """CPU load above which `cpuload` leaves an SFU out [share of its cores]."""
    sysload_limit: float = 0.9
    """One-minute load average per core above which `sysload` leaves an SFU out."""
    dev_tokens: bool = False
    """Give player tokens to anybody who asks `POST /api/dev-token`: for trying it out, never in production."""
    resume_window_s: float = 25.0
    """Seconds for which a session whose websocket was lost may be resumed."""
    max_players: int = 20_000
    """Player connections at most; further ones are answered with HTTP 503."""
    send_buffer_kib: int = 1024
    """What may wait for one slow reader [KiB] before it is closed with 4008."""
    closing_spread_s: float = 3.0
    """At the end, players are asked to reconnect within this many seconds, spread evenly."""
    log_level: str = "INFO"
    """Least severe log line that is written."""

    def check(self) -> RouterConfig:
        """These settings, if they make sense; raises `BadSetting`."""
        check_secret(self.secret)
        if not self.router or len(self.router) > 64:
            raise BadSetting(setting="router", detail="needs an id of 1 to 64 characters")
        for name in ("sync_interval_s", "resume_window_s", "cpu_load_limit", "sysload_limit"):
            if getattr(self, name) <= 0:
                raise BadSetting(setting=name, detail="must be greater than 0")
        for name in ("ws_port", "http_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise BadSetting(setting=name, detail="must be 0 to 65535")
        if self.max_players < 1 or self.send_buffer_kib < 64:
            raise BadSetting(setting="max_players, send_buffer_kib", detail="must be at least 1 and 64")
        if self.closing_spread_s < 0:
            raise BadSetting(setting="closing_spread_s", detail="must not be negative")
        return self

    @property
    def selector(self) -> NodeSelector:
        """The node selector these settings describe."""
        return NodeSelector(
            kind=self.node_selector_kind,
            sort_by=self.sort_by,
            cpu_load_limit=self.cpu_load_limit,
            sysload_limit=self.sysload_limit,
        )
