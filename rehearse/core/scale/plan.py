"""The plan of a scale rehearsal: the autoscaler's own rules with time compressed, and ceilings that a few bots fill."""

from __future__ import annotations

import json
from dataclasses import dataclass

from control.core.scaling_settings import ScalingSettings, read_settings
from shared.errors import BadSetting

LEAST_TICK_S, MOST_TICK_S = 0.5, 30.0
LEAST_NODES, MOST_NODES = 2, 8
STREAM_CEILING = 16
"""Forwarded streams at which a node of the rehearsal is full. Each player of a room receives audio and video of each
other one: a pair is 4 streams, a quarter of a node, which is quiet; three are 12, three quarters, which is hot."""
PAIR, TRIO = 2, 3
COOLDOWN_TICKS = 10
"""As 300 s are to ticks of 30 s (A4)."""
LAUNCH_TIMEOUT_S = 180.0
"""Not compressed: a process takes as long to start as it takes."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalePlan:
    """What is rehearsed. Raises `BadSetting` for what can't be."""

    nodes: int = 3
    """Nodes at the beginning, which are the floor (A4); one more is the maximum."""
    tick_s: float = 1.0

    def __post_init__(self) -> None:
        if not LEAST_NODES <= self.nodes <= MOST_NODES:
            raise BadSetting(setting="--sfus", detail=f"must be {LEAST_NODES} to {MOST_NODES}")
        if not LEAST_TICK_S <= self.tick_s <= MOST_TICK_S:
            raise BadSetting(setting="--tick-s", detail=f"must be {LEAST_TICK_S:g} to {MOST_TICK_S:g}")

    def toml(self, *, state_dir: str) -> str:
        """The scaling settings. Thresholds, hits and ticks are the defaults, so they are not written down."""
        return f"""\
tick_s = {self.tick_s:g}
cooldown_s = {COOLDOWN_TICKS * self.tick_s:g}
min_nodes = {self.nodes}
max_nodes = {self.nodes + 1}
stream_ceiling = {STREAM_CEILING}
launch_timeout_s = {LAUNCH_TIMEOUT_S:g}

[pool]
kind = "process"
state_dir = {json.dumps(state_dir)}
# One link an SFU, so that some players are told by the router that is linked and some through Redis. The bots use the
# same cores as the SFUs, which no player of a real fleet does: only an SFU's own CPU counts here.
flags = ["--links=1", "--no-machine-cpu"]
"""

    def settings(self) -> ScalingSettings:
        """The same as the controller reads it."""
        return read_settings(self.toml(state_dir=""))
