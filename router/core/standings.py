"""Every SFU this router may place on, in the order of its selector, with all that moves it up or down.

It follows the directory (`changed` hears of each change there) and adds what no report says: placements in flight (P4),
failing connections, the cap on joins a second, and how long an SFU that has not warmed up is still waited for.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from router.core.directory import Directory
from router.core.inflight import InFlight
from router.core.selector import Candidate, NodeSelector, Preference, Rejected, Scored
from router.core.selector.index import Index
from router.core.selector.sorts import Costs, clients_of
from shared.placing import Counts, Version
from shared.records import SfuState, SfuStatus, status_of, version_of

CANDIDATES = 8
"""SFUs that one choice compares: enough for Redis to find the best of them by counts newer than ours."""
REJECTS_SHOWN = 8
"""SFUs whose refusal one decision names; a fleet of thousands has too many to list for each player."""
HOT_S = 0.5
"""For how long an SFU over the cap on joins is passed over before it is looked at again."""


@dataclass(frozen=True, slots=True)
class Standing:
    """The outcome of one look at the order."""

    candidates: tuple[Scored, ...] = ()
    limit_ignored: bool = False


class Standings:
    """One router's order of SFUs. `now` is monotonic seconds of this process."""

    def __init__(self, directory: Directory, selector: NodeSelector) -> None:
        self._directory = directory
        self._selector = selector
        self._index = Index(selector)
        self._scores: dict[str, Scored] = {}
        """Made when first asked for; forgotten when something changes."""
        self._aside: dict[str, None] = {}
        """Known SFUs out of the order: cordoned, stale, missing."""
        self._costs = Costs(selector.sort, fixed=selector.join_cost)
        self.in_flight = InFlight(reports_until_shown=selector.reports_until_shown)
        self._failing: dict[str, tuple[int, float]] = {}
        """SFU -> incarnation whose connections fail, and until when that is believed."""
        self._hot: OrderedDict[str, float] = OrderedDict()
        self._cold: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """SFU -> incarnation that has not warmed up, and until when it is passed over for that."""
        self._waited: dict[str, int] = {}
        """SFU -> incarnation that has been waited for long enough: it may be one that can't prove itself."""
        self._unseen: dict[str, None] = {}
        """Not warmed up, and the waiting has not begun."""
        directory.watch(self.changed)

    # --- news ---

    def changed(self, sfu: str) -> None:
        """Something about the SFU has changed in the directory."""
        state = self._directory.state(sfu)
        if state is None or status_of(state) is not SfuStatus.ONLINE:
            self._out(sfu, known=state is not None)
            return
        self._aside.pop(sfu, None)
        self.in_flight.reported(sfu, version_of(state))
        self._note_warmth(sfu, state)
        figure = self._selector.figure(Candidate(sfu, state))
        self._costs.learn(sfu, figure, clients_of(state))
        self._put(sfu, state)

    def told(self, sfu: str, counts: Mapping[Version, Counts], *, hot: bool = False, now: float) -> None:
        """What Redis has counted for an SFU, our own placements included; `hot`: more a second than allowed."""
        self.in_flight.told(sfu, counts, now=now)
        if hot:
            self._hot[sfu] = now + HOT_S
            self._hot.move_to_end(sfu)
        self._again(sfu)

    def placed_alone(self, sfu: str, *, rooms: int, now: float) -> None:
        """This router has placed a join that Redis does not count."""
        state = self._directory.state(sfu)
        if state is not None:
            self.in_flight.add(sfu, version_of(state), rooms=rooms, now=now)
            self._again(sfu)

    def fail(self, failing: Mapping[str, tuple[int, float]], *, now: float) -> None:
        """All SFUs whose connections fail for many, each with its incarnation and for how many seconds yet."""
        before = {(sfu, incarnation) for sfu, (incarnation, _) in self._failing.items()}
        self._failing = {sfu: (incarnation, now + left_s) for sfu, (incarnation, left_s) in failing.items()}
        after = {(sfu, incarnation) for sfu, (incarnation, _) in self._failing.items()}
        for sfu in dict.fromkeys(sfu for sfu, _ in sorted(before ^ after)):
            self._again(sfu)

    def refresh(self, *, now: float) -> None:
        """What time alone has decided; before each choice."""
        touched = self.in_flight.expire(now=now)
        for sfu in [sfu for sfu, (_, until) in self._failing.items() if until <= now]:
            del self._failing[sfu]
            touched.append(sfu)
        while self._hot and next(iter(self._hot.values())) <= now:
            touched.append(self._hot.popitem(last=False)[0])
        self._begin_waiting(now)
        while self._cold and next(iter(self._cold.values()))[1] <= now:
            sfu, (self._waited[sfu], _) = self._cold.popitem(last=False)
            touched.append(sfu)
        if self._costs.moved():
            touched += self.in_flight.sfus
        for sfu in touched:
            self._again(sfu)

    # --- questions ---

    def best(self, preference: Preference, *, avoid: Callable[[str], bool], now: float, rng: random.Random) -> Standing:
        """The best few that are placeable now and not to be avoided."""
        refused: list[str] = []

        def usable(sfu: str) -> bool:
            if self._directory.refusal(sfu, now=now) is not None:
                refused.append(sfu)
                return False
            return not avoid(sfu)

        picks = self._index.best(count=CANDIDATES, usable=usable, rng=rng, preference=preference)
        for sfu in dict.fromkeys(refused):
            self._out(sfu, known=True)  # until something about it changes
        candidates = tuple(
            self._picked(sfu, level, preference) for level, sfus in enumerate(picks.levels) for sfu in sfus
        )
        return Standing(candidates, picks.limit_ignored)

    def candidate(self, sfu: str, state: SfuState) -> Candidate:
        """The SFU with all that counts."""
        counts = self.in_flight.of(sfu, version_of(state))
        sort = self._selector.sort
        figure = self._selector.figure(Candidate(sfu, state))
        return Candidate(
            sfu,
            state,
            in_flight=counts.rooms if sort.per_room else counts.joins,
            cost=self._costs.of(figure, clients_of(state)),
            failing=self.is_failing(sfu),
            hot=sfu in self._hot,
            cold=sfu in self._cold or sfu in self._unseen,
        )

    def scored(self, sfu: str) -> Scored:
        """How the SFU stands now. It must be in the directory."""
        known = self._scores.get(sfu)
        if known is not None:
            return known
        state = self._directory.state(sfu)
        assert state is not None
        candidate = self.candidate(sfu, state)
        score = Scored(
            sfu=sfu,
            figure=self._selector.figure(candidate),
            in_flight=candidate.in_flight,
            cost=candidate.cost,
            passed_over=self._selector.passed_over(self._selector.rank(candidate)),
            version=version_of(state),
        )
        if sfu in self._index:
            self._scores[sfu] = score
        return score

    def best_of(self, sfus: Iterable[str]) -> str:
        """The best of some SFUs that are all in the directory."""
        states = {sfu: self._directory.state(sfu) for sfu in sorted(sfus)}
        ranks = {sfu: self._selector.rank(self.candidate(sfu, s)) for sfu, s in states.items() if s is not None}
        return min(ranks, key=lambda sfu: (ranks[sfu].tier, ranks[sfu].value))

    def candidates(self) -> list[Candidate]:
        """Everybody in the order, for comparison with `NodeSelector.order`."""
        states = ((sfu, self._directory.state(sfu)) for sfu in self._directory.ids if sfu in self._index)
        return [self.candidate(sfu, state) for sfu, state in states if state is not None]

    def refused(self, *, now: float, first: Iterable[str] = ()) -> tuple[Rejected, ...]:
        """Some of the SFUs that take no new work, each with its reason; those that are asked for in any case."""
        shown = islice(dict.fromkeys((*first, *islice(self._aside, REJECTS_SHOWN))), REJECTS_SHOWN)
        reasons = ((sfu, self._directory.refusal(sfu, now=now)) for sfu in shown)
        return tuple(Rejected(sfu, reason.value) for sfu, reason in reasons if reason is not None)

    def passed_over(self, *, but: Iterable[str], room: int, first: Iterable[str] = ()) -> tuple[Rejected, ...]:
        """Some of those at the end of the order that stand there for another reason than their figure."""
        shown = set(but)
        asked_for = [sfu for sfu in first if sfu in self._index]
        sfus = dict.fromkeys((*asked_for, *self._index.passed_over(room)))
        scored = (self.scored(sfu) for sfu in sfus if sfu not in shown)
        return tuple(Rejected(each.sfu, each.passed_over) for each in scored if each.passed_over)

    @property
    def failing(self) -> int:
        """How many SFUs are left out because connections fail."""
        return sum(self.is_failing(sfu) for sfu in self._failing)

    def is_hot(self, sfu: str) -> bool:
        """Players joined it faster than the cap, a moment ago."""
        return sfu in self._hot

    def offers_all(self, count: int) -> bool:
        """So many are everybody in the order."""
        return count >= len(self._index)

    def is_failing(self, sfu: str) -> bool:
        """Connections to this run of the SFU fail for many."""
        failing = self._failing.get(sfu)
        if failing is None:
            return False
        state = self._directory.state(sfu)
        return state is not None and state.incarnation <= failing[0]

    # --- inside ---

    def _picked(self, sfu: str, level: int, preference: Preference) -> Scored:
        score = self.scored(sfu)
        if (preference.cell or preference.version) and not score.passed_over:
            state = self._directory.state(sfu)
            other_cell, other_version = preference.misses(state) if state is not None else (False, False)
            if other_cell or other_version:
                score = replace(score, passed_over="other-cell" if other_cell else "other-version")
        return score if score.level == level else replace(score, level=level)

    def _again(self, sfu: str) -> None:
        """Put it where it belongs now, if it is in the order."""
        state = self._directory.state(sfu)
        if state is not None and sfu in self._index:
            self._put(sfu, state)

    def _put(self, sfu: str, state: SfuState) -> None:
        self._scores.pop(sfu, None)
        self._index.put(self.candidate(sfu, state))

    def _out(self, sfu: str, *, known: bool) -> None:
        self._index.drop(sfu)
        self._scores.pop(sfu, None)
        if known:
            self._aside[sfu] = None
            return
        for kept in (self._aside, self._cold, self._waited, self._unseen, self._hot):
            kept.pop(sfu, None)
        self._costs.learn(sfu, None, 0)

    def _note_warmth(self, sfu: str, state: SfuState) -> None:
        if state.warmed_up or self._selector.warm_up_wait_s <= 0:
            for kept in (self._cold, self._waited, self._unseen):
                kept.pop(sfu, None)
        elif max(self._waited.get(sfu, -1), self._cold.get(sfu, (-1, 0.0))[0]) < state.incarnation:
            self._cold.pop(sfu, None)
            self._waited.pop(sfu, None)
            self._unseen[sfu] = None

    def _begin_waiting(self, now: float) -> None:
        for sfu in self._unseen:
            if (state := self._directory.state(sfu)) is not None:
                self._cold[sfu] = (state.incarnation, now + self._selector.warm_up_wait_s)
        self._unseen.clear()
