"""The last placements of this router, so that each can be explained (P5), and those that Redis has yet to get."""

from __future__ import annotations

from collections import Counter, deque
from itertools import islice

from router.core.plan import Ask
from router.core.selector.decision import PlacementDecision, Standing
from shared.placement_records import PlacementCandidate, PlacementRecord, PlacementReject

KEPT = 1000
"""Placements remembered; about 1 KiB each."""
MAX_UNSENT = 2000
"""As many as the history in Redis holds: of more, the oldest would be dropped there at once."""


class PlacementLog:
    """The last placements, how often each reason decided, and what is still to be sent to Redis."""

    def __init__(self, *, router: str, boot: str) -> None:
        """`boot` tells this run of the router from earlier ones of its id."""
        self._name = f"{router}-{boot}"
        self._router = router
        self._ring: deque[PlacementRecord] = deque(maxlen=KEPT)
        self._unsent: deque[PlacementRecord] = deque(maxlen=MAX_UNSENT)
        self._number = 0
        self.reasons: Counter[str] = Counter()

    def add(
        self, ask: Ask, decision: PlacementDecision, *, identity: str, player: str = "", at: float
    ) -> PlacementRecord:
        """Remember one. `player`: its session id; `at`: Unix seconds, for people."""
        self._number += 1
        record = PlacementRecord(
            id=f"{self._name}-{self._number}",
            at=at,
            router=self._router,
            room=ask.room,
            identity=identity,
            player=player,
            cause=ask.cause,
            sfu=decision.chosen or "",
            reason=decision.reason,
            room_had=decision.room_had,
            leave=ask.leave,
            kind=decision.kind,
            sort_by=decision.sort_by,
            limit_ignored=decision.limit_ignored,
            cell=ask.preference.cell,
            version=ask.preference.version,
            candidates=tuple(map(_candidate, decision.candidates)),
            rejected=tuple(PlacementReject(sfu=each.sfu, why=each.why) for each in decision.rejected),
        )
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


def line(record: PlacementRecord) -> dict[str, object]:
    """The fields of the `[place]` log line."""
    return {
        "room": record.room,
        "player": record.identity,
        "sfu": record.sfu or "-",
        "reason": record.reason,
        "cause": record.cause,
        "had": record.room_had or None,
        "eligible": ",".join(_score(each) for each in record.candidates[:4]) or "-",
        "rejected": ",".join(f"{each.sfu}:{each.why}" for each in record.rejected[:8]) or None,
        "selector": f"{record.kind}/{record.sort_by}",
        "cell": record.cell or None,
        "version": record.version or None,
    }


def _candidate(standing: Standing) -> PlacementCandidate:
    return PlacementCandidate(
        sfu=standing.sfu,
        figure=round(standing.figure, 6) if standing.known else None,
        in_flight=standing.in_flight,
        corrected=round(standing.corrected, 6),
        passed_over=standing.passed_over,
    )


def _score(candidate: PlacementCandidate) -> str:
    """`sfu-1:0.310` or, with what is in flight, `sfu-1:0.310+4`."""
    figure = "?" if candidate.figure is None else f"{candidate.figure:.3f}"
    return f"{candidate.sfu}:{figure}" + (f"+{candidate.in_flight}" if candidate.in_flight else "")
