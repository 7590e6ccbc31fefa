"""The autoscaler's decisions (A4-A8): from what nodes report, what the pool lists and what was planned, to effects.

`decide` is the whole of a tick: it returns what to store and what to do, and the caller stores before it does.
"""

from control.core.autoscaler.decide import confirm_launch, decide
from control.core.autoscaler.effects import Effect, Launch, LeaseCordon, PreferVictim, TakeBack, Terminate, TickDecision
from control.core.autoscaler.samples import NodeReport, Samples
from control.core.autoscaler.world import Moment, World, join

__all__ = [
    "LeaseCordon",
    "TickDecision",
    "Effect",
    "Launch",
    "Moment",
    "PreferVictim",
    "NodeReport",
    "Samples",
    "Terminate",
    "TakeBack",
    "World",
    "confirm_launch",
    "decide",
    "join",
]
