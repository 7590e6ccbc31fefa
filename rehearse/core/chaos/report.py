"""A chaos run's result, as `--json` prints it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rehearse.core.chaos.oracles import BrokenPrinciple, gap_unaffected
from rehearse.core.chaos.seen import ChaosSeen, Happened


class ChaosViolation(msgspec.Struct, frozen=True, kw_only=True):
    """A principle that was broken, and how to see it again."""

    principle: str
    sentence: str
    round: int
    events: list[str]
    """The events that may have led to it."""
    seed: int
    again: str
    """The command that repeats the round."""
    log: str
    """The file to read first."""
    machine_late_ms: float
    """How long this machine kept processes waiting at that time at worst: in the round, where no moment is known."""


class ChaosDone(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was carried out."""

    number: int
    round: int
    kind: str
    target: str
    at_s: float
    """Since the run began."""
    lasted_s: float | None
    touched: int
    """Bots that were allowed to hear it."""


class ChaosReport(msgspec.Struct, frozen=True, kw_only=True):
    """All of it. The first five keys are what scripts rely on."""

    violations: list[ChaosViolation]
    events: list[ChaosDone]
    audio_gap_ms_max_unaffected: float
    """The longest silence that a bot heard while no event touched its media."""
    seed: int
    minutes: float
    """For how long it ran."""
    passed: bool
    interrupted: bool
    """It was ended by a signal; the round that went on then is not judged."""
    rounds: int
    audio_gap_ms_bound: float
    recovered_s_max: float | None
    """The longest that it took until all bots heard their whole room again after a round's last event."""
    machine_stall_ms_max: float
    bots: int
    rooms: int
    sfus: int
    routers: int
    clocks: dict[str, float]
    """Seconds by which programs' clocks were wrong."""
    redis_server: str
    logs: str
    """The folder with the logs; kept when something was broken."""


def violation(
    broken: BrokenPrinciple, *, number: int, seed: int, logs: str, flags: str, late_s: float = 0.0
) -> ChaosViolation:
    """With all that is needed to see it again. `late_s`: the machine's worst lateness in the round."""
    log = broken.log if broken.log.endswith(".log") else f"{broken.log or 'chaos'}.log"
    return ChaosViolation(
        principle=broken.principle,
        sentence=broken.sentence,
        round=number,
        events=[str(each.event) for each in broken.happened],
        seed=seed,
        again=f"sluice rehearse chaos --seed {seed} --first-round {number}{flags}",
        log=f"{logs}/{log}",
        machine_late_ms=round(1000 * (broken.late_s or late_s), 1),
    )


def done(happened: Happened, *, began: float) -> ChaosDone:
    """The event as the report has it."""
    event = happened.event
    return ChaosDone(
        number=event.number,
        round=event.round,
        kind=event.kind.value,
        target=event.target,
        at_s=round(happened.began - began, 2),
        lasted_s=None if happened.ended is None else round(happened.ended - happened.began, 2),
        touched=len(happened.touched),
    )


def worst_gap(rounds: Sequence[ChaosSeen]) -> float:
    """The longest silence that no event excuses, over all rounds [ms]."""
    return round(max((gap_unaffected(seen) for seen in rounds), default=0.0), 1)
