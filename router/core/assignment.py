"""Which SFU a player is given (P1, P2, P6, D4): plan, ask the store, then look at the directory again.

Asking the store takes time in which an SFU may be cordoned. `settle` therefore checks once more; its caller puts the
answer on the wire in the same step of the event loop, so nothing can come between the check and the answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from enum import StrEnum

from router.core.claims import Claims
from router.core.directory import Directory, NotPlaceable
from router.core.inflight import in_flight
from router.core.plan import Ask, PlacementPlan
from router.core.selector.decision import PlacementDecision, Rejected, Standing
from router.core.selector.node_selector import NodeSelector
from router.core.standings import REJECTS_SHOWN, Standings
from shared.placing import TOO_FAST, Counts, InFlightThere, Key, PlacedRoom, Version, Wish
from shared.records import RoomPlacement


class PlacementReason(StrEnum):
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
    NO_SFU = "no-sfu"
    """No SFU is alive and placeable, or only the one to leave."""


class Assigner:
    """Plans and settles assignments against one directory."""

    def __init__(self, directory: Directory, selector: NodeSelector) -> None:
        self._directory = directory
        self._selector = selector
        self.standings = Standings(directory, selector)
        self.claims = Claims(directory)

    # --- before the store is asked ---

    def plan(self, ask: Ask, *, room_had: str, now: float, rng: random.Random) -> PlacementPlan:
        """Who is eligible, best first. Heeds the version that the player names of the SFU it leaves (invariant 1)."""
        if ask.leave:
            self.claims.heed(ask.room, ask.leave, ask.leave_version, now=now)
        standings = self.standings
        standings.refresh(now=now)
        doubted = self.claims.doubted(ask.room, now=now)
        candidates, limit_ignored, ignored = self._offers(ask, doubted, now=now, rng=rng)
        last_hope = not candidates
        if last_hope:
            candidates = standings.last_hope(
                ask.preference, avoid=lambda sfu: ask.avoids(sfu) or sfu in doubted, now=now, rng=rng
            )
        doubted = frozenset() if ignored else doubted
        may_stay = bool(room_had) and self._may_stay(room_had, candidates, last_hope=last_hope, now=now)
        may_stay = may_stay and room_had not in doubted
        keep = standings.of(room_had) if may_stay else None
        left = (room_had,) if room_had and not may_stay else ()
        leave = (ask.leave,) if ask.leave in self._directory else ()
        refused = standings.refused(now=now, first=(*left, *leave)) + self._doubts(doubted, now=now)
        told = (*(each.sfu for each in candidates), ask.leave, *ask.exclude, *doubted)
        room = REJECTS_SHOWN - len(refused)
        return PlacementPlan(
            ask=ask,
            candidates=candidates,
            rejected=refused + standings.passed_over(but=told, first=left, room=room),
            limit_ignored=limit_ignored,
            last_hope=last_hope,
            claims_ignored=ignored,
            room_had=room_had,
            keep=keep,
            wish=Wish(
                offers=candidates,
                keep=keep,
                refuse=left,
                join=not (keep and ask.avoids(keep.sfu)),
                per_room=self._selector.sort.per_room,
                max_joins_per_s=self._selector.max_joins_per_s,
                more=not (keep or last_hope) and self._more(candidates),
            ),
        )

    def place_locally(self, plan: PlacementPlan, known: RoomPlacement | None) -> PlacedRoom | None:
        """What the store would answer, from what this router last knew (invariant 5). None when no SFU is eligible."""
        if known is not None and plan.keep is not None and plan.keep.sfu == known.sfu:
            return PlacedRoom(placement=known)
        if not plan.candidates:
            return None
        best = min(plan.candidates, key=_order)
        generation = known.generation + 1 if known else 1
        return PlacedRoom(placement=RoomPlacement(sfu=best.sfu, generation=generation), fresh=True)

    # --- after it has answered ---

    def too_fast(self, plan: PlacementPlan, in_flight: Mapping[str, InFlightThere], *, now: float) -> None:
        """Nothing was placed: the best of the offers are over the cap on joins, and the next plan passes them over."""
        for sfu in plan.eligible:
            if (there := in_flight.get(sfu)) is not None:
                self._told(sfu, there.counts, there.joins_per_s, now=now)

    def heed(self, plan: PlacementPlan, placed: PlacedRoom, *, now: float) -> PlacementPlan:
        """Take over what the store has in flight; the plan with the scores that decided there."""
        wish = plan.wish
        for offer in wish.all:
            there = placed.in_flight.get(offer.sfu)
            if there is not None:
                mine = offer.sfu == placed.placement.sfu
                joins, rooms = int(mine and wish.join), int(mine and placed.fresh)
                known = there.counts.get(offer.version, Counts())
                counts = {**there.counts, offer.version: Counts(known.joins + joins, known.rooms + rooms)}
                self._told(offer.sfu, counts, there.joins_per_s + joins, now=now)
        candidates = (self._as_decided(each, placed.in_flight.get(each.sfu)) for each in plan.candidates)
        keep = self._as_decided(plan.keep, placed.in_flight.get(plan.keep.sfu)) if plan.keep else None
        return replace(plan, candidates=tuple(sorted(candidates, key=_order)), keep=keep)

    def counted(self, sfu: str, there: InFlightThere, *, now: float) -> None:
        """What the store has in flight to the SFU, with a join that it was told of."""
        self._told(sfu, there.counts, there.joins_per_s, now=now)

    def settle(
        self, plan: PlacementPlan, placed: PlacedRoom | None, *, carrying: Collection[str], now: float
    ) -> PlacementDecision | None:
        """The decision, checked against the directory as it is now; None: the world has changed, plan again.

        `carrying`: SFUs that carry something of the room; a player that can't use the room's SFU is best put there.
        """
        if placed is None:
            return self._decision(plan, None, PlacementReason.NO_SFU)
        sfu = placed.placement.sfu
        if not self._usable(plan, sfu, now=now):
            return None
        if not plan.ask.avoids(sfu):
            return self._decision(plan, sfu, self._why(plan, placed))
        plan = self._with_ours(plan)
        others = [each for each in plan.eligible if not plan.ask.avoids(each) and self._usable(plan, each, now=now)]
        there = [each for each in carrying if not plan.ask.avoids(each) and self._usable(plan, each, now=now)]
        if there:
            return self._decision(plan, self.standings.best_of(there), PlacementReason.EXCLUDED)
        if others:
            return self._decision(plan, others[0], PlacementReason.EXCLUDED)
        if self._leaving(plan.ask, sfu):
            return self._decision(plan, None, PlacementReason.NO_SFU)
        return self._decision(plan, sfu, PlacementReason.LAST_RESORT)

    def give_up(self, plan: PlacementPlan) -> PlacementDecision:
        """The fleet keeps changing faster than it can be asked: tell the player to retry."""
        return self._decision(plan, None, PlacementReason.NO_SFU)

    # --- inside ---

    def _may_stay(self, sfu: str, candidates: tuple[Standing, ...], *, last_hope: bool, now: float) -> bool:
        """The room may stay on its SFU (P2): while that takes new work, however full it is.

        A room that outgrows its SFU is for a cascade to spread (M6); this is where it would say that new players go
        elsewhere. To an SFU whose connections fail for many no room is sent while there is another.
        """
        refusal = self._directory.refusal(sfu, now=now)
        if refusal is not None and not (last_hope and refusal is NotPlaceable.MISSING):
            return False
        return not self.standings.is_failing(sfu) or all(self.standings.is_failing(each.sfu) for each in candidates)

    def _told(self, sfu: str, counts: Mapping[Version, Counts], joins_per_s: float, *, now: float) -> None:
        self.standings.told(sfu, counts, too_fast=self._selector.is_too_fast(joins_per_s), now=now)

    def _as_decided(self, standing: Standing, there: InFlightThere | None) -> Standing:
        """How it stood with what the store had in flight when it decided."""
        if there is None:
            return standing
        counts = in_flight(there.counts, standing.version)
        now = replace(standing, in_flight=counts.rooms if self._selector.sort.per_room else counts.joins)
        return self._selector.behind(now, TOO_FAST) if self._selector.is_too_fast(there.joins_per_s) else now

    def _with_ours(self, plan: PlacementPlan) -> PlacementPlan:
        """The plan with what this router has in flight besides: it decides alone where a player goes that can't follow
        its room, and the store hears of that only afterwards."""
        per_room, in_flight = self._selector.sort.per_room, self.standings.in_flight

        def most(standing: Standing) -> Standing:
            ours = in_flight.of(standing.sfu, standing.version)
            return replace(standing, in_flight=max(standing.in_flight, ours.rooms if per_room else ours.joins))

        return replace(plan, candidates=tuple(sorted(map(most, plan.candidates), key=_order)))

    def _more(self, candidates: tuple[Standing, ...]) -> bool:
        """There are SFUs to offer besides these, should Redis know them to be over the cap on joins.

        When the best are known to be over it, all the others are, too.
        """
        if not self._selector.max_joins_per_s or self.standings.is_too_fast(candidates[0].sfu):
            return False
        return not self.standings.offers_all(len(candidates))

    def _usable(self, plan: PlacementPlan, sfu: str, *, now: float) -> bool:
        if not plan.claims_ignored and sfu in self.claims.doubted(plan.ask.room, now=now):
            return False
        refusal = self._directory.refusal(sfu, now=now)
        return refusal is None or (plan.last_hope and refusal is NotPlaceable.MISSING)

    def _offers(
        self, ask: Ask, doubted: Collection[str], *, now: float, rng: random.Random
    ) -> tuple[tuple[Standing, ...], bool, bool]:
        """The best few, from what the player and its room can best use to all there are; then whether the limit and
        whether the room's claims were ignored."""
        rungs: tuple[tuple[bool, Callable[[str], bool]], ...] = (
            (False, lambda sfu: ask.avoids(sfu) or sfu in doubted),
            (False, lambda sfu: sfu in doubted),
            (True, ask.avoids),
            (True, lambda _: False),
        )
        for ignored, avoid in rungs:
            candidates, limit_ignored = self.standings.best(ask.preference, avoid=avoid, now=now, rng=rng)
            if candidates:
                return candidates, limit_ignored, ignored
        return (), False, True

    def _doubts(self, doubted: Collection[str], *, now: float) -> tuple[Rejected, ...]:
        """SFUs that take work for all rooms but this one."""
        placeable = (sfu for sfu in sorted(doubted) if self._directory.refusal(sfu, now=now) is None)
        return tuple(Rejected(sfu, NotPlaceable.TREATED_AS_CORDONED.value) for sfu in placeable)

    def _leaving(self, ask: Ask, sfu: str) -> bool:
        """Not to be given back to this player at all: it leaves this SFU, in this incarnation, for a cordon."""
        if sfu != ask.leave or not ask.still_carried:
            return False
        state = self._directory.state(sfu)
        return state is None or state.incarnation <= ask.leave_version[0]

    @staticmethod
    def _why(plan: PlacementPlan, placed: PlacedRoom) -> PlacementReason:
        if not placed.fresh or placed.placement.sfu == plan.room_had:
            return PlacementReason.STICKY
        return PlacementReason.REPLACED if plan.room_had else PlacementReason.CHOSEN

    def _decision(self, plan: PlacementPlan, chosen: str | None, reason: PlacementReason) -> PlacementDecision:
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
            # Where the room is, for other reasons than its figure: a reader who asks why wants to see that one, too.
            candidates += (self.standings.of(chosen),)
        return PlacementDecision(
            chosen=chosen,
            reason=reason.value,
            candidates=candidates,
            rejected=tuple(each for each in plan.rejected if each.sfu != chosen) + avoided,
            kind=self._selector.node_selector_kind.value,
            sort_by=self._selector.sort_by.value,
            limit_ignored=plan.limit_ignored,
            room_had=plan.room_had,
        )


def _order(standing: Standing) -> Key:
    return standing.order
