"""Choosing among placeable SFUs (P1): a kind filters, a sort orders, and a filter that leaves none is ignored."""
