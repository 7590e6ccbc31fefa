"""Looks for the size at which an SFU breaks, and makes of it the ceilings of a node (A2)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bench.capacity.figures import EndReason, StepFigures, Verdict, disturbed, judge
from shared.errors import SluiceError

HEADROOM = 0.8
"""The ceiling, as a share of where the SFU broke (A2)."""


class NothingHeld(SluiceError):
    """The smallest size was too much already."""

    code = "nothing-held"

    streams: int
    detail: str

    def sentence(self) -> str:
        return (
            f"this machine does not hold {self.streams} streams here and now ({self.detail}): "
            "end what else uses it, run it under `chrt -r 5`, or begin lower with --start"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class SizePlan:
    """Which sizes are tried [streams]."""

    start: int
    step: int
    most: int
    quick: bool = False
    """Double until it breaks, then halve the gap: the same answer to a step, unless a size breaks and a larger one
    does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CapacityStep:
    """A size that was tried."""

    asked: int
    """Streams that it was to be; `figures.streams` is what it was, up to a whole player."""
    figures: StepFigures
    verdict: Verdict
    first: Verdict | None = None
    """What the first of two tries came to, where it was repeated."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """What a search came to."""

    steps: tuple[CapacityStep, ...]
    """The steps by size."""
    held: CapacityStep
    """The largest that was held below the smallest that was not."""
    broke: CapacityStep | None
    """The smallest that was not held; None: all were."""
    reason: EndReason
    stream_ceiling: int

    @property
    def certain(self) -> bool:
        """The SFU broke. If not, the ceiling is a lower bound: of the highest load that was held."""
        return self.reason not in (EndReason.GENERATOR, EndReason.MOST)

    @property
    def disturbed(self) -> bool:
        """Others used the cores where it broke: on a quiet machine it may hold more."""
        return self.broke is not None and disturbed(self.broke.figures)


def next_size(tried: Mapping[int, bool], plan: SizePlan) -> int | None:
    """The size to try after these (size -> was it held); None: there is nothing more to know."""
    if not tried:
        return plan.start
    bad = min((size for size, held in tried.items() if not held), default=None)
    good = max((size for size, held in tried.items() if held and (bad is None or size < bad)), default=0)
    if bad is None:
        beyond = 2 * good if plan.quick else good + plan.step
        return None if good >= plan.most else min(plan.most, beyond)
    if not plan.quick or good == 0 or bad - good <= plan.step:
        return None
    return good + plan.step * max(1, math.floor((bad - good) / 2 / plan.step))


async def search(
    probe: Callable[[int], Awaitable[StepFigures]], plan: SizePlan, *, on_step: Callable[[CapacityStep], None]
) -> tuple[CapacityStep, ...]:
    """Try sizes; one that is not held is tried again before it counts: other programs may disturb one try."""
    steps: dict[int, CapacityStep] = {}
    while (size := next_size({asked: step.verdict.held for asked, step in steps.items()}, plan)) is not None:
        figures = await probe(size)
        verdict, first = judge(figures), None
        if not verdict.held:
            on_step(CapacityStep(asked=size, figures=figures, verdict=verdict))
            first, figures = verdict, await probe(size)
            verdict = judge(figures)
        steps[size] = CapacityStep(asked=size, figures=figures, verdict=verdict, first=first)
        on_step(steps[size])
    return tuple(steps[size] for size in sorted(steps))


def conclude(steps: Sequence[CapacityStep]) -> Finding:
    """The ceiling: 80 % of where the SFU broke, and never more than it was seen to hold. Where it did not break, 80 %
    of the highest load that was held. Raises `NothingHeld`."""
    broke = next((step for step in steps if not step.verdict.held), None)
    good = [step for step in steps if step.verdict.held and (broke is None or step.asked < broke.asked)]
    if not good:
        raise NothingHeld(streams=steps[0].asked, detail=steps[0].verdict.detail)
    held = good[-1]
    reason = EndReason.MOST if broke is None or broke.verdict.reason is None else broke.verdict.reason
    base = held if broke is None or reason is EndReason.GENERATOR else broke
    ceiling = min(math.floor(HEADROOM * base.figures.streams), held.figures.streams)
    return Finding(steps=tuple(steps), held=held, broke=broke, reason=reason, stream_ceiling=max(1, ceiling))
