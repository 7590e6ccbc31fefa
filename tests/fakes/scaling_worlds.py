"""Rigs that many tests of the autoscaler begin with."""

from __future__ import annotations

from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import ScaleAction
from tests.fakes.scaling_rig import Rig

HOT, WARM, QUIET = 0.7, 0.5, 0.2
"""Loads over, between and under the default thresholds."""


def rig(*, load: float = WARM, nodes: int = 4, settings: ScalingSettings | None = None) -> Rig:
    """A pool of nodes that are all as full."""
    made = Rig(settings, nodes=nodes)
    made.load(load)
    return made


def draining(load: float = QUIET, *, node: str = "s2") -> tuple[Rig, str]:
    """A rig of which one node has been told to drain this very tick, and which."""
    it = rig(load=load)
    it.sfus[node].streams = 1
    it.until(ScaleAction.SCALE_IN)
    return it, node


def warming(*, registered: bool = True, settings: ScalingSettings | None = None) -> tuple[Rig, str]:
    """A rig of three nodes and one that was launched for load, is known to routers and not warmed up; and which."""
    it = rig(load=HOT, nodes=3, settings=settings)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    node = it.done("launch")[0].node
    it.sfus[node].registered = registered
    return it, node
