"""The autoscaler's decisions (A4-A8): from what nodes report, what the pool lists and what was planned, to effects.

`decide` is the whole of a tick: it returns what to store and what to do, and the caller stores before it does.
"""

from control.core.autoscaler.decide import confirm_launch, decide
from control.core.autoscaler.effects import Cordon, Decision, Effect, Launch, PreferVictim, Terminate, Uncordon
from control.core.autoscaler.samples import Report, Samples
from control.core.autoscaler.world import Moment, World, join

__all__ = [
    "Cordon",
    "Decision",
    "Effect",
    "Launch",
    "Moment",
    "PreferVictim",
    "Report",
    "Samples",
    "Terminate",
    "Uncordon",
    "World",
    "confirm_launch",
    "decide",
    "join",
]
