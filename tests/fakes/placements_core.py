"""Placements in memory: what is in flight, who fails, the history; what the Lua scripts do, in Python."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from router.core.inflight import in_flight
from shared.keys import PLACEMENTS_KEPT
from shared.placement_records import PlacementRecord
from shared.placing import (
    IN_FLIGHT_LIFE_S,
    Counts,
    Failing,
    FailureRule,
    InFlightThere,
    Key,
    Offer,
    TooFast,
    Tries,
    Version,
    Wish,
)
from shared.store.placements import is_about


@dataclass(slots=True)
class Record:
    """What is in flight to one SFU."""

    second: int = 0
    now: int = 0
    before: int = 0
    counts: dict[Version, Counts] = field(default_factory=dict)
    since: dict[Version, float] = field(default_factory=dict)


class PlacementsCore:
    """Everything about placements but the rooms themselves."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self.clock = clock
        self.records: dict[str, Record] = {}
        self.tries: dict[tuple[str, int, str], dict[str, float]] = defaultdict(dict)
        self.failing: dict[str, tuple[int, float]] = {}
        self.history: list[PlacementRecord] = []

    def lose_everything(self) -> None:
        for kept in (self.records, self.tries, self.failing):
            kept.clear()  # type: ignore[attr-defined]
        self.history.clear()

    def choose(self, wish: Wish, standing: str | None) -> tuple[str, dict[str, InFlightThere]]:
        """The SFU, and what was in flight before it was counted there."""
        records = {offer.sfu: self._record(offer.sfu) for offer in wish.all}

        def key(offer: Offer) -> Key:
            record = records[offer.sfu]
            counts = in_flight(record.counts, offer.version)
            too_fast = 0 < wish.max_joins_per_s <= self._rate(record)
            return offer.key(counts.rooms if wish.per_room else counts.joins, too_fast=too_fast)

        told = {
            sfu: InFlightThere(counts=dict(record.counts), joins_per_s=self._rate(record))
            for sfu, record in records.items()
        }
        best = min(wish.all, key=key)
        if standing is None and wish.more and 0 < wish.max_joins_per_s <= told[best.sfu].joins_per_s:
            raise TooFast(told)
        chosen = best.sfu if standing is None else standing
        fresh = standing is None
        for offer in wish.all:
            if offer.sfu == chosen and (wish.join or fresh):
                self._count(records[chosen], offer.version, Counts(int(wish.join), int(fresh)))
        return chosen, told

    def count_join(self, sfu: str, version: Version) -> InFlightThere:
        """Counts a join that went elsewhere than its room."""
        record = self._record(sfu)
        self._count(record, version, Counts(1, 0))
        return InFlightThere(counts=dict(record.counts), joins_per_s=self._rate(record))

    def _record(self, sfu: str) -> Record:
        record, second = self.records.setdefault(sfu, Record()), int(self.clock())
        if record.second != second:
            record.before = record.now if record.second == second - 1 else 0
            record.second, record.now = second, 0
        for version in [v for v, at in record.since.items() if self.clock() - at >= IN_FLIGHT_LIFE_S]:
            del record.since[version], record.counts[version]
        return record

    def _rate(self, record: Record) -> float:
        return record.now + record.before * (1 - self.clock() % 1)

    def _count(self, record: Record, version: Version, more: Counts) -> None:
        known = record.counts.get(version, Counts())
        record.counts[version] = Counts(known.joins + more.joins, known.rooms + more.rooms)
        record.since.setdefault(version, self.clock())
        record.now += more.joins

    def note_tries(self, tries: Sequence[Tries], rule: FailureRule) -> list[str]:
        failing = []
        for each in tries:
            tried, failed = (self.tries[(each.sfu, each.incarnation, which)] for which in ("all", "failed"))
            tried |= dict.fromkeys(each.tried, self.clock())
            failed |= dict.fromkeys(each.failed, self.clock())
            for word in each.failed:
                tried.setdefault(word, self.clock())
            for kept in (tried, failed):
                for word in [word for word, at in kept.items() if at <= self.clock() - rule.window_s]:
                    del kept[word]
            if len(tried) >= rule.players and len(failed) > rule.share * len(tried):
                self.failing[each.sfu] = (each.incarnation, self.clock() + rule.pause_s)
                tried.clear()
                failed.clear()
                failing.append(each.sfu)
        return failing

    def read_failing(self) -> list[Failing]:
        self.failing = {sfu: kept for sfu, kept in self.failing.items() if kept[1] > self.clock()}
        return [
            Failing(sfu=sfu, incarnation=incarnation, left_s=until_at - self.clock())
            for sfu, (incarnation, until_at) in self.failing.items()
        ]

    def push(self, records: Sequence[PlacementRecord]) -> None:
        self.history = [*reversed(records), *self.history][:PLACEMENTS_KEPT]

    def read(self, n: int, room: str, player: str) -> list[PlacementRecord]:
        found = {each.id: each for each in reversed(self.history) if is_about(each, room=room, player=player)}
        return list(reversed(found.values()))[: max(0, n)]
