"""Settings of the controller."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, field
from typing import Annotated

from cyclopts import Parameter

from shared.errors import BadSetting
from shared.front.settings import DEFAULT_FRONT, FrontSettings


def default_controller_id() -> str:
    """The host's name and a few random characters: unique without being chosen by hand."""
    return f"{socket.gethostname().split('.')[0][:40]}-{secrets.token_hex(3)}"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class ControlConfig:
    """Flags and `SLUICE_*` environment variables of `sluice control`; the autoscaler's own are in the scaling file."""

    controller: Annotated[str, Parameter(show_default=False)] = field(default_factory=default_controller_id)
    """Id of this controller, unique in the fleet. Default: the host's name and six random characters."""
    host: str = "127.0.0.1"
    """Address to listen on: 0.0.0.0 in a container."""
    http_port: int = 7090
    """Port for health and metrics; 0: any free one."""
    redis: str = "redis://127.0.0.1:6379/0"
    """URL of the fleet's Redis or Valkey, as the routers have it."""
    redis_file: str = ""
    """A file with that URL, instead of it: for one with a password."""
    fleet: str = "sluice"
    """Prefix of the fleet's keys in Redis."""
    front: Annotated[FrontSettings, Parameter(name="*")] = DEFAULT_FRONT
    """What strangers may do to its port."""
    log_level: str = "INFO"
    """Least severe log line that is written."""

    def check(self) -> ControlConfig:
        """These settings, if they make sense; raises `BadSetting`."""
        if not 0 < len(self.controller) <= 64 or not self.controller.isprintable() or " " in self.controller:
            raise BadSetting(setting="controller", detail="give an id of 1 to 64 characters without spaces")
        if not 0 <= self.http_port <= 65535:
            raise BadSetting(setting="http_port", detail="must be 0 to 65535")
        self.front.check()
        return self
