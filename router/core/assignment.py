"""Which SFU a player is given (P1, P2, P6, D4): plan, ask the store, then look at the directory again.

Asking the store takes time in which an SFU may be cordoned. `settle` therefore checks once more; its caller puts the
answer on the wire in the same step of the event loop, so nothing can come between the check and the answer.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from router.core.directory import Directory, NotPlaceable
from router.core.inflight import in_flight
from router.core.selector import NO_PREFERENCE, Decision, NodeSelector, Preference, Rejected, Scored
from router.core.standings import CANDIDATES, REJECTS_SHOWN, Standings
from shared.placing import Counts, InFlightThere, Offer, PlacedRoom, Version, Wish
from shared.records import RoomPlacement

MAX_EXCLUDES = 16
"""SFUs a player may exclude in one request; more are ignored."""
OVER_THE_CAP = 10**9
"""Added to the level of an SFU over the cap on joins, as `place_room` does: above every level of the ladder."""
_SOFT_REASONS = frozenset({"lost", "failed"})


class Reason(StrEnum):
    """What decided a placement."""

    STICKY = "sticky"
    """The room has an SFU that takes new work (P2)."""
    CHOSEN = "chosen"
    """The room had none; the selector's best."""
    REPLACED = "replaced"
    """The room can't stay on its SFU: that takes no new work any more, or fails for many; the selector's best."""
    EXCLUDED = "excluded"
    """The room's SFU is one this player can't use: another one, where the room is if possible."""
    LAST_RESORT = "last-resort"
    """Every eligible SFU is excluded by the player; the room's SFU nevertheless."""
    NOBODY = "no-sfu"
    """Nobody is alive and placeable, or only the one to leave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A player wants an SFU."""

    room: str
    leave: str = ""
    """The SFU it wants to leave."""
    leave_version: tuple[int, int] = (0, 0)
    """What it was told of it."""
    exclude: Collection[str] = ()
    """SFUs it could not reach."""
    reason: str = ""
    """`cordoned`, `asked`, `lost`, `failed`, or empty for a join."""
    preference: Preference = NO_PREFERENCE

    def avoids(self, sfu: str) -> bool:
        """The player is not to get this one while there is another."""
        return sfu == self.leave or sfu in self.exclude


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to ask the store: keep the room where it is unless that is refused, else the best of the candidates."""

    ask: Ask
    candidates: tuple[Scored, ...]
    rejected: tuple[Rejected, ...] = ()
    limit_ignored: bool = False
    last_hope: bool = False
    """Nobody is placeable; the candidates are those whose record is missing, which may be Redis' loss, not theirs."""
    room_had: str = ""
    """Where this router believed the room to be."""
    keep: Scored | None = None
    """That SFU, if the room may stay there."""

    @property
    def eligible(self) -> tuple[str, ...]:
        """Where the player may go, best first; not necessarily everybody."""
        return tuple(each.sfu for each in self.candidates)


class Assigner:
    """Plans and settles assignments against one directory."""

    def __init__(self, directory: Directory, selector: NodeSelector) -> None:
        self._directory = directory
        self._selector = selector
        self.standings = Standings(directory, selector)

    # --- before the store is asked ---

    def plan(self, ask: Ask, *, room_had: str, now: float, rng: random.Random) -> Plan:
        """Who is eligible, best first. Heeds the version that the player names of the SFU it leaves (invariant 1)."""
        if ask.leave:
            self._directory.claim(ask.leave, ask.leave_version)
        self.standings.refresh(now=now)
        standing = self.standings.best(ask.preference, avoid=ask.avoids, now=now, rng=rng)
        if not standing.candidates:  # the player avoids all there are
            standing = self.standings.best(ask.preference, avoid=lambda _: False, now=now, rng=rng)
        hoped = () if standing.candidates else self._last_hope(ask, now=now, rng=rng)
        candidates = standing.candidates or hoped
        may_stay = bool(room_had) and self._may_stay(room_had, candidates, last_hope=bool(hoped), now=now)
        left = (room_had,) if room_had and not may_stay else ()
        leave = (ask.leave,) if ask.leave in self._directory else ()
        refused = self.standings.refused(now=now, first=(*left, *leave))
        told = (*(each.sfu for each in candidates), ask.leave, *ask.exclude)
        room = REJECTS_SHOWN - len(refused)
        return Plan(
            ask=ask,
            candidates=candidates,
            rejected=refused + self.standings.passed_over(but=told, first=left, room=room),
            limit_ignored=standing.limit_ignored,
            last_hope=bool(hoped),
            room_had=room_had,
            keep=self.standings.scored(room_had) if may_stay else None,
        )

    def wish(self, plan: Plan) -> Wish:
        """The plan as the store takes it."""
        selector = self._selector
        return Wish(
            offers=tuple(_offer(each) for each in plan.candidates),
            keep=_offer(plan.keep) if plan.keep else None,
            refuse=(plan.room_had,) if plan.room_had and not plan.keep else (),
            join=not (plan.keep and plan.ask.avoids(plan.keep.sfu)),
            per_room=selector.sort.per_room,
            reports_until_shown=selector.reports_until_shown,
            max_joins_per_s=selector.max_joins_per_s,
            more=self._more(plan),
        )

    def place_locally(self, plan: Plan, known: RoomPlacement | None) -> PlacedRoom | None:
        """What the store would answer, from what this router last knew (invariant 5). None when nobody is eligible."""
        if known is not None and plan.keep is not None and plan.keep.sfu == known.sfu:
            return PlacedRoom(placement=known)
        if not plan.candidates:
            return None
        best = min(plan.candidates, key=lambda each: (each.level, each.corrected))
        generation = known.generation + 1 if known else 1
        return PlacedRoom(placement=RoomPlacement(sfu=best.sfu, generation=generation), fresh=True)

    # --- after it has answered ---

    def too_fast(self, plan: Plan, in_flight: Mapping[str, InFlightThere], *, now: float) -> None:
        """Nothing was placed, because all that was offered is over the cap on joins: the next plan passes them over."""
        for sfu in plan.eligible:
            if (there := in_flight.get(sfu)) is not None:
                self._told(sfu, there.counts, there.joins_per_s, now=now)

    def heed(self, plan: Plan, placed: PlacedRoom, *, now: float) -> Plan:
        """Take over what the store has in flight; the plan with the scores that decided there."""
        wish = self.wish(plan)
        for offer in (*wish.offers, *([wish.keep] if wish.keep else [])):
            there = placed.in_flight.get(offer.sfu)
            if there is not None:
                mine = offer.sfu == placed.placement.sfu
                joins, rooms = int(mine and wish.join), int(mine and placed.fresh)
                known = there.counts.get(offer.version, Counts())
                counts = {**there.counts, offer.version: Counts(known.joins + joins, known.rooms + rooms)}
                self._told(offer.sfu, counts, there.joins_per_s + joins, now=now)
        scores = (self._as_decided(each, placed.in_flight.get(each.sfu)) for each in plan.candidates)
        keep = self._as_decided(plan.keep, placed.in_flight.get(plan.keep.sfu)) if plan.keep else None
        return replace(plan, candidates=_in_order(scores), keep=keep)

    def counted(self, sfu: str, there: InFlightThere, *, now: float) -> None:
        """What the store has in flight to the SFU, with a join that it was told of."""
        self._told(sfu, there.counts, there.joins_per_s, now=now)

    def settle(
        self, plan: Plan, placed: PlacedRoom | None, *, carrying: Collection[str], now: float
    ) -> Decision | None:
        """The decision, checked against the directory as it is now; None: the world has changed, plan again.

        `carrying`: SFUs that carry something of the room; a player that can't use the room's SFU is best put there.
        """
        if placed is None:
            return self._decision(plan, None, Reason.NOBODY)
        sfu = placed.placement.sfu
        if not self._usable(plan, sfu, now=now):
            return None
        if not plan.ask.avoids(sfu):
            return self._decision(plan, sfu, self._why(plan, placed))
        plan = self._with_ours(plan)
        others = [each for each in plan.eligible if not plan.ask.avoids(each) and self._usable(plan, each, now=now)]
        there = [each for each in carrying if not plan.ask.avoids(each) and self._usable(plan, each, now=now)]
        if there:
            return self._decision(plan, self.standings.best_of(there), Reason.EXCLUDED)
        if others:
            return self._decision(plan, others[0], Reason.EXCLUDED)
        if self._leaving(plan.ask, sfu):
            return self._decision(plan, None, Reason.NOBODY)
        return self._decision(plan, sfu, Reason.LAST_RESORT)

    def give_up(self, plan: Plan) -> Decision:
        """The fleet keeps changing faster than it can be asked: tell the player to retry."""
        return self._decision(plan, None, Reason.NOBODY)

    # --- inside ---

    def _may_stay(self, sfu: str, candidates: tuple[Scored, ...], *, last_hope: bool, now: float) -> bool:
        """The room may stay on its SFU (P2): while that takes new work, however full it is.

        A room that outgrows its SFU is for a cascade to spread (M6); this is where it would say that new players go
        elsewhere. To an SFU whose connections fail for many nobody is sent while there is another.
        """
        refusal = self._directory.refusal(sfu, now=now)
        if refusal is not None and not (last_hope and refusal is NotPlaceable.MISSING):
            return False
        return not self.standings.is_failing(sfu) or all(self.standings.is_failing(each.sfu) for each in candidates)

    def _last_hope(self, ask: Ask, *, now: float, rng: random.Random) -> tuple[Scored, ...]:
        missing = [v for v in self._directory.views(now=now) if v.refused is NotPlaceable.MISSING]
        candidates = [self.standings.candidate(view.sfu, view.state) for view in missing]
        order = self._selector.order(candidates, rng=rng, preference=ask.preference).order
        order = tuple(sfu for sfu in order if not ask.avoids(sfu)) or order
        return tuple(replace(self.standings.scored(sfu), level=n) for n, sfu in enumerate(order[:CANDIDATES]))

    def _told(self, sfu: str, counts: Mapping[Version, Counts], joins_per_s: float, *, now: float) -> None:
        self.standings.told(sfu, counts, hot=self._hot(joins_per_s), now=now)

    def _as_decided(self, score: Scored, there: InFlightThere | None) -> Scored:
        """The score with what the store had in flight when it decided."""
        if there is None:
            return score
        selector = self._selector
        counts = in_flight(there.counts, score.version, reports_until_shown=selector.reports_until_shown)
        now = replace(score, in_flight=counts.rooms if selector.sort.per_room else counts.joins)
        if self._hot(there.joins_per_s):
            now = replace(now, level=score.level + OVER_THE_CAP, passed_over=score.passed_over or "joins-too-fast")
        return now

    def _with_ours(self, plan: Plan) -> Plan:
        """The plan with what this router has in flight besides: it decides alone where a player goes that can't follow
        its room, and the store hears of that only afterwards."""
        per_room, in_flight = self._selector.sort.per_room, self.standings.in_flight

        def most(score: Scored) -> Scored:
            ours = in_flight.of(score.sfu, score.version)
            return replace(score, in_flight=max(score.in_flight, ours.rooms if per_room else ours.joins))

        return replace(plan, candidates=_in_order(map(most, plan.candidates)))

    def _more(self, plan: Plan) -> bool:
        """There are SFUs to offer beside these, should Redis know them to be over the cap on joins.

        A room that may stay stays; and when the best are known to be over it, all the others are, too.
        """
        if not self._selector.max_joins_per_s or plan.keep or plan.last_hope or not plan.candidates:
            return False
        best_is_hot = self.standings.is_hot(plan.candidates[0].sfu)
        return not best_is_hot and not self.standings.offers_all(len(plan.candidates))

    def _hot(self, joins_per_s: float) -> bool:
        return 0 < self._selector.max_joins_per_s <= joins_per_s

    def _usable(self, plan: Plan, sfu: str, *, now: float) -> bool:
        refusal = self._directory.refusal(sfu, now=now)
        return refusal is None or (plan.last_hope and refusal is NotPlaceable.MISSING)

    def _leaving(self, ask: Ask, sfu: str) -> bool:
        """Not to be given back to this player at all: it leaves this SFU, in this incarnation, for a cordon."""
        if sfu != ask.leave or ask.reason in _SOFT_REASONS:
            return False
        state = self._directory.state(sfu)
        return state is None or state.incarnation <= ask.leave_version[0]

    @staticmethod
    def _why(plan: Plan, placed: PlacedRoom) -> Reason:
        if not placed.fresh or placed.placement.sfu == plan.room_had:
            return Reason.STICKY
        return Reason.REPLACED if plan.room_had else Reason.CHOSEN

    def _decision(self, plan: Plan, chosen: str | None, reason: Reason) -> Decision:
        named = {each.sfu for each in plan.rejected} | {chosen}
        avoided = tuple(
            Rejected(sfu, "leaving" if sfu == plan.ask.leave else "excluded")
            for sfu in dict.fromkeys((plan.ask.leave, *plan.ask.exclude))
            if sfu not in named and sfu in self._directory
        )
        candidates = plan.candidates
        if plan.keep is not None and plan.keep.sfu not in plan.eligible:
            candidates += (plan.keep,)
        if chosen is not None and chosen not in {each.sfu for each in candidates}:
            # Where the room is, for other reasons than its figure: whoever asks why wants to see that one, too.
            candidates += (self.standings.scored(chosen),)
        return Decision(
            chosen=chosen,
            reason=reason.value,
            candidates=candidates,
            rejected=tuple(each for each in plan.rejected if each.sfu != chosen) + avoided,
            kind=self._selector.kind.value,
            sort_by=self._selector.sort_by.value,
            limit_ignored=plan.limit_ignored,
            room_had=plan.room_had,
            preference=plan.ask.preference,
        )


def _offer(score: Scored) -> Offer:
    return Offer(sfu=score.sfu, version=score.version, level=score.level, figure=score.figure or 0.0, cost=score.cost)


def _in_order(scores: Iterable[Scored]) -> tuple[Scored, ...]:
    return tuple(sorted(scores, key=lambda each: (each.level, each.corrected)))
