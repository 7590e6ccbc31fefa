"""The plan of a chaos run: rounds of events that overlap, the same for the same seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from rehearse.core.chaos.events import EVERYTHING, TRAITS, Aim, ChaosEvent, ChaosKind

MOST_AT_ONCE = 3
"""Events of a round: pairs and triples are where the rules of one fault meet those of another."""
WITHIN_S = 5.0
"""The events of a round begin within this time, so that they overlap."""
ALL_LINKS_SHARE = 0.3
"""Of the events about links, those about all links of the fleet."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ChaosPlan:
    """What may be troubled. Names stay the same over restarts."""

    seed: int
    routers: tuple[str, ...]
    sfus: tuple[str, ...]
    longest_s: float = 40.0
    """No event lasts longer."""

    def rounds(self, first: int = 1) -> Iterator[list[ChaosEvent]]:
        """Round after round, without end, from round number `first`. A round depends on its number and the seed only.

        In no round are all routers or all SFUs unavailable: one of each is healthy at every moment.
        """
        number = first
        while True:
            yield self.round(number)
            number += 1

    def round(self, number: int) -> list[ChaosEvent]:
        """The events of one round, in the order in which they begin."""
        rng = random.Random(f"{self.seed}/{number}")
        chosen: list[tuple[ChaosKind, str]] = []
        wanted = rng.randint(1, MOST_AT_ONCE)
        for _ in range(wanted):
            kind = self._kind(rng)
            target = self._target(kind, chosen, rng)
            if kind is ChaosKind.STALL_ALL and chosen:
                continue  # what else would be found then is known: a stall is judged separately
            if target is not None:
                chosen.append((kind, target))
            if kind is ChaosKind.STALL_ALL:
                break
        timed = sorted((rng.uniform(0.0, WITHIN_S), self._lasts(kind, rng), kind, target) for kind, target in chosen)
        return [
            ChaosEvent(
                number=(number - 1) * MOST_AT_ONCE + turn,
                round=number,
                kind=kind,
                target=target,
                offset_s=round(offset, 2),
                lasts_s=round(lasts, 2),
            )
            for turn, (offset, lasts, kind, target) in enumerate(timed, start=1)
        ]

    def _kind(self, rng: random.Random) -> ChaosKind:
        return rng.choices(list(TRAITS), weights=[traits.weight for traits in TRAITS.values()])[0]

    def _target(self, kind: ChaosKind, chosen: list[tuple[ChaosKind, str]], rng: random.Random) -> str | None:
        """Something that no event of the round is about yet; None when that would leave nothing healthy."""
        traits = TRAITS[kind]
        taken = {target for _, target in chosen}
        if traits.target is Aim.ALL:
            return EVERYTHING
        if traits.target is Aim.REDIS:
            return None if "redis" in taken else "redis"
        names = self.routers if traits.target is Aim.ROUTER else self.sfus
        if kind in (ChaosKind.CUT_LINKS, ChaosKind.FREEZE_LINKS) and rng.random() < ALL_LINKS_SHARE:
            return EVERYTHING if not taken & {*self.sfus, EVERYTHING} else None
        if EVERYTHING in taken and traits.target is Aim.SFU:
            return None
        free = [name for name in names if name not in taken]
        return rng.choice(free) if len(free) > 1 else None

    def _lasts(self, kind: ChaosKind, rng: random.Random) -> float:
        """Short ones are as likely as long ones: 1 to 2 s as often as 20 to 40 s."""
        traits = TRAITS[kind]
        most = max(traits.least_s, min(traits.most_s, self.longest_s))
        return float(traits.least_s * (most / traits.least_s) ** rng.random())
