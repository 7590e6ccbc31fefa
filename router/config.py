"""The settings of a router."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from router.core.ice_servers import IceSettings
from router.core.selector.node_selector import NodeSelector
from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.front.settings import DEFAULT_FRONT, FrontSettings
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
    """URL of the fleet's Redis or Valkey: `redis://`, `rediss://`, `unix://`, `redis+sentinel://`, `redis+cluster://`;
    the last two as `rediss+...` over TLS (options `ssl_ca_certs`, `ssl_certfile`, `ssl_keyfile`, `ssl_cert_reqs`,
    `ssl_check_hostname`). Sentinels with a password: options `sentinel_username`, `sentinel_password`."""
    redis_file: str = ""
    """A file with that URL, instead of it: for one with a password."""
    fleet: str = "sluice"
    """Prefix of the fleet's keys in Redis."""
    secret: str = field(default="", repr=False)
    """The fleet's secret that signs all tokens; at least 32 bytes."""
    secret_file: str = ""
    """A file with the secret, instead of it. Further lines are further keys: all are accepted, the first signs."""
    version: str = "dev"
    """Version label of this router's release."""
    sync_interval_s: float = 1.0
    """Seconds between two exchanges with Redis."""
    selector: Annotated[NodeSelector, Parameter(name="*")] = field(default_factory=NodeSelector)
    """How an SFU is chosen."""
    ice: Annotated[IceSettings, Parameter(name="*")] = field(default_factory=IceSettings)
    """How players get through their networks."""
    keep_version: bool = False
    """Keep a room on SFUs of one release during a rollout: when it needs another SFU, on the release it runs on."""
    failure_share: float = 0.1
    """An SFU is left out when for more than this share of its players no connection comes about; 1: never."""
    failure_players: int = 30
    """Players that must have been sent to an SFU before that share of them counts."""
    dev_tokens: bool = False
    """Give player tokens to all who ask `POST /api/dev-token`: for trying it out, never in production."""
    api_open: bool = False
    """Answer all who ask at `/api`, with the names of players and rooms; off: only with an operator's token."""
    max_joins_per_minute: int = 60
    """Joins of one identity of a room in a minute at most; resumes do not count. A client that gets no SFU tries again
    every 4 s, and some have two devices."""
    front: Annotated[FrontSettings, Parameter(name="*")] = DEFAULT_FRONT
    """What strangers may do to its ports."""
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
        check_numbers(self, "sync_interval_s", "resume_window_s", over=0)
        for name in ("ws_port", "http_port"):
            if not 0 <= getattr(self, name) <= 65535:
                raise BadSetting(setting=name, detail="must be 0 to 65535")
        self._check_placement()
        self.ice.check()
        self.front.check()
        if self.max_players < 1 or self.send_buffer_kib < 64:
            raise BadSetting(setting="max_players, send_buffer_kib", detail="must be at least 1 and 64")
        check_numbers(self, "closing_spread_s", least=0)
        check_numbers(self, "max_joins_per_minute", least=1)
        return self

    def _check_placement(self) -> None:
        check_numbers(self.selector, "sysload_limit", over=0)
        check_numbers(self.selector, "cpu_load_limit", over=0, most=1, hint="a share of the cores: 0.9 is 90 %")
        check_numbers(self.selector, "max_joins_per_s", least=0)
        check_numbers(self, "failure_share", over=0, most=1, hint="1 is never")
        check_numbers(self, "failure_players", least=1, most=1000)

    @property
    def failure_rule(self) -> FailureRule:
        """When connections to an SFU fail for many."""
        return FailureRule(share=self.failure_share, players=self.failure_players)
