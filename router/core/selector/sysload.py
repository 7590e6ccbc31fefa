"""Kind `sysload`: leaves out SFUs whose one-minute load average per core is above `sysload_limit`."""

from __future__ import annotations

from router.core.selector.decision import Candidate


def figure(candidate: Candidate) -> float | None:
    """One-minute load average per core; None: don't know."""
    return candidate.parts.sysload
