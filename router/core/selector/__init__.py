"""Choosing among placeable SFUs (P1): a kind filters, a sort orders, and a filter that leaves nobody is ignored."""

from router.core.selector.decision import Candidate, Decision, Ordering, Rejected
from router.core.selector.node_selector import Kind, NodeSelector, SortBy

__all__ = ["Candidate", "Decision", "Kind", "NodeSelector", "Ordering", "Rejected", "SortBy"]
