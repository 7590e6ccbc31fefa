"""A believable fleet without media, to look at the fleet page with: SFUs whose load moves, that drain and fall silent.

Pure: the caller gives the time, the dice and the operators' commands, and writes the states where it likes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from dataclasses import dataclass

from rehearse.core.demo.sfu import SWING_S, DemoSfu, Profile
from router.core.orders import message_of
from sfu.core.drain.events import SigtermReceived
from sfu.core.drain.orders import event_of
from shared.records import SfuCommand, SfuState

CELLS = ("eu-central", "eu-west", "us-east", "ap-south")
VERSIONS = ("v1.8.2", "v1.9.0")
"""A rollout from the first to the second is under way."""
SILENT_S = (7.0, 12.0)
"""Longer than a router waits before it calls an SFU stale, shorter than it waits to call it lost."""
NODES_PER_DRAIN, NODES_PER_EARLY_DRAIN, NODES_PER_SILENCE = 25, 100, 110
"""How many SFUs there are for each that drains, for each that has drained for long when the demo begins, and for each
that is silent."""
RISING = 0.4
"""Where in the load's tide the demo begins: soon it is hot enough to add nodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """What one step came to."""

    states: list[SfuState]
    """Reports of all that are not silent."""
    gone: list[DemoSfu]
    """SFUs that have ended, with their drain reports."""


class DemoFleet:
    """`step` it once a second."""

    def __init__(self, *, sfus: int, rng: random.Random, now: float, epoch: int) -> None:
        """`epoch`: incarnation of the first SFUs; grows with each start of the demo."""
        self._rng = rng
        self._epoch = epoch
        self._tide = RISING - 2 * math.pi * now / SWING_S
        self._wanted = sfus
        self.rolling = True
        """The rollout goes on; off, no further SFU is drained for it."""
        self._number = 0
        self.sfus: dict[str, DemoSfu] = {}
        for _ in range(sfus):
            self._start(now=now - rng.uniform(600, 90_000), version=rng.choices(VERSIONS, weights=(7, 3))[0])
        for number, sfu in enumerate(rng.sample(list(self.sfus.values()), sfus // NODES_PER_EARLY_DRAIN)):
            sfu.happen(SigtermReceived(), now=now - rng.uniform(300, 900) - (1000 if number % 2 else 0))

    def step(self, *, now: float, commands: Collection[SfuCommand] = (), occupied: Collection[str] = ()) -> DemoStep:
        """A second passes. `occupied`: SFUs with real players on them; the rollout takes those first, so that there is
        something to look at."""
        for sfu in self.sfus.values():
            sfu.kept = sfu.sfu in occupied
        for command in commands:
            if (known := self.sfus.get(command.sfu)) is not None:
                known.happen(event_of(message_of(command)), now=now)  # a repeated one changes nothing
        self._roll_out(now=now, occupied=occupied)
        self._fall_silent(now=now)
        for sfu in self.sfus.values():
            sfu.step(now=now)
        gone = [sfu for sfu in self.sfus.values() if sfu.ended]
        for sfu in gone:
            del self.sfus[sfu.sfu]
        return DemoStep(states=[sfu.state(now=now) for sfu in self.sfus.values() if sfu.silent_until <= now], gone=gone)

    def launch(self, *, now: float) -> DemoSfu:
        """One more SFU, of the new version, not warmed up yet."""
        self._wanted += 1
        return self._replacement(now=now)

    def end(self, sfu: str, *, now: float) -> None:
        """One SFU fewer: it gets SIGTERM, and ends once it is empty."""
        if (known := self.sfus.get(sfu)) is not None and not known.ending:
            known.ending = True
            self._wanted -= 1
            known.happen(SigtermReceived(), now=now)

    # --- inside ---

    def _start(self, *, now: float, version: str) -> DemoSfu:
        self._number += 1
        sfu = DemoSfu(
            sfu=f"sfu-{self._number:03d}",
            profile=self._rng.choices(list(Profile), weights=(6, 3, 1))[0],
            cell=self._rng.choices(CELLS, weights=(4, 3, 2, 1))[0],
            version=version,
            base=min(0.95, max(0.12, self._rng.gauss(0.48, 0.15))),
            phase=self._tide + self._rng.uniform(0, 0.8),
            began=now,
            incarnation=self._epoch,
            rng=self._rng,
        )
        self.sfus[sfu.sfu] = sfu
        return sfu

    def _replacement(self, *, now: float) -> DemoSfu:
        sfu = self._start(now=now, version=VERSIONS[1])
        sfu.warming, sfu.base = True, self._rng.uniform(0.15, 0.4)
        return sfu

    def _roll_out(self, *, now: float, occupied: Collection[str]) -> None:
        draining = sum(1 for sfu in self.sfus.values() if sfu.draining)
        old = [s for s in self.sfus.values() if s.version == VERSIONS[0] and not s.draining and not s.warming]
        if self.rolling and old and draining < self._wanted // NODES_PER_DRAIN:
            min(old, key=lambda sfu: (sfu.sfu not in occupied, sfu.sfu)).happen(SigtermReceived(), now=now)
        if len(self.sfus) < self._wanted:
            self._replacement(now=now)

    def _fall_silent(self, *, now: float) -> None:
        silent = sum(1 for sfu in self.sfus.values() if sfu.silent_until > now)
        awake = [s for s in self.sfus.values() if not s.draining and s.silent_until < now - 30 and not s.warming]
        if awake and silent < self._wanted // NODES_PER_SILENCE:
            self._rng.choice(awake).silent_until = now + self._rng.uniform(*SILENT_S)
