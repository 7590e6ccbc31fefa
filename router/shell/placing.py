"""Places a player: plan, ask Redis, settle, and answer in the same step of the event loop (D4, P3)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace

from router.core.ice_servers import ice_servers_for
from router.core.placements import line
from router.core.plan import Ask, PlacementPlan
from router.core.release import release_of
from router.core.room import MAX_PUBLICATIONS
from router.core.selector.decision import PlacementDecision
from router.core.selector.ladder import Preference
from router.core.sessions import Session
from router.shell.state import RouterState
from router.shell.store_writer import StoreWriter
from shared.errors import StoreUnavailable
from shared.logs import fields
from shared.messages.player import AssignedSfu, IceServer
from shared.placing import PlacedRoom, TooFast, Version
from shared.records import RoomPlacement, version_of
from shared.store.answers import RoomRecord
from shared.tokens import SFU_TOKEN_TTL_S, ResumeClaims, SfuClaims, issue

MAX_ROUNDS = 8
"""Plans for one request; each further round means that the fleet changed while Redis was asked."""
CAP_ROUNDS = 6
"""Of them, those in which SFUs over the cap on joins are left for others: six times eight are asked about at most."""
log = logging.getLogger("router")


class Placing:
    """Placements of this router."""

    def __init__(self, state: RouterState, writer: StoreWriter) -> None:
        self._state = state
        self._writer = writer

    async def place(
        self,
        ask: Ask,
        *,
        session: Session,
        deliver: Callable[[PlacementDecision], None],
        seen: RoomRecord | None = None,
    ) -> None:
        """Decide, and call `deliver` with the decision before anything else can happen on this router.

        `seen`: what Redis has just said of the room, for one that is not hosted here yet.
        """
        ask = replace(ask, preference=self._preference(ask.room, session, seen))
        decision, uncounted = await self._decide(ask, seen)
        # No await from the check in `_decide` to here: a coroutine's return does not yield to the event loop.
        deliver(decision)
        state = self._state
        record = state.placements.add(
            ask, decision, identity=session.claims.identity, player=session.player, at=state.wall()
        )
        if decision.chosen is not None:
            state.tries.sent(session, decision.chosen, self._incarnation(decision.chosen), now=state.mono())
        state.metrics.placements.labels(decision.reason).inc()
        log.info("[place] %s", fields(**line(record)))
        if uncounted is not None and decision.chosen is not None:
            await self._count(decision.chosen, uncounted)

    async def _decide(self, ask: Ask, seen: RoomRecord | None) -> tuple[PlacementDecision, Version | None]:
        """The decision; with it, when Redis is to be told of the join, the version of the report that decided."""
        state = self._state
        known = self._known(ask.room) or (seen.placement if seen else None)
        for round_ in range(MAX_ROUNDS):
            plan = state.assigner.plan(ask, room_had=known.sfu if known else "", now=state.mono(), rng=state.rng)
            try:
                placed = await self._ask(plan, known, last=round_ >= CAP_ROUNDS)
            except TooFast as answer:
                state.assigner.too_fast(plan, answer.in_flight, now=state.mono())
                continue
            room = state.rooms.get(ask.room)
            if placed is not None:
                known = placed.placement  # what stands there is what a next round may have to refuse
                plan = state.assigner.heed(plan, placed, now=state.mono())
                if room is not None:
                    room.place(placed.placement)
            carrying = room.carriers() if room else ()
            decision = state.assigner.settle(plan, placed, carrying=carrying, now=state.mono())
            if decision is not None:
                return decision, self._count_alone(plan, placed, decision)
        return state.assigner.give_up(plan), None

    async def _ask(self, plan: PlacementPlan, known: RoomPlacement | None, *, last: bool) -> PlacedRoom | None:
        """What Redis says, or this router while that is away; `last`: an SFU over the cap on joins is better than none.

        Raises `TooFast`.
        """
        if not plan.candidates:
            return None
        try:
            store = self._state.need_store("place_room")
            wish = replace(plan.wish, more=False) if last else plan.wish
            placed = await store.place_room(plan.ask.room, wish)
        except StoreUnavailable:
            return self._state.assigner.place_locally(plan, known)
        if placed.placement != known:
            self._writer.wake(plan.ask.room)
        return placed

    def _count_alone(
        self, plan: PlacementPlan, placed: PlacedRoom | None, decision: PlacementDecision
    ) -> Version | None:
        """Count a join that Redis has not: it is away, or the player went to another SFU than its room.

        In the second case the version to tell Redis: of the report that decided.
        """
        sfu = decision.chosen
        if sfu is None or placed is None:
            return None
        state = self._state
        home = sfu == placed.placement.sfu
        if home and sfu in placed.in_flight and plan.wish.join:
            return None
        known = state.directory.state(sfu)
        state.assigner.standings.placed_alone(sfu, rooms=int(placed.fresh and home), now=state.mono())
        answered = bool(placed.in_flight)
        return version_of(known) if answered and known is not None else None

    async def _count(self, sfu: str, version: Version) -> None:
        """Let the other routers know of a join that went elsewhere than its room."""
        state = self._state
        try:
            there = await state.need_store("count_join").count_join(sfu, version)
        except StoreUnavailable:
            return
        state.assigner.counted(sfu, there, now=state.mono())

    def _preference(self, name: str, session: Session, seen: RoomRecord | None) -> Preference:
        """The cell of the player, and the release that its room runs on."""
        state = self._state
        version, it = "", state.rooms.get(name) or seen
        if state.config.keep_version and it is not None:
            version = release_of(it.publications, it.players, it.placement, version=self._version)
        return Preference(cell=session.claims.cell, version=version)

    def _version(self, sfu: str) -> str:
        known = self._state.directory.state(sfu)
        return known.version if known else ""

    def _incarnation(self, sfu: str) -> int:
        known = self._state.directory.state(sfu)
        return known.incarnation if known else 0

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
            ice_servers=self.ice_servers(claims),
        )

    def ice_servers(self, claims: ResumeClaims) -> tuple[IceServer, ...]:
        """What helps this player to connect; with new credentials each time, because a call may outlast old ones."""
        return ice_servers_for(self._state.config.ice, claims.player, now_at=self._state.wall())

    def _owned(self, claims: ResumeClaims) -> tuple[str, ...]:
        room = self._state.rooms.get(claims.room)
        return tuple(sorted(room.owned_by(claims.player, claims.identity))[:MAX_PUBLICATIONS]) if room else ()

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
            publications=self._owned(claims) if publish else (),
        )
        secret = self._state.config.secret
        return issue(granted, secret=secret, now_at=self._state.wall(), ttl_s=SFU_TOKEN_TTL_S)
