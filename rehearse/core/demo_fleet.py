"""A believable fleet without media, to look at the fleet page with: SFUs whose load moves, that drain and fall silent.

Pure: the caller gives the time, the dice and the operators' commands, and writes the states where it likes.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection
from dataclasses import dataclass, field
from enum import StrEnum

import msgspec

from shared.records import (
    Capacities,
    CommandVerb,
    Drain,
    DrainCause,
    DrainReport,
    LoadParts,
    Milestones,
    SfuCommand,
    SfuState,
    SfuStatus,
)

CELLS = ("eu-central", "eu-west", "us-east", "ap-south")
VERSIONS = ("v1.8.2", "v1.9.0")
"""A rollout from the first to the second is under way."""
DRAIN_MAX_S, GRACE_S = 1800.0, 3600.0
WARM_AFTER_S = 12.0
ENDING_S = 3.0
SILENT_S = (7.0, 12.0)
"""Longer than a router waits before it calls an SFU stale, shorter than it waits to call it lost."""
MOVING_SHARE, MOVED_AFTER_S, CONVERSATION_S = 0.75, 40.0, 600.0
"""Of a draining SFU's players, three quarters move within a minute; the rest finish their conversations."""
NODES_PER_DRAIN, NODES_PER_EARLY_DRAIN, NODES_PER_SILENCE = 25, 100, 110
"""How many SFUs there are for each that drains, for each that has drained for long when the demo begins, and for each
that is silent."""
PLAYERS_PER_STREAM = 0.35
SWING_S, SWING, RISING = 600.0, 0.22, 0.4
"""Period and height of the load's tide, and where in it the demo begins: soon it is hot enough to add nodes."""


class Profile(StrEnum):
    """What kind of calls an SFU carries, and so which part of its load binds."""

    VIDEO = "video"
    AUDIO = "audio"
    BUSY_NEIGHBOUR = "busy-neighbour"


SHARES = {
    Profile.VIDEO: (1.0, 0.55, 0.62),
    Profile.AUDIO: (0.34, 1.0, 0.71),
    Profile.BUSY_NEIGHBOUR: (0.47, 0.5, 1.0),
}
"""Egress, streams and CPU, as shares of the fullest of them."""


@dataclass(slots=True, kw_only=True)
class DemoSfu:
    """One SFU; times are the caller's seconds."""

    sfu: str
    cell: str
    version: str
    profile: Profile
    base: float
    phase: float
    began: float
    incarnation: int
    revision: int = 0
    noise: float = 0.0
    warming: bool = False
    silent_until: float = 0.0
    status: SfuStatus = SfuStatus.ONLINE
    drain: Drain | None = None
    drain_began: float = 0.0
    lease_until: float | None = None
    """A controller's cordon lapses then, unless it is renewed."""
    ending_at: float = math.inf
    at_cordon: int = 0
    seen: set[str] = field(default_factory=set)
    """Commands it has obeyed."""

    def fullest(self, *, now: float) -> float:
        """Share of the ceiling of its binding part."""
        tide = SWING * math.sin(2 * math.pi * now / SWING_S + self.phase)
        ramp = min(1.0, (now - self.began) / 60.0) if self.warming else 1.0
        return max(0.01, min(1.08, self.base + tide + self.noise)) * ramp * self.left(now=now)

    def left(self, *, now: float) -> float:
        """Share of its players that are still here."""
        if self.drain is None or not (self.drain.exit_when_empty or self.lease_until):
            return 1.0
        for_s = now - self.drain_began
        return MOVING_SHARE * math.exp(-for_s / MOVED_AFTER_S) + (1 - MOVING_SHARE) * math.exp(-for_s / CONVERSATION_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoStep:
    """What one step came to."""

    states: list[SfuState]
    """Reports of all that are not silent."""
    gone: list[DemoSfu]
    """Those that have ended."""
    reports: list[DrainReport]


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
            self._sigterm(sfu, now=now - rng.uniform(300, 900) - (1000 if number % 2 else 0))

    def step(self, *, now: float, commands: Collection[SfuCommand] = (), occupied: Collection[str] = ()) -> DemoStep:
        """A second passes. `occupied`: SFUs with real players on them; the rollout takes those first, so that there is
        somebody to look at."""
        for command in commands:
            if (sfu := self.sfus.get(command.sfu)) is not None and command.command not in sfu.seen:
                sfu.seen.add(command.command)
                self._obey(sfu, command, now=now)
        self._roll_out(now=now, occupied=occupied)
        self._fall_silent(now=now)
        gone = [sfu for sfu in self.sfus.values() if self._over(sfu, now=now, occupied=occupied)]
        for sfu in gone:
            del self.sfus[sfu.sfu]
        states = [self._report(sfu, now=now) for sfu in self.sfus.values() if sfu.silent_until <= now]
        return DemoStep(states=states, gone=gone, reports=[_drain_report(sfu, now=now) for sfu in gone])

    def launch(self, *, now: float) -> DemoSfu:
        """One more SFU, of the new version, not warmed up yet."""
        self._wanted += 1
        return self._replacement(now=now)

    def end(self, sfu: str, *, now: float) -> None:
        """One SFU fewer: as SIGTERM would end it once nobody is there."""
        known = self.sfus.get(sfu)
        if known is not None and known.ending_at == math.inf:
            known.status, known.ending_at = SfuStatus.TERMINATING, now + ENDING_S
            self._wanted -= 1

    # --- inside ---

    def _start(self, *, now: float, version: str) -> DemoSfu:
        self._number += 1
        profile = self._rng.choices(list(Profile), weights=(6, 3, 1))[0]
        sfu = DemoSfu(
            sfu=f"sfu-{self._number:03d}",
            cell=self._rng.choices(CELLS, weights=(4, 3, 2, 1))[0],
            version=version,
            profile=profile,
            base=min(0.95, max(0.12, self._rng.gauss(0.48, 0.15))),
            phase=self._tide + self._rng.uniform(0, 0.8),
            began=now,
            incarnation=self._epoch,
        )
        self.sfus[sfu.sfu] = sfu
        return sfu

    def _replacement(self, *, now: float) -> DemoSfu:
        sfu = self._start(now=now, version=VERSIONS[1])
        sfu.warming, sfu.base = True, self._rng.uniform(0.15, 0.4)
        return sfu

    def _obey(self, sfu: DemoSfu, command: SfuCommand, *, now: float) -> None:
        if command.verb == CommandVerb.UNCORDON:
            if sfu.drain is not None and sfu.drain.cause != DrainCause.SIGTERM:
                sfu.status, sfu.drain, sfu.lease_until = SfuStatus.ONLINE, None, None
        elif command.lease_s is not None and sfu.drain is not None:
            sfu.lease_until = now + command.lease_s if sfu.lease_until else None
        else:
            ends = command.verb == CommandVerb.DRAIN
            if command.lease_s is not None:
                sfu.lease_until = now + command.lease_s
            self._cordon(
                sfu,
                Drain(
                    by=command.by,
                    reason=command.reason,
                    exit_when_empty=ends,
                    drain_max_s=DRAIN_MAX_S if ends else command.drain_max_s,
                    command=command.command,
                ),
                now=now,
            )

    def _sigterm(self, sfu: DemoSfu, *, now: float) -> None:
        drain = Drain(cause=DrainCause.SIGTERM.value, by="signal", drain_max_s=DRAIN_MAX_S, grace_s=GRACE_S)
        self._cordon(sfu, drain, now=now)

    def _cordon(self, sfu: DemoSfu, drain: Drain, *, now: float) -> None:
        if sfu.drain is not None and sfu.drain.exit_when_empty:
            return
        sfu.at_cordon = self._players(sfu, now=now)
        sfu.status, sfu.drain, sfu.drain_began = SfuStatus.CORDONED, drain, now

    def _roll_out(self, *, now: float, occupied: Collection[str]) -> None:
        draining = sum(1 for sfu in self.sfus.values() if sfu.drain is not None)
        old = [s for s in self.sfus.values() if s.version == VERSIONS[0] and s.drain is None and not s.warming]
        if self.rolling and old and draining < self._wanted // NODES_PER_DRAIN:
            self._sigterm(min(old, key=lambda sfu: (sfu.sfu not in occupied, sfu.sfu)), now=now)
        if len(self.sfus) < self._wanted:
            self._replacement(now=now)

    def _fall_silent(self, *, now: float) -> None:
        silent = sum(1 for sfu in self.sfus.values() if sfu.silent_until > now)
        awake = [s for s in self.sfus.values() if s.drain is None and s.silent_until < now - 30 and not s.warming]
        if awake and silent < self._wanted // NODES_PER_SILENCE:
            self._rng.choice(awake).silent_until = now + self._rng.uniform(*SILENT_S)

    def _over(self, sfu: DemoSfu, *, now: float, occupied: Collection[str]) -> bool:
        """It has no players left and has run its final sequence."""
        if sfu.ending_at < math.inf:
            return now >= sfu.ending_at
        if sfu.drain is None or not sfu.drain.exit_when_empty:
            return False
        empty = self._players(sfu, now=now) == 0 and sfu.sfu not in occupied
        if empty or now - sfu.drain_began > GRACE_S - 60:
            sfu.status, sfu.ending_at = SfuStatus.TERMINATING, now + ENDING_S
        return False

    def _players(self, sfu: DemoSfu, *, now: float) -> int:
        return round(sfu.fullest(now=now) * SHARES[sfu.profile][1] * Capacities().streams * PLAYERS_PER_STREAM)

    def _report(self, sfu: DemoSfu, *, now: float) -> SfuState:
        sfu.noise = 0.92 * sfu.noise + self._rng.gauss(0, 0.012)
        sfu.revision += 1
        up_s = now - sfu.began
        warm = not sfu.warming or up_s > WARM_AFTER_S
        sfu.warming = sfu.warming and up_s < 60
        egress, streams, cpu = (share * sfu.fullest(now=now) if warm else 0.002 for share in SHARES[sfu.profile])
        capacities = Capacities(cores=4)
        players = self._players(sfu, now=now) if warm else 0
        forwarded = round(streams * capacities.streams)
        drain = sfu.drain and _as_of(sfu.drain, now - sfu.drain_began, sfu.lease_until and sfu.lease_until - now)
        return SfuState(
            sfu=sfu.sfu,
            address=f"wss://{sfu.sfu}.{sfu.cell}.example.net/media",
            status=sfu.status.value,
            incarnation=sfu.incarnation,
            revision=sfu.revision,
            cell=sfu.cell,
            version=sfu.version,
            warmed_up=warm,
            capacities=capacities,
            load=max(egress, streams, cpu),
            load_parts=LoadParts(
                # In its first seconds a node has no second sample yet, so its rates are not known.
                cpu=min(1.0, cpu * 0.85) if up_s > 3 else None,
                sysload=cpu,
                egress_bps=egress * capacities.egress_mbps * 1e6 if up_s > 3 else None,
                ingress_bps=egress * capacities.egress_mbps * 1e5,
                streams=forwarded,
                rooms=math.ceil(players / 9),
                clients=players,
                tracks=players * 2,
            ),
            drain=drain,
            players=players,
            producers=players * 2,
            consumers=forwarded,
            milestones=Milestones(healthy_s=0.3, linked_s=0.5, first_packet_s=WARM_AFTER_S if warm else None),
        )


def _as_of(drain: Drain, elapsed_s: float, lease_left_s: float | None) -> Drain:
    asking = drain.drain_max_s is not None and elapsed_s > drain.drain_max_s
    return msgspec.structs.replace(drain, elapsed_s=elapsed_s, asking=asking, lease_left_s=lease_left_s)


def _drain_report(sfu: DemoSfu, *, now: float) -> DrainReport:
    return DrainReport(
        sfu=sfu.sfu,
        version=sfu.version,
        cause=sfu.drain.cause if sfu.drain else "",
        outcome="empty",
        to_exit_s=now - sfu.drain_began,
        players_at_cordon=sfu.at_cordon,
    )
