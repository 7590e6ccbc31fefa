"""Random histories: whatever reports, nodes, pools, clocks, operators and leaders do, the autoscaler does no harm."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from control.core.autoscaler.effects import Terminate, TickDecision
from control.core.pool import NodePhase, PoolNode
from control.core.scaling_settings import ScalingSettings
from shared.scaling_records import AUTOSCALER, ScaleAction, ScalingState
from tests.budget import examples
from tests.fakes.scaling_rig import Controller, Done, Rig, Sfu

# A time-out within an example would look to hypothesis like a failing example.
pytestmark = pytest.mark.timeout(600)
SETTINGS = ScalingSettings(
    min_nodes=2,
    max_nodes=6,
    scale_in_ticks=4,
    scale_out_hits=2,
    scale_out_window=3,
    cooldown_s=150.0,
    launch_timeout_s=120.0,
    cordon_lease_s=600.0,
)
INDEX = st.integers(0, 20)
CHANGES = (ScaleAction.SCALE_OUT, ScaleAction.SCALE_IN, ScaleAction.CANCELLED)


@dataclass(frozen=True)
class Truth:
    """What really was before a tick."""

    sound: set[str]
    """Nodes that certainly carry work and say so."""
    nodes: Mapping[str, PoolNode]
    state: ScalingState
    unheard: bool
    """No report got through since the tick before, and none could be fresh."""


class Histories(RuleBasedStateMachine):
    """The rig, pushed about; what must hold is checked after each push, against what really happened."""

    @initialize(load=st.sampled_from([0.0, 0.1, 0.5, 0.9]))
    def begin(self, load: float) -> None:
        self.rig = Rig(SETTINGS, nodes=4)
        self.rig.load(load)
        self.paused: list[Controller] = []
        self.checked = 0

    # --- time and load ---

    @rule(ticks=st.integers(1, 8))
    def tick(self, ticks: int) -> None:
        for _ in range(ticks):
            before = self._truth()
            self._check_tick(self.rig.tick(), before)

    @rule(load=st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 0.9]), ticks=st.integers(0, 12))
    def load(self, load: float, ticks: int) -> None:
        for _ in range(ticks + 1):
            self.rig.load(load)
            if ticks:
                self.tick(1)

    @rule(
        load=st.sampled_from([0.1, 0.9]),
        ticks=st.integers(4, 10),
        jump_s=st.sampled_from([0.0, -200.0, 200.0]),
        trouble=st.sampled_from(["", "", "", "down", "partial"]),
    )
    def all_is_well_for_a_while(self, load: float, ticks: int, jump_s: float, trouble: str) -> None:
        """Without this most histories are too troubled for the pool ever to change."""
        self.rig.pool.down = self.rig.pool.partial = self.rig.pool.loses_answers = self.rig.deaf_store = False
        self.rig.routers_away = False
        for node in self.rig.sfus.keys() & self.rig.pool.nodes.keys():
            self.rig.call_failed(node, failed=False)
        for sfu in self.rig.sfus.values():
            sfu.silent, sfu.registered, sfu.warmed_up, sfu.cpu = False, True, True, 0.1
        self.load(load, ticks)
        self.clock_jumps(jump_s)
        if trouble:
            setattr(self.rig.pool, trouble, True)
        self.load(load, ticks)

    @rule(seconds=st.sampled_from([1.0, 40.0, 500.0]))
    def idle(self, seconds: float) -> None:
        self.rig.pass_time(seconds)

    @rule(jump_s=st.sampled_from([-86400.0, -200.0, -5.0, 5.0, 200.0, 86400.0]))
    def clock_jumps(self, jump_s: float) -> None:
        self.rig.clock_error_s += jump_s

    # --- nodes ---

    @rule(index=INDEX)
    def players_leave(self, index: int) -> None:
        if sfu := self._sfu(index):
            sfu.empty()

    @rule(index=INDEX)
    def players_leave_a_draining_node(self, index: int) -> None:
        draining = [sfu for sfu in self.rig.sfus.values() if sfu.by == AUTOSCALER]
        if draining:
            draining[index % len(draining)].empty()

    @rule(index=INDEX, streams=st.sampled_from([-1, 0, 1, 900, 10**9]), cpu=st.sampled_from([0.1, float("nan"), -1.0]))
    def reports_anything(self, index: int, streams: int, cpu: float) -> None:
        if (sfu := self._sfu(index)) and sfu.registered:  # no router has sent players to one that none knows
            sfu.streams, sfu.cpu = streams, cpu

    @rule(index=INDEX)
    def falls_silent_or_speaks_again(self, index: int) -> None:
        if sfu := self._sfu(index):
            sfu.silent = not sfu.silent

    @rule(index=INDEX)
    def record_vanishes_or_comes_back(self, index: int) -> None:
        if sfu := self._sfu(index):
            if sfu.registered:  # a record stands for longer than a tick
                self.tick(1)
            sfu.registered = not sfu.registered

    @rule(index=INDEX)
    def fails(self, index: int) -> None:
        if (sfu := self._sfu(index)) and sfu.sfu in self.rig.pool.nodes:
            self.rig.fail(sfu.sfu)

    @rule(index=INDEX)
    def platform_calls_it_failed_though_it_lives(self, index: int) -> None:
        if (sfu := self._sfu(index)) and sfu.sfu in self.rig.pool.nodes:
            self.rig.call_failed(sfu.sfu)

    @rule(index=INDEX)
    def restarts(self, index: int) -> None:
        if sfu := self._sfu(index):
            sfu.incarnation, sfu.revision, sfu.by, sfu.sigterm = sfu.incarnation + 1, 0, "", False
            sfu.empty()

    @rule(index=INDEX)
    def operator_cordons_or_uncordons(self, index: int) -> None:
        if sfu := self._sfu(index):
            sfu.by = "" if sfu.by else "kim"

    @rule(index=INDEX)
    def warms_up(self, index: int) -> None:
        if sfu := self._sfu(index):
            sfu.warmed_up = sfu.registered = True

    # --- pool, store and leaders ---

    @rule(what=st.sampled_from(["down", "partial", "loses_answers"]))
    def pool_trouble(self, what: str) -> None:
        setattr(self.rig.pool, what, not getattr(self.rig.pool, what))

    @rule()
    def routers_go_away_or_come_back(self) -> None:
        self.rig.routers_away = not self.rig.routers_away

    @rule()
    def launches_warm_or_not(self) -> None:
        self.rig.pool.launches_warm = not self.rig.pool.launches_warm

    @rule()
    def commands_get_lost_or_not(self) -> None:
        self.rig.deaf_store = not self.rig.deaf_store

    @rule(away_s=st.sampled_from([1.0, 15.0, 600.0]))
    def leader_changes(self, away_s: float) -> None:
        self.rig.new_leader("next")
        self.rig.pass_time(away_s)

    @rule(effects=st.integers(0, 2))
    def leader_dies_while_it_acts(self, effects: int) -> None:
        before = self._truth()
        self._check_tick(self.rig.tick(crash_after=effects), before)
        self.rig.new_leader("heir")

    @rule()
    def leader_is_paused_before_it_acts(self) -> None:
        before = self._truth()
        self.paused.append(self.rig.pause())
        self._check_tick(self.rig.decisions[-1][1], before)
        self.rig.new_leader("deputy")

    @precondition(lambda self: self.paused)
    @rule()
    def paused_leader_goes_on(self) -> None:
        state, token = self.rig.state, self.rig.token
        self.rig.resume(self.paused.pop())
        assert (self.rig.state, self.rig.token) == (state, token), "a late write went through"

    # --- what must hold ---

    @invariant()
    def one_change_a_cooldown(self) -> None:
        """Of decisions in real time, whatever clocks say; so a launch and a cordon are never within one either."""
        decided = [at for at, decision in self.rig.decisions if decision.action in CHANGES]
        assert all(later - earlier >= SETTINGS.cooldown_s for earlier, later in itertools.pairwise(decided))

    @invariant()
    def one_change_a_cooldown_as_the_pool_saw_it(self) -> None:
        """Also when calls and commands got lost and were repeated."""
        did = [done for done in self.rig.journal if done.what == "launch" or self._is_first_cordon(done)]
        for earlier, later in itertools.pairwise(did):
            assert later.at - earlier.at >= SETTINGS.cooldown_s or later.late or earlier.late, (earlier, later)

    @invariant()
    def every_request_made_one_node(self) -> None:
        """At a time: the late call of a paused leader finds the node that its heir has made, if it is still there."""
        made: dict[str, str] = {}
        for done in self.rig.journal:
            if done.what == "launch":
                assert done.request not in made.values()
                assert done.late or done.node not in self.ever(before=done)
                made[done.node] = done.request
            elif done.what in ("terminate", "sweep"):
                made.pop(done.node, None)

    def ever(self, *, before: Done) -> set[str]:
        """Nodes that were made before that."""
        return {done.node for done in self.rig.journal[: self.rig.journal.index(before)] if done.what == "launch"}

    @invariant()
    def nothing_that_carries_streams_was_ended(self) -> None:
        """But for what nothing can refuse: the late call of a paused leader for a node that had failed when it decided.
        That node drains, as at any SIGTERM."""
        assert all(done.streams in (0, None) or done.late for done in self.rig.done("terminate"))

    @invariant()
    def the_ceiling_holds(self) -> None:
        """But for what nothing can refuse: the late call of a paused leader, one node each."""
        late = sum(done.late for done in self.rig.done("launch"))
        assert len(self.rig.pool.nodes) <= SETTINGS.max_nodes + late

    @invariant()
    def the_store_keeps_what_it_can_read_back(self) -> None:
        assert len(self.rig.state.hits) <= SETTINGS.scale_out_window
        assert 0 <= self.rig.state.cooldown_left_s <= SETTINGS.cooldown_s

    # --- helpers ---

    def _sfu(self, index: int) -> Sfu | None:
        sfus = list(self.rig.sfus.values())
        return sfus[index % len(sfus)] if sfus else None

    def _is_first_cordon(self, done: Done) -> bool:
        """A cordon that takes a node out, and not the same order once more after a restart."""
        if done.what != "cordon" or self._gave_up(done.node):
            return False
        decided = max(at for at, each in self.rig.decisions if each.action is ScaleAction.SCALE_IN and at <= done.at)
        return not any(
            d.what == "cordon" and d.node == done.node and decided <= d.at < done.at for d in self.rig.journal
        )

    def _gave_up(self, node: str) -> bool:
        return any(r.node == node and r.action == ScaleAction.LAUNCH_GIVEN_UP for r in self.rig.audit)

    def _truth(self) -> Truth:
        nodes = dict(self.rig.pool.nodes)
        sound = {
            node
            for node, known in nodes.items()
            if known.phase is NodePhase.RUNNING and (sfu := self.rig.sfus.get(node)) and self._sound(sfu)
        }
        return Truth(sound, nodes, self.rig.state, self.rig.routers_away)

    def _check_sweeps(self, decision: TickDecision, before: Truth) -> None:
        """One failed node at most, and never under the floor; at the maximum it makes room for its replacement."""
        removing = {removal.node for removal in decision.state.removals}
        ended = [each.node for each in decision.effects if isinstance(each, Terminate) and each.node not in removing]
        assert len(ended) <= 1
        for node in ended:
            assert before.nodes[node].phase is NodePhase.FAILED
            left = before.nodes.keys() - removing - {node}
            assert len(left) >= SETTINGS.min_nodes or len(before.nodes) >= SETTINGS.max_nodes, "swept under the floor"

    @staticmethod
    def _expected(before: Truth) -> bool:
        """Some node must have been heard if anything could be: it runs, it is not new, and no removal ends it."""
        launch, removing = before.state.launch, {removal.node for removal in before.state.removals}
        return any(
            node.phase is NodePhase.RUNNING and name not in removing and not (launch and node.request == launch.request)
            for name, node in before.nodes.items()
        )

    @staticmethod
    def _sound(sfu: Sfu) -> bool:
        figures = 0 <= sfu.streams <= 10**6 and 0 <= sfu.cpu <= 1
        return figures and sfu.registered and not sfu.silent and sfu.warmed_up and not sfu.by and not sfu.sigterm

    def _check_tick(self, decision: TickDecision, before: Truth) -> None:
        """The floor, and that unknown is not zero, at the moment of a change."""
        self._check_sweeps(decision, before)
        sound = before.sound
        if decision.action in CHANGES:
            assert not (before.unheard and self._expected(before)), "changed a fleet of which no SFU is heard"
            assert not self.rig.pool.down, "changed a pool that did not answer"
            assert not self.rig.pool.partial, "changed a pool of which a part is unknown"
        if decision.action is not ScaleAction.SCALE_IN:
            return
        removed = {removal.node for removal in decision.state.removals}
        victim = decision.state.removals[-1].node
        assert victim in sound, "taken out though unknown"
        assert len(sound) - 1 >= SETTINGS.min_nodes, "under the floor"
        for node, known in self.rig.pool.nodes.items():
            sfu = self.rig.sfus.get(node)
            runs = known.phase is NodePhase.RUNNING and (sfu is None or (not sfu.by and not sfu.sigterm))
            cold = sfu is not None and sfu.registered and not sfu.warmed_up
            assert not runs or cold or node in sound | removed, f"scaled in while {node} was unknown"


TestHistories = Histories.TestCase
TestHistories.settings = settings(
    max_examples=examples(50),
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
