"""Every SFU this router may place on, in the order of its selector, with all that moves it up or down.

It follows the directory (`changed` hears of each change there) and adds what no report says: placements in flight (P4),
failing connections, the cap on joins a second, and how long an SFU that has not warmed up is still waited for.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import islice

from router.core.directory import Directory, NotPlaceable
from router.core.inflight import InFlight
from router.core.rolling import Rolling
from router.core.selector.decision import Rejected, Standing
from router.core.selector.index import Index
from router.core.selector.ladder import Preference
from router.core.selector.node_selector import NodeSelector
from router.core.selector.sorts import Costs, clients_of
from shared.placing import Counts, Version
from shared.records import SfuState, SfuStatus, status_of, version_of

CANDIDATES = 8
"""SFUs that one choice compares: enough for Redis to find the best of them by counts newer than ours."""
REJECTS_SHOWN = 8
"""SFUs whose refusal one decision names; a fleet of thousands has too many to list for each player."""
TOO_FAST_S = 0.5
"""For how long an SFU over the cap on joins is passed over before it is looked at again."""
WARM_UP_WAIT_S = 30.0
"""For how long an SFU that has not warmed up is passed over while there is another: time for two of its probe calls,
which take 11 s at most (3 s for an answer, 5 s for the handshake, 3 s for a packet). An older program makes none and
can never prove itself. One that says that its probe calls fail is passed over for as long as they do."""


class Standings:
    """One router's order of SFUs. `now` is monotonic seconds of this process."""

    def __init__(self, directory: Directory, selector: NodeSelector) -> None:
        self._directory = directory
        self._selector = selector
        self._index = Index(selector)
        self._aside: dict[str, None] = {}
        """Known SFUs out of the order: cordoned, stale, missing."""
        self._costs = Costs(selector.sort)
        self.in_flight = InFlight()
        self._failing: dict[str, tuple[int, float]] = {}
        """SFU -> incarnation whose connections fail, and until when that is believed."""
        self._too_fast: OrderedDict[str, float] = OrderedDict()
        self._cold: OrderedDict[str, tuple[int, float]] = OrderedDict()
        """SFU -> incarnation that has not warmed up, and until when it is passed over for that."""
        self._waited: dict[str, int] = {}
        """SFU -> incarnation that has been waited for long enough: it may be one that can't prove itself."""
        self._unseen: dict[str, None] = {}
        """Not warmed up, and the waiting has not begun."""
        self._rolling = Rolling()
        self._by_old_mean: set[str] = set()
        """SFUs that have not reported since the fleet's mean cost of a placement was taken over."""
        directory.watch(self.changed)

    # --- news ---

    def changed(self, sfu: str) -> None:
        """Something about the SFU has changed in the directory."""
        state = self._directory.state(sfu)
        online = state is not None and status_of(state) is SfuStatus.ONLINE
        for other in self._rolling.seen(sfu, state if online else None):
            self._again(other)
        if state is None or not online:
            self._out(sfu, known=state is not None)
            return
        self._aside.pop(sfu, None)
        self.in_flight.reported(sfu, version_of(state))
        self._note_warmth(sfu, state)
        self._costs.learn(sfu, self._selector.figure(state), clients_of(state))
        self._put(sfu, state)

    def told(self, sfu: str, counts: Mapping[Version, Counts], *, too_fast: bool = False, now: float) -> None:
        """What Redis has counted for an SFU, our own placements included; `too_fast`: more a second than allowed."""
        self.in_flight.told(sfu, counts, now=now)
        if too_fast:
            self._too_fast[sfu] = now + TOO_FAST_S
            self._too_fast.move_to_end(sfu)
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

    def roll(self, sfus: Iterable[str]) -> None:
        """All SFUs that are still to be rolled; none: no roll is on."""
        for sfu in self._rolling.told(frozenset(sfus)):
            self._again(sfu)

    def refresh(self, *, now: float) -> None:
        """What time alone has decided; before each choice."""
        touched = self.in_flight.expire(now=now)
        for sfu in [sfu for sfu, (_, until) in self._failing.items() if until <= now]:
            del self._failing[sfu]
            touched.append(sfu)
        while self._too_fast and next(iter(self._too_fast.values())) <= now:
            touched.append(self._too_fast.popitem(last=False)[0])
        self._begin_waiting(now)
        while self._cold and next(iter(self._cold.values()))[1] <= now:
            sfu, (self._waited[sfu], _) = self._cold.popitem(last=False)
            touched.append(sfu)
        if self._costs.moved():
            self._by_old_mean.update(self._directory.ids)
            touched += self.in_flight.sfus
        for sfu in touched:
            self._again(sfu)

    # --- questions ---

    def best(
        self, preference: Preference, *, avoid: Callable[[str], bool], now: float, rng: random.Random
    ) -> tuple[tuple[Standing, ...], bool]:
        """The best few that are placeable now and not to be avoided; true: the limit was ignored."""
        refused: list[str] = []

        def usable(sfu: str) -> bool:
            if self._directory.refusal(sfu, now=now) is not None:
                refused.append(sfu)
                return False
            return not avoid(sfu)

        found, limit_ignored = self._index.best(count=CANDIDATES, usable=usable, rng=rng, preference=preference)
        for sfu in dict.fromkeys(refused):
            self._out(sfu, known=True)  # until something about it changes
        return tuple(map(self._with_cost, found) if self._by_old_mean else found), limit_ignored

    def last_hope(
        self, preference: Preference, *, avoid: Callable[[str], bool], now: float, rng: random.Random
    ) -> tuple[Standing, ...]:
        """The best few of those whose record is missing, which may be Redis' loss and not theirs."""
        index = Index(self._selector)
        for view in self._directory.views(now=now):
            if view.refused is NotPlaceable.MISSING:
                index.put(self._made(view.sfu, view.state))
        for usable in (lambda sfu: not avoid(sfu), lambda _: True):
            found, _ = index.best(count=CANDIDATES, usable=usable, rng=rng, preference=preference)
            if found:
                return tuple(found)
        return ()

    def of(self, sfu: str) -> Standing:
        """How the SFU stands now. It must be in the directory."""
        known = self._index.get(sfu)
        if known is not None:
            return self._with_cost(known)
        state = self._directory.state(sfu)
        assert state is not None
        return self._made(sfu, state)

    def best_of(self, sfus: Iterable[str]) -> str:
        """The best of some SFUs that are all in the directory."""
        return min(map(self.of, sorted(sfus)), key=lambda each: each.order).sfu

    def all(self) -> list[Standing]:
        """Every SFU in the order, for comparison with sorting them."""
        return [self.of(sfu) for sfu in self._directory.ids if sfu in self._index]

    def refused(self, *, now: float, first: Iterable[str] = ()) -> tuple[Rejected, ...]:
        """Some of the SFUs that take no new work, each with its reason; those that are asked for in any case."""
        shown = islice(dict.fromkeys((*first, *islice(self._aside, REJECTS_SHOWN))), REJECTS_SHOWN)
        reasons = ((sfu, self._directory.refusal(sfu, now=now)) for sfu in shown)
        return tuple(Rejected(sfu, reason.value) for sfu, reason in reasons if reason is not None)

    def passed_over(self, *, but: Iterable[str], room: int, first: Iterable[str] = ()) -> tuple[Rejected, ...]:
        """Some of those at the end of the order that stand there for another reason than their figure."""
        shown = set(but)
        asked_for = [self.of(sfu) for sfu in first if sfu in self._index]
        words = {each.sfu: each.passed_over for each in (*asked_for, *self._index.passed_over(room))}
        return tuple(Rejected(sfu, word) for sfu, word in words.items() if word and sfu not in shown)

    @property
    def failing(self) -> int:
        """How many SFUs are left out because connections fail."""
        return sum(self.is_failing(sfu) for sfu in self._failing)

    def is_too_fast(self, sfu: str) -> bool:
        """Players joined it faster than the cap, a moment ago."""
        return sfu in self._too_fast

    def offers_all(self, count: int) -> bool:
        """Whether so many offers are all SFUs in the order."""
        return count >= len(self._index)

    def is_failing(self, sfu: str) -> bool:
        """Connections to this run of the SFU fail for many."""
        failing = self._failing.get(sfu)
        if failing is None:
            return False
        state = self._directory.state(sfu)
        return state is not None and state.incarnation <= failing[0]

    # --- inside ---

    def _made(self, sfu: str, state: SfuState) -> Standing:
        """The SFU with all that counts."""
        counts = self.in_flight.of(sfu, version_of(state))
        return self._selector.standing(
            sfu,
            state,
            in_flight=counts.rooms if self._selector.sort.per_room else counts.joins,
            cost=self._cost(state),
            failing=self.is_failing(sfu),
            too_fast=sfu in self._too_fast,
            cold=sfu in self._cold or sfu in self._unseen or self._fails_its_probe(state),
            rolled_next=self._rolling.goes_last(sfu, state),
        )

    @staticmethod
    def _fails_its_probe(state: SfuState) -> bool:
        """It has called itself through each address that it announces, and no call went through; no player's media has
        either. Waiting does not mend that."""
        return bool(state.probe_failure) and not state.warmed_up

    def _cost(self, state: SfuState) -> float:
        """What one placement adds to the figure of that SFU."""
        return self._costs.of(self._selector.figure(state), clients_of(state))

    def _with_cost(self, standing: Standing) -> Standing:
        """The standing with what a placement costs now. SFUs with nothing in flight keep their place: see `refresh`."""
        if standing.sfu not in self._by_old_mean:
            return standing
        self._put(standing.sfu, standing.state)
        return replace(standing, cost=self._cost(standing.state))

    def _again(self, sfu: str) -> None:
        """Put it where it belongs now, if it is in the order."""
        state = self._directory.state(sfu)
        if state is not None and sfu in self._index:
            self._put(sfu, state)

    def _put(self, sfu: str, state: SfuState) -> None:
        self._by_old_mean.discard(sfu)
        self._index.put(self._made(sfu, state))

    def _out(self, sfu: str, *, known: bool) -> None:
        self._index.drop(sfu)
        if known:
            self._aside[sfu] = None
            return
        for kept in (self._aside, self._cold, self._waited, self._unseen, self._too_fast):
            kept.pop(sfu, None)
        self._by_old_mean.discard(sfu)
        self._costs.learn(sfu, None, 0)

    def _note_warmth(self, sfu: str, state: SfuState) -> None:
        if state.warmed_up:
            for kept in (self._cold, self._waited, self._unseen):
                kept.pop(sfu, None)
        elif max(self._waited.get(sfu, -1), self._cold.get(sfu, (-1, 0.0))[0]) < state.incarnation:
            self._cold.pop(sfu, None)
            self._waited.pop(sfu, None)
            self._unseen[sfu] = None

    def _begin_waiting(self, now: float) -> None:
        for sfu in self._unseen:
            if (state := self._directory.state(sfu)) is not None:
                self._cold[sfu] = (state.incarnation, now + WARM_UP_WAIT_S)
        self._unseen.clear()
