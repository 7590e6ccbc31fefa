"""Which SFU a player is given (P1, P2, P6, D4): plan, ask the store, then look at the directory again.

Asking the store takes time in which an SFU may be cordoned. `settle` therefore checks once more; its caller puts the
answer on the wire in the same step of the event loop, so nothing can come between the check and the answer.
"""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from router.core.directory import Directory, NotPlaceable
from router.core.selector import Candidate, Decision, NodeSelector, Rejected
from shared.records import RoomPlacement

MAX_EXCLUDES = 16
"""SFUs a player may exclude in one request; more are ignored."""
_SOFT_REASONS = frozenset({"lost", "failed"})


class Reason(StrEnum):
    """What decided a placement."""

    STICKY = "sticky"
    """The room has an SFU that takes new work (P2)."""
    CHOSEN = "chosen"
    """The room had none; the selector's best."""
    REPLACED = "replaced"
    """The room's SFU takes no new work any more; the selector's best."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to ask the store: keep the room where it is if that is in `eligible`, else take the first."""

    ask: Ask
    eligible: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    limit_ignored: bool
    last_hope: bool = False
    """Nobody is placeable; `eligible` are those whose record is missing, which may be Redis' loss and not theirs."""
    room_had: str = ""
    """Where this router believed the room to be."""


class Assigner:
    """Plans and settles assignments against one directory."""

    def __init__(self, directory: Directory, selector: NodeSelector) -> None:
        self._directory = directory
        self._selector = selector

    def plan(self, ask: Ask, *, room_had: str, now: float, rng: random.Random) -> Plan:
        """Who is eligible, best first. Heeds the version that the player names of the SFU it leaves (invariant 1)."""
        if ask.leave:
            self._directory.claim(ask.leave, ask.leave_version)
        views = list(self._directory.views(now=now))
        last_hope = all(v.refused is not None for v in views)
        wanted = NotPlaceable.MISSING if last_hope else None
        ordering = self._selector.order((Candidate(v.sfu, v.state) for v in views if v.refused is wanted), rng=rng)
        refused = tuple(Rejected(v.sfu, v.refused.value) for v in views if v.refused not in (None, wanted))
        return Plan(
            ask=ask,
            eligible=ordering.order,
            rejected=refused + ordering.over_limit,
            limit_ignored=ordering.limit_ignored,
            last_hope=last_hope,
            room_had=room_had,
        )

    def place_locally(self, plan: Plan, known: RoomPlacement | None) -> RoomPlacement | None:
        """What the store would answer, from what this router last knew (invariant 5). None when nobody is eligible."""
        if known is not None and known.sfu in plan.eligible:
            return known
        if not plan.eligible:
            return None
        return RoomPlacement(sfu=plan.eligible[0], generation=known.generation + 1 if known else 1)

    def settle(
        self, plan: Plan, placement: RoomPlacement | None, *, carrying: Collection[str], now: float
    ) -> Decision | None:
        """The decision, checked against the directory as it is now; None: the world has changed, plan again.

        `carrying`: SFUs that carry something of the room; a player that can't use the room's SFU is best put there.
        """
        if placement is None:
            return self._decision(plan, None, Reason.NOBODY)
        if not self._usable(plan, placement.sfu, now=now):
            return None
        if not self._avoided(plan.ask, placement.sfu):
            return self._decision(plan, placement.sfu, self._why(plan, placement.sfu))
        others = [sfu for sfu in plan.eligible if not self._avoided(plan.ask, sfu) and self._usable(plan, sfu, now=now)]
        if others:
            there = [sfu for sfu in others if sfu in carrying]
            return self._decision(plan, (there or others)[0], Reason.EXCLUDED)
        if self._leaving(plan.ask, placement.sfu):
            return self._decision(plan, None, Reason.NOBODY)
        return self._decision(plan, placement.sfu, Reason.LAST_RESORT)

    def give_up(self, plan: Plan) -> Decision:
        """The fleet keeps changing faster than it can be asked: tell the player to retry."""
        return self._decision(plan, None, Reason.NOBODY)

    def _usable(self, plan: Plan, sfu: str, *, now: float) -> bool:
        refusal = self._directory.refusal(sfu, now=now)
        return refusal is None or (plan.last_hope and refusal is NotPlaceable.MISSING)

    def _leaving(self, ask: Ask, sfu: str) -> bool:
        """Not to be given back to this player at all: it leaves this SFU, in this incarnation, for a cordon."""
        if sfu != ask.leave or ask.reason in _SOFT_REASONS:
            return False
        state = self._directory.state(sfu)
        return state is None or state.incarnation <= ask.leave_version[0]

    def _avoided(self, ask: Ask, sfu: str) -> bool:
        return sfu == ask.leave or sfu in ask.exclude

    @staticmethod
    def _why(plan: Plan, sfu: str) -> Reason:
        if not plan.room_had:
            return Reason.CHOSEN if plan.eligible and plan.eligible[0] == sfu else Reason.STICKY
        return Reason.STICKY if plan.room_had == sfu else Reason.REPLACED

    def _decision(self, plan: Plan, chosen: str | None, reason: Reason) -> Decision:
        avoided = tuple(
            Rejected(sfu, "leaving" if sfu == plan.ask.leave else "excluded")
            for sfu in plan.eligible
            if sfu != chosen and self._avoided(plan.ask, sfu)
        )
        return Decision(
            chosen=chosen,
            reason=reason.value,
            order=plan.eligible,
            rejected=plan.rejected + avoided,
            kind=self._selector.kind.value,
            sort_by=self._selector.sort_by.value,
            limit_ignored=plan.limit_ignored,
        )
