"""The last placements of this router, so that each can be explained (P5), and those that Redis has yet to get."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from itertools import islice

from router.core.selector import PlacementDecision, Standing
from shared.placement_records import PlacementCandidate, PlacementRecord, PlacementReject

KEPT = 1000
"""Placements remembered; about 1 KiB each."""
MAX_UNSENT = 2000
"""As many as the history in Redis holds: of more, the oldest would be dropped there at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One placement."""

    at: float
    """Unix seconds, for people."""
    room: str
    identity: str
    player: str = ""
    """Session id."""
    cause: str
    """What made the player ask: `join`, `resume`, or the reason of its `request-sfu`."""
    leave: str = ""
    decision: PlacementDecision

    def line(self) -> dict[str, object]:
        """The fields of the `[place]` log line."""
        decision = self.decision
        return {
            "room": self.room,
            "player": self.identity,
            "sfu": decision.chosen or "-",
            "reason": decision.reason,
            "cause": self.cause,
            "had": decision.room_had or None,
            "eligible": ",".join(_score(each) for each in decision.candidates[:4]) or "-",
            "rejected": ",".join(f"{r.sfu}:{r.why}" for r in decision.rejected[:8]) or None,
            "selector": f"{decision.kind}/{decision.sort_by}",
            "cell": decision.preference.cell or None,
            "version": decision.preference.version or None,
        }

    def record(self, *, id: str, router: str) -> PlacementRecord:
        """As the fleet's history keeps it."""
        decision = self.decision
        return PlacementRecord(
            id=id,
            at=self.at,
            router=router,
            room=self.room,
            identity=self.identity,
            player=self.player,
            cause=self.cause,
            sfu=decision.chosen or "",
            reason=decision.reason,
            room_had=decision.room_had,
            leave=self.leave,
            kind=decision.kind,
            sort_by=decision.sort_by,
            limit_ignored=decision.limit_ignored,
            cell=decision.preference.cell,
            version=decision.preference.version,
            candidates=tuple(_candidate(each) for each in decision.candidates),
            rejected=tuple(PlacementReject(sfu=each.sfu, why=each.why) for each in decision.rejected),
        )


class Placements:
    """The ring, how often each reason decided, and what is still to be sent to Redis."""

    def __init__(self, *, router: str, boot: str) -> None:
        """`boot` tells this run of the router from earlier ones of its id."""
        self._name = f"{router}-{boot}"
        self._router = router
        self._ring: deque[PlacementRecord] = deque(maxlen=KEPT)
        self._unsent: deque[PlacementRecord] = deque(maxlen=MAX_UNSENT)
        self._number = 0
        self.reasons: Counter[str] = Counter()

    def add(self, placed: Placed) -> PlacementRecord:
        """Remember one."""
        self._number += 1
        record = placed.record(id=f"{self._name}-{self._number}", router=self._router)
        self._ring.append(record)
        self._unsent.append(record)
        self.reasons[record.reason] += 1
        return record

    def last(self, count: int) -> list[PlacementRecord]:
        """The newest first."""
        return list(islice(reversed(self._ring), max(0, count)))

    def take_unsent(self, most: int) -> list[PlacementRecord]:
        """The oldest that Redis has not got, in order; `put_back` them when it did not take them."""
        return [self._unsent.popleft() for _ in range(min(most, len(self._unsent)))]

    def put_back(self, records: list[PlacementRecord]) -> None:
        """Redis is away."""
        for record in reversed(records):
            if len(self._unsent) == MAX_UNSENT:
                break
            self._unsent.appendleft(record)

    @property
    def unsent(self) -> list[PlacementRecord]:
        """What Redis has not got yet, newest first."""
        return list(reversed(self._unsent))


def _candidate(standing: Standing) -> PlacementCandidate:
    return PlacementCandidate(
        sfu=standing.sfu,
        figure=round(standing.figure, 6) if standing.known else None,
        in_flight=standing.in_flight,
        corrected=round(standing.corrected, 6),
        passed_over=standing.passed_over,
    )


def _score(standing: Standing) -> str:
    """`sfu-1:0.310` or, with what is in flight, `sfu-1:0.310+4`."""
    figure = f"{standing.figure:.3f}" if standing.known else "?"
    return f"{standing.sfu}:{figure}" + (f"+{standing.in_flight}" if standing.in_flight else "")
