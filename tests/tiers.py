"""Tests by cost: which tier a test belongs to, and which of them run side by side.

| tier | what it may use | run by |
|---|---|---|
| `unit` | this process; at most a Redis of its own and short-lived children | `make test-quick`, `make test` |
| `process` | fleets of real processes, real media; also what waits for seconds | `make test` |
| `browser` | a real Chromium in front of such a fleet | `make test` |
| `slow` | anything, for minutes; on top of one of the above | `make test-slow` |

A test is `unit` unless its folder or file stands in `TIERS` or it has a mark of its own.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TIERS = {
    "tests/integration/": "process",
    "tests/interop/": "process",
    "tests/bench/relay/test_relay.py": "process",
    "tests/browser/": "browser",
}
SLOW = (
    "tests/bench/relay/test_relay.py",
    "tests/browser/test_no_media.py",
    "tests/integration/test_bad_moments.py",
    "tests/integration/test_rehearse_chaos.py",
    "tests/integration/test_rehearse_scale.py",
    "tests/mutants/",
)
"""Slow as a whole; single tests are marked in their files."""
LANES = {
    "tests/browser/": "browsers",
    "tests/interop/": "browsers",
    "tests/integration/test_controllers.py": "waits",
    "tests/integration/test_no_media.py": "waits",
    "tests/integration/test_signalling_away.py": "waits",
    "tests/integration/test_sfu_drain.py": "browsers",
    "tests/integration/": "fleets",
}
"""Tests of one lane run one after another on one worker: they share fleets, and three at once would want three cores.
Those that wait for time-outs most of the time run next to them. The first that fits counts."""


def tier_of(path: str) -> str:
    """The tier of what stands in this file, relative to the root."""
    return next((tier for start, tier in TIERS.items() if path.startswith(start)), "unit")


def lane_of(path: str) -> str:
    """The lane of this file; empty for one that any worker may take."""
    return next((lane for start, lane in LANES.items() if path.startswith(start)), "")


def add_marks(items: list[pytest.Item]) -> None:
    """Give each test its tier, and put those in lanes first: they take longest and must begin at once."""
    for item in items:
        path = _path(item.nodeid)
        if not any(item.get_closest_marker(tier) for tier in ("process", "browser")):
            item.add_marker(tier_of(path))
        if path.startswith(SLOW):
            item.add_marker("slow")
    items.sort(key=lambda item: lane_of(_path(item.nodeid)) == "")


class Lanes(LoadScopeScheduling):  # type: ignore[misc]
    """Hands whole lanes, and else whole files, to workers, in the order of the collection."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        path = _path(nodeid)
        return lane_of(path) or path


def _path(nodeid: str) -> str:
    return nodeid.partition("::")[0]
