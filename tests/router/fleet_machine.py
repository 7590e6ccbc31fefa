"""Routers, SFUs and players on a network that delays, drops, doubles and reorders everything, as a hypothesis machine.

It drives the router's real core (directory, assigner, rooms, teller) and the store's rules in memory. The oracle is the
SFUs' own history: an assignment names the state it was based on, and that state must be newer than any cordon which a
player has heard of from that router, and must say ONLINE (invariant 1, D4). What a player heard elsewhere binds its
router for the player's room, as far as the SFU can have come since, and never about the last SFU that takes work.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from router.core.assignment import Assigner
from router.core.directory import Directory
from router.core.plan import Ask, PlacementPlan
from router.core.rooms import HostedRooms
from router.core.selector.node_selector import NodeSelector, SortBy
from router.core.sessions import Session
from router.core.teller import Teller
from shared.messages.player import CordonedSfu
from shared.placing import PlacedRoom, Version
from shared.records import SfuState, SfuStatus, status_of, version_of
from shared.tokens import ResumeClaims
from tests.fakes.hostile_store import HostileCore
from tests.fakes.store_core import StoreCore

ROUTERS = ("r1", "r2", "r3")
SFUS = ("s1", "s2", "s3")
PLAYERS = ("ann", "bob", "cem", "dee")
INDEX = st.integers(0, 63)


@dataclass
class Player:
    """What a player knows: the newest cordon it heard of, per SFU, from whatever router."""

    name: str
    room: str
    router: str
    cordons: dict[str, Version] = field(default_factory=dict)


class Wire:
    """A player's websocket: what is put on it is heard at once, which is the hardest case for "state first"."""

    def __init__(self, node: Node, player: Player) -> None:
        self.node = node
        self.player = player

    def put(self, frame: Any) -> None:
        if isinstance(frame, CordonedSfu):
            version = (frame.incarnation, frame.revision)
            told = self.node.told
            told[frame.sfu] = max(version, told.get(frame.sfu, (0, 0)))
            self.player.cordons[frame.sfu] = max(version, self.player.cordons.get(frame.sfu, (0, 0)))

    def end(self, code: int, reason: str) -> None:
        """Nothing to do."""


class Node:
    """One router: the real core, with a bad network to SFUs and to the store."""

    def __init__(self, name: str, store: StoreCore, directory: Directory, assigner: type[Assigner]) -> None:
        self.name = name
        self.directory = directory
        self.assigner = assigner(directory, NodeSelector(sort_by=SortBy.RANDOM))
        self.rooms = HostedRooms(resume_window_s=25.0)
        self.teller = Teller(self.rooms, encode=lambda message: message)  # type: ignore[arg-type,return-value]
        self.net = HostileCore(store)
        self.links: list[SfuState] = []
        """Link messages on their way here."""
        self.latest: dict[str, SfuState] = {}
        """What this router would write to the store: what its links said last."""
        self.told: dict[str, Version] = {}
        """The newest cordon that any player heard of from this router."""
        self.claimed: dict[tuple[str, str], Version] = {}
        """(Room, SFU): the newest cordon that a player of the room has named here."""
        self.waiting: dict[int, tuple[Player, PlacementPlan]] = {}
        self.asked = 0

    def hear(self, state: SfuState, *, now: float) -> None:
        """As the router's link handler does it."""
        facts = self.directory.hear(state, now=now)
        self.directory.link(state.sfu, now=now)
        self.teller.tell(facts)
        if version_of(state) >= version_of(self.latest.get(state.sfu, state)):
            self.latest[state.sfu] = state

    def read(self, states: list[SfuState], *, now: float) -> None:
        """As the router's exchange with the store does it."""
        self.teller.tell(self.directory.read_back(states, now=now))


class FleetMachine(RuleBasedStateMachine):
    """The fleet. Subclasses break one of the `made_of` parts to show that the machine notices."""

    directory_class: ClassVar[type[Directory]] = Directory
    assigner_class: ClassVar[type[Assigner]] = Assigner
    assignments = 0
    """How many were checked in all runs: a machine that never assigns proves nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.rng = random.Random(7)
        self.store = StoreCore(lambda: 1_800_000_000.0 + self.now)
        self.nodes = {n: Node(n, self.store, self.directory_class(), self.assigner_class) for n in ROUTERS}
        self.sfus = {
            s: SfuState(sfu=s, address=f"ws://{s}", incarnation=1, revision=0, status=SfuStatus.ONLINE.value)
            for s in SFUS
        }
        self.history: dict[str, dict[Version, SfuStatus]] = {s: {} for s in SFUS}
        self.people = [Player(name, f"room-{i % 2}", ROUTERS[i % 2]) for i, name in enumerate(PLAYERS)]

    @initialize()
    def everybody_is_there(self) -> None:
        for sfu in SFUS:
            self._speaks(sfu)
        for node in self.nodes.values():
            while node.links:
                node.hear(node.links.pop(0), now=self.now)
        for player in self.people:
            self._sit_down(player)

    # --- SFUs ---

    @rule(sfu=st.sampled_from(SFUS))
    def sfu_reports(self, sfu: str) -> None:
        self._speaks(sfu)

    @rule(sfu=st.sampled_from(SFUS))
    def sfu_cordons(self, sfu: str) -> None:
        self._speaks(sfu, status=SfuStatus.CORDONED.value)

    @rule(sfu=st.sampled_from(SFUS), heard_by=st.integers(0, 1))
    def sfu_cordons_and_one_router_hears(self, sfu: str, heard_by: int) -> None:
        self._speaks(sfu, status=SfuStatus.CORDONED.value)
        node = self._linked(sfu)[heard_by]
        node.hear(node.links.pop(), now=self.now)

    @rule(sfu=st.sampled_from(SFUS))
    def sfu_uncordons(self, sfu: str) -> None:
        self._speaks(sfu, status=SfuStatus.ONLINE.value)

    @rule(sfu=st.sampled_from(SFUS))
    def sfu_terminates(self, sfu: str) -> None:
        self._speaks(sfu, status=SfuStatus.TERMINATING.value)

    @rule(sfu=st.sampled_from(SFUS))
    def sfu_restarts(self, sfu: str) -> None:
        incarnation = self.sfus[sfu].incarnation + 1
        self._speaks(sfu, status=SfuStatus.ONLINE.value, incarnation=incarnation, revision=0)

    @rule(late=st.sampled_from([None, *ROUTERS]))
    def fleet_is_well_again(self, late: str | None) -> None:
        """Every SFU takes players, and every router knows, except perhaps one."""
        for sfu in SFUS:
            incarnation = self.sfus[sfu].incarnation + (self.sfus[sfu].status == SfuStatus.TERMINATING.value)
            self._speaks(sfu, status=SfuStatus.ONLINE.value, incarnation=incarnation)
        for node in self.nodes.values():
            if node.name != late:
                self._deliver_newest(node)
                self.router_puts(node.name)
                node.net.settle()
        for node in self.nodes.values():
            if node.name != late:
                self.router_reads(node.name)
                node.net.settle()

    def _deliver_newest(self, node: Node) -> None:
        for state in {state.sfu: state for state in node.links}.values():
            node.hear(state, now=self.now)

    def _speaks(self, sfu: str, **changes: Any) -> None:
        state = msgspec.structs.replace(self.sfus[sfu], **changes)
        state = self.sfus[sfu] = msgspec.structs.replace(state, revision=state.revision + 1)
        self.history[sfu][version_of(state)] = status_of(state)
        for node in self._linked(sfu):
            node.links.append(state)

    def _linked(self, sfu: str) -> list[Node]:
        """Each SFU is linked to two of the three routers; the third lives by the store alone."""
        first = SFUS.index(sfu)
        return [self.nodes[ROUTERS[first]], self.nodes[ROUTERS[(first + 1) % len(ROUTERS)]]]

    # --- the network between SFUs and routers ---

    @rule(router=st.sampled_from(ROUTERS), indexes=st.lists(INDEX, min_size=1, max_size=8))
    def link_delivers(self, router: str, indexes: list[int]) -> None:
        node = self.nodes[router]
        for index in indexes:
            if node.links:
                node.hear(node.links.pop(index % len(node.links)), now=self.now)

    @rule(router=st.sampled_from(ROUTERS))
    def link_delivers_the_newest(self, router: str) -> None:
        node = self.nodes[router]
        if node.links:
            node.hear(node.links.pop(), now=self.now)

    @rule(router=st.sampled_from(ROUTERS), index=INDEX)
    def link_drops(self, router: str, index: int) -> None:
        node = self.nodes[router]
        if node.links:
            node.links.pop(index % len(node.links))

    @rule(router=st.sampled_from(ROUTERS), index=INDEX)
    def link_doubles(self, router: str, index: int) -> None:
        node = self.nodes[router]
        if node.links:
            node.links.append(node.links[index % len(node.links)])

    @rule(router=st.sampled_from(ROUTERS), sfu=st.sampled_from(SFUS))
    def link_breaks(self, router: str, sfu: str) -> None:
        self.nodes[router].directory.unlink(sfu, now=self.now)

    @rule(router=st.sampled_from(ROUTERS), sfu=st.sampled_from(SFUS))
    def sfu_says_goodbye(self, router: str, sfu: str) -> None:
        if self.sfus[sfu].status == SfuStatus.TERMINATING.value:
            node = self.nodes[router]
            node.teller.tell(node.directory.unregister(sfu))
            node.net.send("remove_sfu", sfu, self.sfus[sfu].incarnation)

    # --- the network between routers and the store ---

    @rule(router=st.sampled_from(ROUTERS))
    def router_puts(self, router: str) -> None:
        node = self.nodes[router]
        for state in node.latest.values():
            node.net.send("put_sfu", state)

    @rule(router=st.sampled_from(ROUTERS))
    def router_reads(self, router: str) -> None:
        node = self.nodes[router]
        node.net.send("read_sfus", reply=lambda states: node.read(states, now=self.now))

    @rule(router=st.sampled_from(ROUTERS), indexes=st.lists(INDEX, min_size=1, max_size=8))
    def calls_arrive(self, router: str, indexes: list[int]) -> None:
        for index in indexes:
            self.nodes[router].net.arrive(index)

    @rule(router=st.sampled_from(ROUTERS), index=INDEX)
    def call_is_lost(self, router: str, index: int) -> None:
        self.nodes[router].net.lose_call(index)

    @rule(router=st.sampled_from(ROUTERS), index=INDEX)
    def call_is_doubled(self, router: str, index: int) -> None:
        self.nodes[router].net.double(index)

    @rule(router=st.sampled_from(ROUTERS), indexes=st.lists(INDEX, min_size=1, max_size=8))
    def answers_arrive(self, router: str, indexes: list[int]) -> None:
        for index in indexes:
            self.nodes[router].net.answer(index)

    @rule(router=st.sampled_from(ROUTERS))
    def network_is_good_for_once(self, router: str) -> None:
        self.nodes[router].net.settle()

    @rule(router=st.sampled_from(ROUTERS))
    def store_is_lost(self, router: str) -> None:
        self.nodes[router].directory.lose_store(now=self.now)

    @rule(router=st.sampled_from(ROUTERS))
    def store_is_back(self, router: str) -> None:
        self.nodes[router].directory.see_store(now=self.now)

    @rule()
    def store_loses_everything(self) -> None:
        self.store.lose_everything()

    # --- time ---

    @rule(seconds=st.sampled_from([0.1, 1.0, 4.0, 16.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        for node in self.nodes.values():
            node.teller.tell(node.directory.tick(now=self.now))

    # --- players ---

    @rule(index=st.integers(0, len(PLAYERS) - 1))
    def player_joins(self, index: int) -> None:
        player = self.people[index]
        self._ask(player, Ask(room=player.room))

    @rule(index=st.integers(0, len(PLAYERS) - 1))
    def player_joins_at_once(self, index: int) -> None:
        self.player_joins(index)
        self.nodes[self.people[index].router].net.settle()

    @rule(index=st.integers(0, len(PLAYERS) - 1), sfu=st.sampled_from(SFUS), heard_by=st.integers(0, 1))
    def cordon_comes_while_the_store_is_asked(self, index: int, sfu: str, heard_by: int) -> None:
        self.player_joins(index)
        self.sfu_cordons_and_one_router_hears(sfu, heard_by)
        self.nodes[self.people[index].router].net.settle()

    @rule(index=st.integers(0, len(PLAYERS) - 1), router=st.sampled_from(ROUTERS), exclude=st.sampled_from(SFUS))
    def player_leaves_a_cordoned_sfu(self, index: int, router: str, exclude: str) -> None:
        """It asks its router, or another one on which it has just resumed and which may not know yet."""
        player = self.people[index]
        if player.cordons:
            self.player_resumes_elsewhere(index, router)
            sfu = self.rng.choice(sorted(player.cordons))
            ask = Ask(
                room=player.room, leave=sfu, leave_version=player.cordons[sfu], exclude=(exclude,), reason="cordoned"
            )
            self._ask(player, ask)

    @rule(index=st.integers(0, len(PLAYERS) - 1), router=st.sampled_from(ROUTERS))
    def player_resumes_elsewhere(self, index: int, router: str) -> None:
        player = self.people[index]
        player.router = router
        self._sit_down(player)

    def _sit_down(self, player: Player) -> None:
        """Its session is on its router, in a room that touches every SFU, so that it hears of each cordon."""
        for node in self.nodes.values():
            room = node.rooms.host(player.room)
            session = room.sessions.get(player.name)
            if session is not None and node.name != player.router:
                node.rooms.hand_over(session)
        node = self.nodes[player.router]
        claims = ResumeClaims(player=player.name, room=player.room, identity=player.name, epoch=1)
        session = Session(claims, wire=Wire(node, player), home_at=0.0)
        room = node.rooms.host(player.room)
        node.rooms.attach(room, session)
        room.attach(session, session.record(router=node.name))
        for sfu, state in zip(SFUS, self.sfus.values(), strict=True):
            visitor = ResumeClaims(player=f"on-{sfu}", room=player.room, identity=f"on-{sfu}", epoch=1)
            record = Session(visitor, wire=None, home_at=0.0).record(router="elsewhere")
            room.put_player(msgspec.structs.replace(record, sfu=state.sfu))

    def _ask(self, player: Player, ask: Ask, *, stands: str = "") -> None:
        """`stands`: where the store has just said that the room is."""
        node = self.nodes[player.router]
        room = node.rooms.host(player.room)
        had = stands or (room.placement.sfu if room.placement else "")
        plan = node.assigner.plan(ask, room_had=had, now=self.now, rng=self.rng)
        if ask.leave:
            # A lagging router treats the SFU as cordoned for this room from now on, as if it had told this itself.
            claim = (player.room, ask.leave)
            node.claimed[claim] = max(ask.leave_version, node.claimed.get(claim, (0, 0)))
        if plan.claims_ignored:
            takers = [s for s in SFUS if node.directory.refusal(s, now=self.now) is None]
            assert all(self._claimed(node, player.room, s) for s in takers), "told of another SFU that takes work"
        if not plan.eligible:
            return
        node.asked += 1
        number = node.asked
        node.waiting[number] = (player, plan)

        def answered(placed: PlacedRoom) -> None:
            if number in node.waiting:
                self._settle(node, *node.waiting.pop(number), placed)

        node.net.send("place_room", player.room, plan.wish, reply=answered)

    @rule(router=st.sampled_from(ROUTERS), index=INDEX)
    def store_does_not_answer_in_time(self, router: str, index: int) -> None:
        """The router decides alone (invariant 5)."""
        node = self.nodes[router]
        if node.waiting:
            player, plan = node.waiting.pop(list(node.waiting)[index % len(node.waiting)])
            room = node.rooms.host(player.room)
            placed = node.assigner.place_locally(plan, room.placement)
            self._settle(node, player, plan, placed)

    def _settle(self, node: Node, player: Player, plan: PlacementPlan, placed: PlacedRoom | None) -> None:
        """As the router's placing does it: settle, and when that holds, answer in the same step."""
        room = node.rooms.host(player.room)
        if placed is not None:
            room.place(placed.placement)
            plan = node.assigner.heed(plan, placed, now=self.now)
        decision = node.assigner.settle(plan, placed, carrying=room.carriers(), now=self.now)
        if decision is None:
            self._ask(player, plan.ask, stands=placed.placement.sfu if placed else "")
        elif decision.chosen is not None:
            state = node.directory.state(decision.chosen)
            assert state is not None
            self._check_assignment(node, player, plan, decision.chosen, version_of(state))

    def _check_assignment(self, node: Node, player: Player, plan: PlacementPlan, sfu: str, version: Version) -> None:
        type(self).assignments += 1
        assert self.history[sfu][version] is SfuStatus.ONLINE, "assigned by a state that did not say ONLINE"
        told = node.told.get(sfu, (0, 0))
        assert version > told, f"{node.name} told players of {sfu} cordoned at {told}, then assigned it by {version}"
        if not plan.claims_ignored:
            assert not self._claimed(node, player.room, sfu), f"{node.name} was told by the room that {sfu} is cordoned"
        if plan.ask.leave == sfu:
            assert version[0] > plan.ask.leave_version[0], "given back the SFU it leaves"

    @staticmethod
    def _claimed(node: Node, room: str, sfu: str) -> bool:
        """A player of the room has named a cordon of this run of the SFU that the router has not got to yet."""
        claimed, state = node.claimed.get((room, sfu), (0, 0)), node.directory.state(sfu)
        return state is not None and claimed[0] == state.incarnation and claimed[1] > state.revision

    # --- after every step, on every router ---

    @invariant()
    def told_is_excluded(self) -> None:
        for node in self.nodes.values():
            for sfu, told in node.told.items():
                if node.directory.refusal(sfu, now=self.now) is None:
                    state = node.directory.state(sfu)
                    assert state is not None
                    assert version_of(state) > told, f"{node.name} told {sfu} cordoned at {told} but would place there"

    @invariant()
    def claimed_is_excluded_for_the_room(self) -> None:
        for node in self.nodes.values():
            for room, sfu in node.claimed:
                if self._claimed(node, room, sfu):
                    plan = node.assigner.plan(Ask(room=room), room_had=sfu, now=self.now, rng=self.rng)
                    offered = {*plan.eligible, *((plan.keep.sfu,) if plan.keep else ())}
                    assert plan.claims_ignored or sfu not in offered, (
                        f"{node.name} was told of {sfu}, would place there"
                    )
