"""The settings of a router."""

from __future__ import annotations

from dataclasses import dataclass, field

from cyclopts import Parameter

from router.core.selector import Kind, NodeSelector, SortBy
from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.placing import FailureRule
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
    two_choices: bool = False
    """Draw two SFUs by chance among the best of the ladder and take the better one, instead of the best of all."""
    join_cost: float = 0.0
    """What a placement that no report shows yet adds to the figure of `sort_by`, in its unit; 0: an estimate."""
    reports_until_shown: int = 2
    """Reports of an SFU after which a placement counts as shown by them, 1 to 5."""
    max_joins_per_s: float = 0.0
    """Joins a second above which an SFU is passed over while there is another, over all routers; 0: no cap."""
    warm_up_wait_s: float = 30.0
    """For how many seconds an SFU that has not warmed up is passed over while there is another; 0: never."""
    keep_version: bool = False
    """Keep a room on SFUs of one release during a rollout: when it is placed anew, on the release it runs on."""
    failure_share: float = 0.1
    """An SFU is left out when for more than this share of its players no connection comes about; 1: never."""
    failure_players: int = 30
    """Of at least so many players that were sent there."""
    failure_window_s: float = 120.0
    """Within so many seconds."""
    failure_pause_s: float = 60.0
    """For how many seconds it is left out, while there is another."""
    dev_tokens: bool = False
    """Give player tokens to anybody who asks `POST /api/dev-token`: for trying it out, never in production."""
    api_open: bool = False
    """Answer everybody at `/api`, with the names of players and rooms; off: only with an operator's token."""
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
        check_numbers(self, "sync_interval_s", "resume_window_s", "sysload_limit", over=0)
        check_numbers(self, "cpu_load_limit", over=0, most=1, hint="a share of the cores: 0.9 is 90 %")
        for name in ("ws_port", "http_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise BadSetting(setting=name, detail="must be 0 to 65535")
        self._check_placement()
        if self.max_players < 1 or self.send_buffer_kib < 64:
            raise BadSetting(setting="max_players, send_buffer_kib", detail="must be at least 1 and 64")
        check_numbers(self, "closing_spread_s", least=0)
        return self

    def _check_placement(self) -> None:
        check_numbers(self, "join_cost", "max_joins_per_s", "warm_up_wait_s", least=0)
        check_numbers(self, "reports_until_shown", least=1, most=5)
        check_numbers(self, "failure_share", over=0, most=1, hint="1 is never")
        check_numbers(self, "failure_players", least=1, most=1000)
        check_numbers(self, "failure_window_s", "failure_pause_s", least=1, most=3600, hint="seconds")

    @property
    def failure_rule(self) -> FailureRule:
        """When connections to an SFU fail for many."""
        return FailureRule(
            share=self.failure_share,
            players=self.failure_players,
            window_s=self.failure_window_s,
            pause_s=self.failure_pause_s,
        )

    @property
    def selector(self) -> NodeSelector:
        """The node selector these settings describe."""
        return NodeSelector(
            kind=self.node_selector_kind,
            sort_by=self.sort_by,
            cpu_load_limit=self.cpu_load_limit,
            sysload_limit=self.sysload_limit,
            two_choices=self.two_choices,
            join_cost=self.join_cost,
            reports_until_shown=self.reports_until_shown,
            max_joins_per_s=self.max_joins_per_s,
            warm_up_wait_s=self.warm_up_wait_s,
        )
