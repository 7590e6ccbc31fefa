"""The autoscaler's decisions (A4-A8): from what nodes report, what the pool lists and what was planned, to effects.

`decide` is the whole of a tick: it returns what to store and what to do, and the caller stores before it does.
"""
