"""What a step of `sluice capacity` measured, and whether the SFU held it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from shared.load import CPU_GUARD

MAX_P99_MS = 3.0
"""The band of the forwarding delay (A2)."""

MAX_LOSS = 0.001
"""Share of the packets that may be lost."""

GENERATOR_FULL = 0.9
"""CPU of the generator's core from which it is at its limit."""

GENERATOR_LATE = 0.02
"""Share of frames that it sent over 2 ms late: from here on they come to the SFU in lumps that no network makes."""

OTHERS_MATTER = 0.2
"""Of one core: what other programs take before a figure is no longer the SFU's alone."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StepFigures:
    """One run at one size; of one in which the SFU fell silent nothing is known but the size."""

    streams: int
    """Forwarded outbound streams."""
    players: int
    packets_per_s: float = math.nan
    """Forwarded."""
    egress_mbps: float = math.nan
    """What the SFU sent, by its own count of bytes."""
    loss: float = math.nan
    """Share of what subscribers should have got and did not."""
    delay_ms_p50: float = math.nan
    delay_ms_p99: float = math.nan
    """Time from the kernel's receive time-stamp to the return of the send, by the SFU's own histogram."""
    sfu_cpu: float = math.nan
    """CPU of the whole SFU process, signalling included, as a share of its core."""
    generator_cpu: float = math.nan
    """CPU of the generator, as a share of its core."""
    others_cpu: float = math.nan
    """What other programs took on these cores, of one core."""
    generator_drops: int = 0
    """Packets that the generator had no room for: lost, and not by the SFU."""
    late_frames: float = math.nan
    """Share of the frames that the generator sent over 2 ms late."""
    silent: str = ""
    """What the SFU did not do any more; empty: it answered."""


class EndReason(StrEnum):
    """Why a search ended."""

    SILENT = "silent"
    """The SFU was too busy to answer, or to let players in."""
    LOSS = "loss"
    """More than 0.1 % of the packets did not arrive."""
    DELAY = "delay"
    """One packet in a hundred took longer than 3 ms."""
    CPU = "cpu"
    """The SFU used more of its core than the guard allows."""
    GENERATOR = "generator"
    """Delay or loss broke while the generator was at its own limit: the SFU may hold more."""
    MOST = "most"
    """Nothing broke up to the largest size that was to be tried: the SFU holds more."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Verdict:
    """Whether a step was held, and why not."""

    reason: EndReason | None = None
    """None: held."""
    detail: str = ""
    """The figure that broke and its bound, for people."""

    @property
    def held(self) -> bool:
        return self.reason is None


HELD = Verdict()
_Rule = Callable[[StepFigures], Verdict]


def judge(figures: StepFigures) -> Verdict:
    """The first rule that does not hold decides."""
    return next((verdict for rule in _RULES if not (verdict := rule(figures)).held), HELD)


def generator_limit(figures: StepFigures) -> str:
    """How the generator is at its limit; empty: it is not."""
    if figures.generator_drops:
        return f"the generator lost {figures.generator_drops:,} packets itself"
    if figures.generator_cpu > GENERATOR_FULL:
        return f"the generator used {figures.generator_cpu:.0%} of its core"
    if figures.late_frames > GENERATOR_LATE:
        return f"the generator sent {figures.late_frames:.1%} of the frames late"
    return ""


def disturbed(figures: StepFigures) -> bool:
    """Whether others used the cores, so that the SFU alone might have held it."""
    return figures.others_cpu > OTHERS_MATTER


def _answers(figures: StepFigures) -> Verdict:
    return Verdict(reason=EndReason.SILENT, detail=figures.silent) if figures.silent else HELD


def _cpu(figures: StepFigures) -> Verdict:
    """What the SFU itself spends is its own, whatever state the generator is in: so it comes first."""
    if figures.sfu_cpu <= CPU_GUARD:
        return HELD
    return Verdict(reason=EndReason.CPU, detail=f"{figures.sfu_cpu:.0%} of its core, over {CPU_GUARD:.0%}")


def _generator(figures: StepFigures) -> Verdict:
    """Delay and loss count only while the load is what it claims to be."""
    limit = generator_limit(figures)
    broken = next((verdict for rule in (_delay, _loss) if not (verdict := rule(figures)).held), None)
    if not limit or broken is None:
        return HELD
    return Verdict(reason=EndReason.GENERATOR, detail=f"{broken.detail}, but {limit}")


def _delay(figures: StepFigures) -> Verdict:
    if figures.delay_ms_p99 <= MAX_P99_MS:
        return HELD
    return Verdict(reason=EndReason.DELAY, detail=f"p99 delay {figures.delay_ms_p99:.2f} ms, over {MAX_P99_MS:g} ms")


def _loss(figures: StepFigures) -> Verdict:
    if figures.loss <= MAX_LOSS:
        return HELD
    return Verdict(reason=EndReason.LOSS, detail=f"{figures.loss:.3%} lost, over {MAX_LOSS:.1%}")


_RULES: Sequence[_Rule] = (_answers, _cpu, _generator, _delay, _loss)
