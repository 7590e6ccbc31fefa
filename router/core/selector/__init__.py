"""Choosing among placeable SFUs (P1): a kind filters, a sort orders, and a filter that leaves nobody is ignored."""

from router.core.selector.decision import (
    NO_PREFERENCE,
    Candidate,
    Decision,
    Ordering,
    Preference,
    Rejected,
    Scored,
)
from router.core.selector.node_selector import Kind, NodeSelector, SortBy

__all__ = [
    "NO_PREFERENCE",
    "Candidate",
    "Decision",
    "Kind",
    "NodeSelector",
    "Ordering",
    "Preference",
    "Rejected",
    "Scored",
    "SortBy",
]
