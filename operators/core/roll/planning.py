"""The plan of a new roll: which SFUs go, and which one comes for each."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from operators.core.roll.seen import RolledSfu, RollSeen
from shared.errors import BadSetting, Refused
from shared.records import SfuStatus
from shared.roll_records import RollRecord, RollRouter, RollStep, StepStage

MOST_SURGE = 100
MOST_LABEL = 40
"""Characters of a release in an SFU's name."""
BEFORE_DRAIN = (StepStage.WAITING, StepStage.STARTING, StepStage.WARMING)


@dataclass(frozen=True, kw_only=True, slots=True)
class RollOrder:
    """What an operator asks for."""

    version: str = ""
    """Empty: the label that all SFUs have, and all of them are replaced by new processes."""
    surge: int = 1
    spares: tuple[str, ...] = ()
    """SFUs that are started for the roll only. With them ids are kept: the place of one that has ended is taken by a
    new one of the same id. Without: each replacement has a new id."""
    routers: bool = True
    """Routers are started again, too."""
    warm_up_within_s: float = 120.0


def make_plan(order: RollOrder, seen: RollSeen, *, roll: str, by: str, platform: str, now: float) -> RollRecord:
    """The plan. Raises `BadSetting` for what can't be asked, `Refused` (`nothing-to-roll`) when all is done."""
    if not 1 <= order.surge <= MOST_SURGE:
        raise BadSetting(setting="--surge", detail=f"must be 1 to {MOST_SURGE}")
    if not 0 < order.warm_up_within_s < float("inf"):
        raise BadSetting(setting="--warm-up-within-s", detail="must be more than 0")
    version = order.version or one_version(seen)
    old = sorted(sfu for sfu, each in seen.sfus.items() if _goes(sfu, each, order))
    if not old:
        raise Refused("nothing-to-roll", f"every SFU runs {version!r} already")
    # One that carries the release is the spare of a roll whose plan was lost with Redis.
    if busy := [spare for spare in order.spares if spare in seen.sfus and seen.sfus[spare].version != version]:
        detail = f"{busy[0]} runs already, as release {seen.sfus[busy[0]].version!r}; end it with 'sluice drain' first"
        raise BadSetting(setting="--spare", detail=detail)
    steps = _in_place(old, order.spares) if order.spares else _renamed(old, version, known=seen.sfus)
    known = seen.sfus
    return RollRecord(
        roll=roll,
        version=version,
        by=by,
        platform=platform,
        surge=min(order.surge, len(order.spares)) if order.spares else order.surge,
        warm_up_within_s=order.warm_up_within_s,
        began_at=now,
        without_media=seen.without_media,
        routers=tuple(RollRouter(router=router) for router in sorted(seen.routers)) if order.routers else (),
        steps=tuple(
            RollStep(
                old=gone,
                new=new,
                old_run=known[gone].run if gone in known else 0,
                above=known[new].run - (new in order.spares) if new in known else 0,
            )
            for gone, new in steps
        ),
    )


def one_version(seen: RollSeen) -> str:
    """The label that all SFUs have. Raises `BadSetting` when they have several, or there is none."""
    versions = sorted({each.version for each in seen.sfus.values()})
    if len(versions) != 1:
        which = f"SFUs run {', '.join(map(repr, versions))}" if versions else "no SFU runs"
        raise BadSetting(setting="--version", detail=f"{which}; say which release to roll to")
    return versions[0]


def rolled_next(plan: RollRecord) -> set[str]:
    """The SFUs that placement is to leave for others while it can: all whose turn is still to come.

    A spare goes last of all. Until the first SFU that stays is up, the spare is where players can go.
    """
    coming = {step.old for step in plan.steps if step.stage in BEFORE_DRAIN}
    up = {step.new for step in plan.steps if step.stage not in BEFORE_DRAIN}
    passing = spares_of(plan)
    return coming if up - passing else coming - passing


def spares_of(plan: RollRecord) -> set[str]:
    """SFUs that one step starts and a later one ends."""
    started: set[str] = set()
    passing: set[str] = set()
    for step in plan.steps:
        passing |= {step.old} & started
        started.add(step.new)
    return passing


def _goes(sfu: str, each: RolledSfu, order: RollOrder) -> bool:
    if each.status is SfuStatus.TERMINATING or each.sigterm or each.silent:
        return False  # it goes without us, or is gone
    return not order.version or each.version != order.version


def _in_place(old: Sequence[str], spares: Sequence[str]) -> list[tuple[str, str]]:
    """`(goes, comes)`: spares come first; each place that is free is where the next one comes; spares go last."""
    return list(zip([*old, *spares], [*spares, *old], strict=True))


def _renamed(old: Sequence[str], version: str, *, known: Mapping[str, RolledSfu]) -> list[tuple[str, str]]:
    """Each replacement is called like the one that goes, with the new release, and a number where that is taken."""
    taken = set(known)
    steps: list[tuple[str, str]] = []
    for sfu in old:
        stem = re.sub(rf"-{re.escape(_label(known[sfu].version))}(\.\d+)?$", "", sfu)
        name = f"{stem}-{_label(version)}"
        names = (name, *(f"{name}.{number}" for number in range(2, len(taken) + 3)))
        new = next(each for each in names if each not in taken)
        taken.add(new)
        steps.append((sfu, new))
    return steps


def _label(version: str) -> str:
    """A release as part of a name that containers, units and files can have."""
    return re.sub(r"[^A-Za-z0-9_.]+", "-", version).strip("-.")[:MOST_LABEL] or "next"
