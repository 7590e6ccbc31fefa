"""Places a player: plan, ask Redis, settle, and answer in the same step of the event loop (D4, P3)."""

from __future__ import annotations

import logging
from collections.abc import Callable

from router.core.assignment import Ask, Plan
from router.core.placements import Placed
from router.core.selector import Decision
from router.shell.outbox import Outbox
from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.logs import fields
from shared.messages.player import AssignedSfu
from shared.records import RoomPlacement
from shared.tokens import SFU_TOKEN_TTL_S, ResumeClaims, SfuClaims, issue

MAX_ROUNDS = 8
"""Plans for one request; each further round means that the fleet changed while Redis was asked."""
log = logging.getLogger("router")


class Placing:
    """Placements of this router."""

    def __init__(self, state: RouterState, outbox: Outbox) -> None:
        self._state = state
        self._outbox = outbox

    async def place(
        self,
        ask: Ask,
        *,
        identity: str,
        deliver: Callable[[Decision], None],
        seen: RoomPlacement | None = None,
    ) -> None:
        """Decide, and call `deliver` with the decision before anything else can happen on this router.

        `seen`: where Redis has just said the room is, for a room that is not hosted here yet.
        """
        decision = await self._decide(ask, seen)
        # No await from the check in `_decide` to here: a coroutine's return does not yield to the event loop.
        deliver(decision)
        cause = ask.reason or ("reassign" if ask.leave else "join")
        placed = Placed(at=self._state.wall(), room=ask.room, identity=identity, cause=cause, decision=decision)
        self._state.placements.add(placed)
        self._state.metrics.placements.labels(decision.reason).inc()
        log.info("[place] %s", fields(**placed.line()))

    async def _decide(self, ask: Ask, seen: RoomPlacement | None) -> Decision:
        state = self._state
        for _ in range(MAX_ROUNDS):
            known = self._known(ask.room) or seen
            plan = state.assigner.plan(ask, room_had=known.sfu if known else "", now=state.mono(), rng=state.rng)
            placement = await self._ask(plan, known)
            room = state.rooms.get(ask.room)
            if room is not None and placement is not None:
                room.place(placement)
            carrying = room.carriers() if room else ()
            decision = state.assigner.settle(plan, placement, carrying=carrying, now=state.mono())
            if decision is not None:
                return decision
        return state.assigner.give_up(plan)

    async def _ask(self, plan: Plan, known: RoomPlacement | None) -> RoomPlacement | None:
        if not plan.eligible:
            return None
        try:
            placement = await self._state.need_store("place_room").place_room(plan.ask.room, plan.eligible)
        except StoreUnavailable:
            return self._state.assigner.place_locally(plan, known)
        if placement != known:
            self._outbox.wake(plan.ask.room)
        return placement

    def _known(self, room: str) -> RoomPlacement | None:
        hosted = self._state.rooms.get(room)
        return hosted.placement if hosted else None

    def assigned(self, sfu: str, claims: ResumeClaims, *, request: str = "") -> AssignedSfu:
        """The message that sends a player to `sfu`, with a token for it."""
        state = self._state.directory.state(sfu)
        assert state is not None  # `settle` has just seen it
        return AssignedSfu(
            sfu=sfu,
            address=state.address,
            token=self.sfu_token(sfu, claims, publish=claims.publish),
            incarnation=state.incarnation,
            revision=state.revision,
            request=request,
        )

    def sfu_token(self, sfu: str, claims: ResumeClaims, *, publish: bool) -> str:
        """Opens `sfu` for this player for a short time."""
        granted = SfuClaims(
            sfu=sfu,
            room=claims.room,
            player=claims.player,
            identity=claims.identity,
            name=claims.name,
            publish=publish,
            subscribe=claims.subscribe,
        )
        secret = self._state.config.secret
        return issue(granted, secret=secret, now_at=self._state.wall(), ttl_s=SFU_TOKEN_TTL_S)
