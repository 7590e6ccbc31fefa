"""A roll, look by look: replacement first, one at a time, paused with a reason, gone on with after anything (D13)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from operators.core.roll.aborting import abort, aborted
from operators.core.roll.following import follow
from operators.core.roll.health import RouterHealth, grown, read_health
from operators.core.roll.news import roll_news, state_words
from operators.core.roll.planning import RollOrder, make_plan, rolled_next
from operators.core.roll.report import report_of
from operators.core.roll.routers import RESUME_WITHIN_S
from operators.core.roll.seen import RolledSfu
from operators.core.roll.troubles import GONE_WITHIN_S, ROUTER_WITHIN_S
from shared.errors import BadSetting, Refused
from shared.placement_records import PlacementRecord
from shared.records import DrainReport, SfuStatus
from shared.roll_records import RollRecord, RollState
from tests.operators.core.roll.world import RollWorld


@pytest.fixture
def it() -> RollWorld:
    world = RollWorld("a", "b", "c")
    world.begin()
    return world


def test_each_sfu_gets_its_replacement_first(it: RollWorld) -> None:
    assert it.look_on().state == RollState.DONE
    assert it.told == [
        f"{verb} {sfu}" for x in "abc" for verb, sfu in (("start", f"{x}-v2"), ("drain", x), ("stop", x))
    ]
    assert set(it.sfus) == {"a-v2", "b-v2", "c-v2"}
    assert (it.most_active, it.fewest_ready) == (1, 3)
    assert [step.report is not None for step in it.roll.steps] == [True] * 3


def test_the_surge_is_how_many_are_replaced_at_a_time() -> None:
    it = RollWorld("a", "b", "c")
    it.begin(surge=2)
    assert it.look_on().state == RollState.DONE
    assert (it.most_active, it.fewest_ready) == (2, 3)
    assert it.told[:2] == ["start a-v2", "start b-v2"]


def test_with_a_spare_all_others_keep_their_ids() -> None:
    it = RollWorld("a", "b")
    it.begin(spares=("spare",))
    assert it.look_on().state == RollState.DONE
    want = "start spare, drain a, stop a, start a, drain b, stop b, start b, drain spare, stop spare"
    assert ", ".join(it.told) == want
    assert {sfu: each.version for sfu, each in it.sfus.items()} == {"a": "v2", "b": "v2"}
    assert it.fewest_ready == 2


def test_placement_hears_of_all_whose_turn_is_to_come(it: RollWorld) -> None:
    assert rolled_next(it.roll) == {"a", "b", "c"}
    it.slow = {"a"}
    for _ in range(5):
        it.look()
    assert it.roll.steps[0].stage == "draining"
    assert rolled_next(it.roll) == {"b", "c"}


def test_a_spare_is_a_place_to_go_to_until_one_that_stays_is_up() -> None:
    it = RollWorld("a", "b")
    it.begin(spares=("spare",))
    seen: list[set[str]] = []
    while it.roll.state == RollState.RUNNING:
        it.look()
        if rolled_next(it.roll) not in seen:
            seen.append(rolled_next(it.roll))
    assert seen == [{"a", "b"}, {"b"}, {"spare"}, set()]


# --- pauses ---


def paused(it: RollWorld, why: str) -> None:
    assert it.look_on().state == RollState.PAUSED
    assert why in it.roll.pause
    before = list(it.told)
    it.look()
    assert it.told == before, "a paused roll begins nothing"
    assert "sluice roll" in state_words(it.roll)


def test_it_pauses_when_a_replacement_never_warms_up_and_goes_on_once_it_does(it: RollWorld) -> None:
    it.cold = {"b-v2"}
    paused(it, "b-v2 has not warmed up within")
    assert it.now - 1000 > it.roll.warm_up_within_s
    assert "b" in it.sfus, "nothing was drained for it"
    it.go_on()
    it.look()
    assert it.roll.state == RollState.RUNNING, "the time-out begins again"
    it.cold = set()
    assert it.look_on().state == RollState.DONE


def test_it_pauses_when_a_replacement_can_t_be_started(it: RollWorld) -> None:
    it.broken = {"a-v2"}
    paused(it, "a-v2 could not be started: no such image")
    it.go_on()
    it.broken = set()
    assert it.look_on().state == RollState.DONE


def test_it_pauses_when_a_replacement_comes_up_as_another_release(it: RollWorld) -> None:
    it.look()
    it.sfus["a-v2"] = replace(it.sfus["a-v2"], version="v1")
    paused(it, "came up as release 'v1'")


@pytest.mark.parametrize(("what", "why"), [("failed", "2 players could not connect"), ("freezes", "2 moves had a gap")])
def test_it_pauses_on_a_failed_connection_and_on_a_freeze(it: RollWorld, what: str, why: str) -> None:
    it.look()
    setattr(it, what, 2)
    paused(it, why)
    it.go_on()
    assert it.look_on().state == RollState.DONE
    assert report_of(it.roll, now=it.now).failed_connections + report_of(it.roll, now=it.now).freezes == 2


def test_it_pauses_when_media_gets_through_for_fewer_players_than_before() -> None:
    it = RollWorld("a", "b", routers=1)
    it.routers["router-1"] = replace(it.routers["router-1"], without_media=1)
    it.begin(routers=False)
    it.look()
    it.routers["router-1"] = replace(it.routers["router-1"], without_media=2)
    it.look()
    assert it.roll.state == RollState.RUNNING, "for a moment is no reason"
    it.routers["router-1"] = replace(it.routers["router-1"], without_media=1)
    it.look()
    it.slow = {"a", "b"}
    it.routers["router-1"] = replace(it.routers["router-1"], without_media=2)
    paused(it, "does not get through for 2 players, and for 1 when")
    it.go_on()
    it.slow = set()
    assert it.look_on().state == RollState.DONE


def test_it_pauses_when_the_one_that_drains_dies(it: RollWorld) -> None:
    it.slow = {"a"}
    for _ in range(5):
        it.look()
    it.die("a")
    at = it.now
    paused(it, "a is gone and left no drain report")
    assert it.now - at > GONE_WITHIN_S
    it.go_on()
    assert it.look_on().state == RollState.DONE, "what an operator has read is forgiven"


def test_it_pauses_when_one_dies_before_its_turn(it: RollWorld) -> None:
    it.look()
    it.die("c")
    paused(it, "c has ended before its turn")
    it.go_on()
    assert it.look_on().state == RollState.DONE
    assert "c-v2" in it.sfus, "it is replaced nevertheless"


def test_one_that_an_operator_drains_before_its_turn_is_replaced_without_a_pause(it: RollWorld) -> None:
    it.look()
    it.end("c")
    assert it.look_on().state == RollState.DONE
    assert "c-v2" in it.sfus


def test_it_pauses_when_a_replacement_dies(it: RollWorld) -> None:
    it.slow = {"b"}
    while it.roll.steps[0].stage != "done":
        it.look()
    it.die("a-v2")
    paused(it, "a-v2, which replaces a, is gone")


def test_it_pauses_when_players_were_cut(it: RollWorld) -> None:
    it.slow = {"a"}
    while not it.roll.steps[0].cordoned:
        it.look()
    it.end("a", evicted=1)
    paused(it, "a ended with 1 player on it")
    it.go_on()
    it.slow = set()
    assert it.look_on().state == RollState.DONE


def test_it_pauses_when_a_drain_is_taken_back_and_drains_again(it: RollWorld) -> None:
    it.slow = {"a"}
    while not it.roll.steps[0].cordoned:
        it.look()
    it.sfus["a"] = replace(it.sfus["a"], status=SfuStatus.ONLINE)
    paused(it, "a takes players again")
    it.slow = set()
    it.go_on()
    assert it.look_on().state == RollState.DONE
    assert it.told.count("drain a") == 2


def test_the_report_of_an_earlier_drain_under_the_same_id_counts_for_nothing() -> None:
    it = RollWorld("a")
    it.reports = (DrainReport(sfu="a", to_exit_s=3.0, evicted=7),)
    it.begin()
    assert it.look_on().state == RollState.DONE
    assert it.roll.steps[0].report is not None
    assert it.roll.steps[0].report.evicted == 0


def test_a_drain_that_goes_on_is_not_ordered_again_by_the_next_command(it: RollWorld) -> None:
    """Elsewhere a second order for a graceful end has started its time again (jitsi-videobridge 1756)."""
    it.slow = {"a"}
    while not it.roll.steps[0].cordoned:
        it.look()
    it.go_on()
    it.look()
    assert it.told.count("drain a") == 1


# --- routers ---


def test_routers_are_restarted_one_at_a_time_before_the_sfus() -> None:
    it = RollWorld("a", routers=2)
    it.begin()
    it.look()
    assert it.told == ["restart router-1"]
    it.routers["router-1"] = replace(it.routers["router-1"], silent=True)
    for _ in range(5):
        it.look()
    assert it.told == ["restart router-1"], "the next only when all are back"
    it.routers["router-1"] = replace(it.routers["router-1"], silent=False)
    assert it.look_on().state == RollState.DONE
    assert it.told[:3] == ["restart router-1", "restart router-2", "start a-v2"]


def test_the_next_router_waits_for_players_to_resume_but_not_for_ever() -> None:
    it = RollWorld("a", routers=2)
    it.begin()
    it.look()
    it.routers["router-1"] = replace(it.routers["router-1"], players=0)
    at = it.now
    while "restart router-2" not in it.told:
        it.look()
    assert RESUME_WITHIN_S <= it.now - at < RESUME_WITHIN_S + 5


def test_a_router_that_does_not_come_back_pauses_the_roll() -> None:
    it = RollWorld("a", routers=2)
    it.begin()
    it.look()
    it.routers["router-1"] = replace(it.routers["router-1"], silent=True)
    at = it.now
    paused(it, "router-1 is not back")
    assert it.now - at > ROUTER_WITHIN_S


# --- plans ---


def test_what_has_the_release_stays_and_a_finished_roll_is_said(it: RollWorld) -> None:
    it.sfus["b"] = replace(it.sfus["b"], version="v2")
    it.begin()
    assert [step.old for step in it.roll.steps] == ["a", "c"]
    it.look_on()
    with pytest.raises(Refused, match="every SFU runs 'v2' already"):
        it.begin()


def test_names_of_replacements_do_not_grow_with_each_release() -> None:
    it = RollWorld("sfu-1", version="v1")
    for version, name in (("v2", "sfu-1-v2"), ("v3/x", "sfu-1-v3-x"), ("v3/x", "sfu-1-v3-x.2"), ("v4", "sfu-1-v4")):
        plan = make_plan(
            RollOrder(version="" if version in {each.version for each in it.sfus.values()} else version),
            it.seen(),
            roll="r",
            by="",
            platform="",
            now=0.0,
        )
        assert [step.new for step in plan.steps] == [name]
        it.sfus = {name: RolledSfu(run=9, version=version)}


def test_without_a_release_all_must_have_the_same(it: RollWorld) -> None:
    it.begin("")
    assert it.roll.version == "v1"
    it.sfus["b"] = replace(it.sfus["b"], version="v2")
    with pytest.raises(BadSetting, match="SFUs run 'v1', 'v2'; say which"):
        it.begin("")


@pytest.mark.parametrize(
    "order", [{"surge": 0}, {"surge": 101}, {"warm_up_within_s": 0.0}, {"warm_up_within_s": float("nan")}]
)
def test_bad_settings_are_refused(it: RollWorld, order: dict[str, Any]) -> None:
    with pytest.raises(BadSetting):
        make_plan(RollOrder(version="v2", **order), it.seen(), roll="r", by="", platform="", now=0.0)


def test_a_spare_that_runs_already_is_refused(it: RollWorld) -> None:
    with pytest.raises(BadSetting, match="b runs already, as release 'v1'"):
        it.begin(spares=("b",))


def test_a_spare_of_a_roll_whose_plan_was_lost_is_used_again() -> None:
    it = RollWorld("a", "b")
    it.begin(spares=("spare",))
    it.slow = {"b"}
    while it.roll.steps[1].stage != "draining":
        it.look()
    it.sfus["b"] = replace(it.sfus["b"], status=SfuStatus.ONLINE)
    it.begin(spares=("spare",))
    it.slow = set()
    assert [(step.new, step.old) for step in it.roll.steps] == [("spare", "b"), ("b", "spare")]
    assert it.look_on().state == RollState.DONE
    assert {sfu: each.version for sfu, each in it.sfus.items()} == {"a": "v2", "b": "v2"}


# --- taking it back ---


def test_an_abort_lifts_cordons_and_names_what_it_can_t_take_back() -> None:
    it = RollWorld("a", "b", "c")
    it.slow = {"b", "c"}
    it.begin(surge=2)
    while not all(step.cordoned for step in it.roll.steps[1:]):
        it.look()
    it.sfus["c"] = replace(it.sfus["c"], sigterm=True)
    what = abort(it.roll, it.seen())
    assert what.uncordon == ("b",)
    words = "; ".join(what.kept)
    assert "a has ended" in words
    assert "c got SIGTERM, which nothing takes back" in words
    assert "b-v2 stays" in words
    plan = aborted(it.roll, now=it.now)
    assert rolled_next(plan) == set() or plan.state == RollState.ABORTED


def test_an_abort_leaves_a_cordon_alone_that_the_roll_has_not_made(it: RollWorld) -> None:
    it.sfus["c"] = replace(it.sfus["c"], status=SfuStatus.CORDONED)
    it.slow = {"c"}
    it.look()
    assert "c" not in abort(it.roll, it.seen()).uncordon


# --- Kubernetes rolls ---


def test_following_a_rollout_marks_other_releases_and_ends_with_them() -> None:
    it = RollWorld("pod-0", "pod-1")
    plan = RollRecord(roll="r", version="v2", platform="follow", began_at=it.now)
    plan = follow(plan, it.seen(), now=it.now)
    assert rolled_next(plan) == {"pod-0", "pod-1"}
    assert plan.state == RollState.RUNNING
    it.sfus["pod-0"] = replace(it.sfus["pod-0"], status=SfuStatus.CORDONED)
    plan = follow(plan, it.seen(), now=it.now)
    assert rolled_next(plan) == {"pod-1"}
    it.end("pod-0")
    it.sfus["pod-0"] = RolledSfu(run=5, version="v2")
    plan = follow(plan, it.seen(), now=it.now)
    assert plan.steps[0].stage == "done"
    it.end("pod-1", evicted=1)
    plan = follow(plan, it.seen(), now=it.now)
    assert plan.state == RollState.DONE
    assert report_of(plan, now=it.now).players_evicted == 1


# --- what is told ---


def test_news_are_a_line_for_each_step_further(it: RollWorld) -> None:
    before: RollRecord | None = None
    lines: list[str] = []
    while it.roll.state == RollState.RUNNING:
        it.look()
        lines += roll_news(before, it.roll)
        before = it.roll
    assert lines[0] == "a: a-v2 is being started"
    assert "b: b-v2 takes players; b is being drained" in lines
    assert lines[-1].endswith("3 of 3 SFUs, done")


def test_the_report_counts_moves_of_one_player_as_far_as_the_history_goes() -> None:
    plan = RollRecord(roll="r", version="v2", began_at=10.0)

    def placed(player: str, cause: str, at: float) -> PlacementRecord:
        return PlacementRecord(id="1", room="x", player=player, cause=cause, at=at, sfu="s")

    history = [
        placed("p", "cordoned", 12),
        placed("p", "asked", 11),
        placed("p", "join", 11),
        placed("q", "cordoned", 9),
    ]
    assert report_of(plan, history, now=20.0).moves_per_player_max == 2
    assert report_of(plan, [placed("p", "cordoned", 12)] * 2000, now=20.0).moves_per_player_max is None


def test_health_is_read_off_what_routers_export() -> None:
    exported = """# HELP x y
sluice_router_ice_failures_total 3.0
sluice_router_move_audio_gap_ms_bucket{le="500.0"} 4.0
sluice_router_move_audio_gap_ms_count 5.0
sluice_router_move_video_gap_ms_bucket{le="500.0"} 5.0
sluice_router_move_video_gap_ms_count 5.0
"""
    now = read_health(exported)
    assert now == RouterHealth(failed=3, freezes=1)
    assert grown(None, now) == (0, 0)
    assert grown(RouterHealth(1, 1), now) == (2, 0)
    assert grown(RouterHealth(9, 0), now) == (3, 1), "a router that was started again counts from 0"
    assert read_health("sluice_router_ice_failures_total NaN\n\x00") == (0, 0)


# --- histories ---


class RollHistories(RuleBasedStateMachine):
    """Whatever happens in whatever order: never fewer places than before, and a way to the end."""

    @initialize(surge=st.integers(1, 3), spares=st.integers(0, 2), count=st.integers(1, 4), routers=st.integers(0, 2))
    def begin(self, surge: int, spares: int, count: int, routers: int) -> None:
        self.it = RollWorld(*(f"s{n}" for n in range(count)), routers=routers)
        self.count = count
        self.surge = surge
        self.lost = 0
        self.it.begin(spares=tuple(f"spare-{n}" for n in range(spares)), surge=surge)

    @rule()
    def look(self) -> None:
        self.it.look()

    @rule()
    def kill_the_command_before_it_has_an_answer(self) -> None:
        self.it.look(lose_answers=True)
        self.kill_the_command()

    @rule()
    def kill_the_command(self) -> None:
        if self.it.roll.state in (RollState.RUNNING, RollState.PAUSED):
            self.it.go_on()

    @rule(n=st.integers(0, 9))
    def an_sfu_dies(self, n: int) -> None:
        names = sorted(self.it.sfus)
        if names and self.it.roll.state == RollState.RUNNING:
            self.lost += self.it.sfus[names[n % len(names)]].ready
            self.it.die(names[n % len(names)])

    @rule(n=st.integers(0, 9))
    def players_stay(self, n: int) -> None:
        self.it.slow ^= {step.old for step in self.it.roll.steps[n % len(self.it.roll.steps) :][:1]}

    @rule(n=st.integers(0, 9))
    def a_replacement_stays_cold(self, n: int) -> None:
        self.it.cold ^= {step.new for step in self.it.roll.steps[n % len(self.it.roll.steps) :][:1]}

    @rule()
    def a_connection_fails(self) -> None:
        self.it.failed = 1

    @invariant()
    def never_fewer_places_than_before_but_for_those_that_died(self) -> None:
        assert self.it.fewest_ready >= self.count - self.lost

    @invariant()
    def never_more_at_a_time_than_the_surge(self) -> None:
        assert self.it.most_active <= self.surge

    @invariant()
    def a_pause_has_a_reason(self) -> None:
        assert bool(self.it.roll.pause) == (self.it.roll.state == RollState.PAUSED)

    def teardown(self) -> None:
        if not hasattr(self, "it"):
            return
        self.it.cold, self.it.slow, self.it.failed = set(), set(), 0
        for _ in range(30):
            if self.it.look_on(150).state != RollState.PAUSED:
                break
            self.it.go_on()
        assert self.it.roll.state == RollState.DONE, self.it.roll.pause
        gone = {step.old for step in self.it.roll.steps}
        assert all(self.it.sfus[sfu].version == "v2" for sfu in gone & set(self.it.sfus))


TestHistories = RollHistories.TestCase
TestHistories.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
