"""Kind `any`: no limit; every placeable SFU is as good as the sort says."""

from __future__ import annotations

from router.core.selector.decision import Candidate


def figure(_: Candidate) -> float | None:
    """There is nothing to compare with a limit."""
    return 0.0
