"""Choosing among placeable SFUs (P1): a kind filters, a sort orders, and a filter that leaves none is ignored."""

from router.core.selector.decision import PlacementDecision, Rejected, Standing
from router.core.selector.ladder import NO_PREFERENCE, Preference
from router.core.selector.node_selector import NodeSelector, SelectorKind, SortBy

__all__ = [
    "NO_PREFERENCE",
    "NodeSelector",
    "PlacementDecision",
    "Preference",
    "Rejected",
    "SelectorKind",
    "SortBy",
    "Standing",
]
