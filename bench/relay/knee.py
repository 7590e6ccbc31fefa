"""Looks for the largest size that a server still holds: raise until an objective breaks, then halve the gap."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from bench.relay.figures import RelayFigures

MAX_LOSS = 0.001
MAX_P99_MS = 3.0
"""What an SFU promises: no player notices either."""

GROWTH = 1.5
CLOSE_ENOUGH = 0.05
"""Share of the size: the gap between the last good and the first broken one."""

FULL_CORE = 0.95
GENERATOR_FULL = 0.9
OTHERS_MATTER = 0.2


class Objective(StrEnum):
    """What a server must hold."""

    LOSS = "loss"
    """At most 0.1 % of the packets."""
    DELAY = "delay"
    """At most 3 ms for 99 % of the packets."""


class LimitedBy(StrEnum):
    """Why it did not."""

    GENERATOR = "generator"
    """The generator's core is full: the server may hold more."""
    OTHERS = "others"
    """Other programs took a good part of the cores: try again when they are quiet."""
    SERVER_CPU = "server-cpu"
    """The server's core is full."""
    BURST = "burst"
    """There is CPU left, but one burst to everybody takes longer than the delay allows."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Broken:
    """A size that is too much."""

    objectives: tuple[Objective, ...]
    """In the order of the enum; the first is what broke first."""
    limit: LimitedBy


@dataclass(frozen=True, kw_only=True, slots=True)
class KneeStep:
    """A size that was tried."""

    size: int
    figures: RelayFigures
    broken: Broken | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Knee:
    """What was found."""

    size: int
    """The largest good one; 0: none was."""
    steps: tuple[KneeStep, ...]
    """The steps by size."""
    broken: Broken | None
    """What the smallest broken size above it broke; None: no size that was tried broke anything."""


def judge(figures: RelayFigures) -> Broken | None:
    """What a run broke."""
    objectives = []
    if figures.loss > MAX_LOSS:
        objectives.append(Objective.LOSS)
    if figures.delay_ms_p99 > MAX_P99_MS:
        objectives.append(Objective.DELAY)
    return Broken(objectives=tuple(objectives), limit=_limit(figures)) if objectives else None


def _limit(figures: RelayFigures) -> LimitedBy:
    if figures.generator_core_share > GENERATOR_FULL or figures.generator_drops:
        return LimitedBy.GENERATOR
    if figures.others_core_share > OTHERS_MATTER:
        return LimitedBy.OTHERS
    if figures.server_core_share > FULL_CORE:
        return LimitedBy.SERVER_CPU
    return LimitedBy.BURST


def next_size(tried: Mapping[int, bool], *, start: int, most: int) -> int | None:
    """The size to try after these (size -> was it good); None: the knee is known well enough, or `most` is good."""
    if not tried:
        return min(start, most)
    bad = min((size for size, good in tried.items() if not good), default=None)
    good = max((size for size, held in tried.items() if held and (bad is None or size < bad)), default=0)
    if bad is None:
        return None if good >= most else min(most, math.ceil(good * GROWTH))
    if bad - good <= max(1.0, CLOSE_ENOUGH * good):
        return None
    return (good + bad) // 2


async def find_knee(
    probe: Callable[[int], Awaitable[RelayFigures]], *, start: int, most: int, on_step: Callable[[KneeStep], None]
) -> Knee:
    """Try sizes from `start` to `most`. A broken one must break twice: other programs may disturb a run."""
    steps: dict[int, KneeStep] = {}
    while (
        size := next_size({at: step.broken is None for at, step in steps.items()}, start=start, most=most)
    ) is not None:
        figures = await probe(size)
        if judge(figures) is not None:
            figures = await probe(size)
        steps[size] = KneeStep(size=size, figures=figures, broken=judge(figures))
        on_step(steps[size])
    return knee_of(steps)


def knee_of(steps: Mapping[int, KneeStep]) -> Knee:
    """What was found by these steps."""
    broken = min((step for step in steps.values() if step.broken is not None), key=lambda step: step.size, default=None)
    good = [size for size, step in steps.items() if step.broken is None and (broken is None or size < broken.size)]
    return Knee(
        size=max(good, default=0),
        steps=tuple(sorted(steps.values(), key=lambda step: step.size)),
        broken=broken.broken if broken else None,
    )
