"""Kind `cpuload`: leaves out SFUs whose instantaneous CPU load is above `cpu_load_limit`."""

from __future__ import annotations

from router.core.selector.decision import Candidate


def figure(candidate: Candidate) -> float | None:
    """CPU used now, as a share of the node's cores; None: don't know."""
    return candidate.parts.cpu
