"""One SFU of the demo fleet: the real drain machine and the real report, over players that are only numbers."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from enum import StrEnum

from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.events import (
    AnnounceCordoned,
    AskPlayers,
    Effect,
    Event,
    ExitProcess,
    FinalSequenceDone,
    OccupancyChanged,
    RunFinalSequence,
    TimePassed,
)
from sfu.core.drain.ledger import DrainLedger
from sfu.core.drain.machine import DrainMachine
from sfu.core.load.report import Figures, Reporter
from shared.load import CPU_GUARD
from shared.records import Capacities, DrainReport, LoadParts, Milestones, SfuState

WARM_AFTER_S = 12.0
RAMP_S = 60.0
"""How long a new SFU takes to fill up."""
ENDING_S = 3.0
"""Length of a simulated final sequence."""
MOVING_SHARE, MOVED_AFTER_S, CONVERSATION_S = 0.75, 40.0, 600.0
"""Of a draining SFU's players, three quarters move within a minute; the rest finish their conversations."""
PLAYERS_PER_STREAM = 0.35
SWING_S, SWING = 600.0, 0.22
"""Period and height of the load's tide."""
CAPACITIES = Capacities(cores=4)
BOUNDS = DrainBounds()


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


class DemoSfu:
    """Times are the caller's seconds. `happen` and `step` are all that it goes through."""

    def __init__(
        self,
        *,
        sfu: str,
        cell: str,
        version: str,
        profile: Profile,
        base: float,
        phase: float,
        began: float,
        incarnation: int,
        rng: random.Random,
    ) -> None:
        """`base` and `phase` place it in the tide of the load; `base` is a share of its ceiling."""
        self.sfu, self.version = sfu, version
        self.base, self.phase, self.began = base, phase, began
        self.warming = False
        self.silent_until = 0.0
        self.ending = False
        """Its pool wants one SFU fewer; it is not replaced."""
        self.kept = False
        """A real player is on it, so it is not empty."""
        self.ended = False
        self.incarnation = incarnation
        self.machine = DrainMachine(BOUNDS, rng=rng)
        self.report: DrainReport | None = None
        """What its drain came to, once its final sequence has begun."""
        self._profile = profile
        self._rng = rng
        self._noise = 0.0
        self._asked = 0
        self._ending_at = math.inf
        self._ledger: DrainLedger | None = None
        self._reporter = Reporter(
            sfu=sfu,
            address=f"wss://{sfu}.{cell}.example.net/media",
            version=version,
            cell=cell,
            capacities=CAPACITIES,
            started_ms=incarnation,
        )

    @property
    def draining(self) -> bool:
        """It takes no new work."""
        return not self.machine.takes_new_work

    def happen(self, event: Event, *, now: float) -> None:
        """Something happens to its drain, which knows who is there."""
        there = max(self.players(now=now), int(self.kept))
        for each in (OccupancyChanged(players=frozenset(map(str, range(there)))), event):
            self._do(self.machine.handle(each, now=now), now=now)

    def step(self, *, now: float) -> None:
        """Time passes."""
        if self.draining:
            self.happen(FinalSequenceDone() if now >= self._ending_at else TimePassed(), now=now)

    def players(self, *, now: float) -> int:
        """Players on it; none before it has warmed up."""
        if not self.warm(now=now):
            return 0
        there = self._fullest(now=now) * SHARES[self._profile][1] * CAPACITIES.streams * PLAYERS_PER_STREAM
        return max(0, round(there) - self._asked)

    def warm(self, *, now: float) -> bool:
        """It has forwarded its first packet."""
        return not self.warming or now - self.began > WARM_AFTER_S

    def state(self, *, now: float) -> SfuState:
        """Its next report."""
        self._noise = 0.92 * self._noise + self._rng.gauss(0, 0.012)
        up_s, warm = now - self.began, self.warm(now=now)
        self.warming = self.warming and up_s < RAMP_S
        egress, streams, cpu = (share * self._fullest(now=now) if warm else 0.002 for share in SHARES[self._profile])
        players, forwarded = self.players(now=now), round(streams * CAPACITIES.streams)
        sampled = up_s > 3  # in its first seconds a node has no second sample, so its rates are not known
        return self._reporter.next(
            Figures(
                status=self.machine.status,
                drain=self.machine.facts(now=now),
                load=max(egress, streams, cpu),
                load_parts=LoadParts(
                    cpu=min(1.0, cpu * CPU_GUARD) if sampled else None,
                    sysload=cpu,
                    egress_bps=egress * CAPACITIES.egress_mbps * 1e6 if sampled else None,
                    ingress_bps=egress * CAPACITIES.egress_mbps * 1e5,
                    streams=forwarded,
                    rooms=math.ceil(players / 9),
                    clients=players,
                    tracks=players * 2,
                ),
                warmed_up=warm,
                players=players,
                producers=players * 2,
                consumers=forwarded,
                milestones=Milestones(healthy_s=0.3, linked_s=0.5, first_packet_s=WARM_AFTER_S if warm else None),
                probe_failure="",
            )
        )

    def _do(self, effects: Sequence[Effect], *, now: float) -> None:
        for effect in effects:
            match effect:
                case AnnounceCordoned() if self._ledger is None:
                    self._ledger = DrainLedger(began=now, players_at_cordon=self.players(now=now))
                case AskPlayers():
                    self._asked += len(effect.players)
                case RunFinalSequence():
                    self._ending_at = now + min(ENDING_S, effect.bound_s)
                    self.report = self._drain_report(effect.outcome.value, now=now)
                case ExitProcess():
                    self.ended = True
        if self.machine.takes_new_work:
            self._ledger, self._asked = None, 0

    def _drain_report(self, outcome: str, *, now: float) -> DrainReport:
        drain, players = self.machine.facts(now=now), self.players(now=now)
        assert drain is not None
        assert self._ledger is not None
        return self._ledger.report(
            sfu=self.sfu, version=self.version, cause=drain.cause, outcome=outcome, asked=self.machine.asked,
            players=players, producers=players * 2, consumers=players, now=now,
        )  # fmt: skip

    def _fullest(self, *, now: float) -> float:
        """Share of the ceiling of its binding part."""
        tide = SWING * math.sin(2 * math.pi * now / SWING_S + self.phase)
        ramp = min(1.0, (now - self.began) / RAMP_S) if self.warming else 1.0
        return max(0.01, min(1.08, self.base + tide + self._noise)) * ramp * self._left(now=now)

    def _left(self, *, now: float) -> float:
        """Share of its players that are still here: a cordon held by hand moves no player."""
        drain, began = self.machine.facts(now=now), self.machine.began
        if drain is None or began is None or not (drain.exit_when_empty or drain.lease_left_s is not None):
            return 1.0
        for_s = now - began
        return MOVING_SHARE * math.exp(-for_s / MOVED_AFTER_S) + (1 - MOVING_SHARE) * math.exp(-for_s / CONVERSATION_S)
