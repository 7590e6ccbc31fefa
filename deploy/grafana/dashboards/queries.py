"""What the dashboards share: bounds with their colours, and the usual forms of queries."""

from __future__ import annotations

from model import AMBER, RED

HIGH, FULL = 0.65, 0.85
"""Where a node is added by default, and where one is nearly full."""
SHARE = ((HIGH, AMBER), (FULL, RED))
FAULT = ((1, RED),)
GAP = ((67, AMBER), (200, RED))
"""Two frames at 30 a second, and what people notice."""


def quantile(share: float, metric: str, *, by: str = "", over: str = "$__rate_interval", where: str = "") -> str:
    """A quantile of a histogram."""
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({share}, sum by ({labels}) (rate({metric}_bucket{where}[{over}])))"


def rate(metric: str, *, by: str = "", where: str = "") -> str:
    """A counter a second, over all instances."""
    grouping = f" by ({by})" if by else ""
    return f"sum{grouping} (rate({metric}{where}[$__rate_interval]))"
