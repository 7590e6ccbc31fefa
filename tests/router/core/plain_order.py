"""The order of SFUs in its plainest form: all of them sorted by the one key. The kept order must be the same."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import replace

from router.core.selector.decision import Standing
from router.core.selector.ladder import FAILING, LIMIT_UNKNOWN, OVER_LIMIT, Preference
from router.core.selector.node_selector import NodeSelector


def plain_order(
    selector: NodeSelector, standings: Iterable[Standing], *, preference: Preference, rng: random.Random
) -> tuple[list[Standing], bool]:
    """All of them, best first; true: for the first ones the limit was ignored."""
    groups: dict[int, list[Standing]] = {0: [], FAILING: []}
    for each in sorted(standings, key=lambda each: each.sfu):
        groups[each.rank & FAILING].append(selector.behind(each, preference.missed(each.state)))
    ignored = {}
    for connections, group in groups.items():
        limits = {each.rank & (LIMIT_UNKNOWN | OVER_LIMIT) for each in group}
        ignored[connections] = OVER_LIMIT in limits and 0 not in limits
        if ignored[connections]:
            groups[connections] = [replace(each, rank=each.rank & ~OVER_LIMIT) for each in group]
    order = [each for group in groups.values() for each in group]
    rng.shuffle(order)
    order.sort(key=lambda each: each.order)
    return order, ignored[0 if groups[0] else FAILING]
