"""What the autoscaler decides (A4-A8), on a clock that the test holds."""

from __future__ import annotations

import itertools

import pytest

from control.core.autoscaler import Cordon, Launch, Moment, Terminate, decide, join
from control.core.autoscaler.victim import mean_after
from control.core.scaling_settings import ScalingSettings, read_settings
from shared.records import Capacities
from shared.scaling_records import AUTOSCALER, RemovalStage, ScaleAction
from tests.fakes.scaling_rig import Rig

HOT, WARM, QUIET = 0.7, 0.5, 0.2


def rig(*, load: float = WARM, nodes: int = 4, settings: ScalingSettings | None = None) -> Rig:
    made = Rig(settings, nodes=nodes)
    made.load(load)
    return made


def draining(load: float = QUIET) -> tuple[Rig, str]:
    """A rig whose fourth node drains, and which."""
    it = rig(load=load)
    it.sfus["s2"].streams = 1
    it.until(ScaleAction.SCALE_IN)
    return it, "s2"


# --- scale out ---


def test_four_hot_ticks_of_five_add_one_node() -> None:
    it = rig(load=HOT)
    assert [tick.action for tick in it.ticks(4)] == [*[ScaleAction.NONE] * 3, ScaleAction.SCALE_OUT]
    assert [tick.figures.out_hits for _, tick in it.decisions] == [1, 2, 3, 4]
    assert len(it.done("launch")) == 1


def test_one_tick_that_is_not_hot_does_not_start_the_count_anew() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.load(WARM)
    assert it.tick().action is ScaleAction.NONE
    it.load(HOT)
    assert it.tick().action is ScaleAction.SCALE_OUT


def test_two_ticks_of_five_that_are_not_hot_do() -> None:
    it = rig()
    for load in (HOT, WARM, WARM, HOT, HOT, HOT, WARM):
        it.load(load)
        assert it.tick().action is ScaleAction.NONE


def test_the_threshold_itself_is_hot() -> None:
    it = rig(load=0.65)
    it.until(ScaleAction.SCALE_OUT, within=4)


def test_load_is_the_fullest_part_of_each_node_and_not_the_fullest_mean() -> None:
    """Half the nodes full of streams and half full of CPU: each part's mean looks like room, and there is none."""
    it = rig(nodes=4)
    for number, sfu in enumerate(it.sfus.values()):
        sfu.streams, sfu.cpu = (700, 0.05) if number % 2 else (50, 0.6)
    figures = it.ticks(2)[-1].figures
    assert figures.mean_streams is not None
    assert figures.mean_streams < 0.4
    assert figures.mean_load is not None
    assert figures.mean_load > 0.69
    it.until(ScaleAction.SCALE_OUT, within=3)


def test_which_part_binds_is_said() -> None:
    it = rig(load=HOT)
    assert it.tick().figures.binding == "streams"
    for sfu in it.sfus.values():
        sfu.egress_bps = 690e6
    assert it.tick().figures.binding == "egress"


def test_a_warming_node_is_not_in_the_mean() -> None:
    it = rig(load=HOT, nodes=3)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    figures = it.tick().figures
    assert (figures.capacity, figures.warming) == (3, 1)
    assert figures.mean_load == pytest.approx(HOT)


def test_there_is_no_second_launch_before_the_first_is_capacity_or_given_up() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    for tick in it.ticks(9):
        assert tick.action in (ScaleAction.NONE, ScaleAction.HELD)
    assert ("held", "launch-in-progress") in it.recorded()


def test_never_over_the_maximum() -> None:
    it = rig(load=HOT, settings=ScalingSettings(max_nodes=5))
    for _ in range(60):
        it.load(HOT)
        it.tick()
    assert len(it.pool.nodes) == 5
    assert it.state.held == "at-the-maximum"


def test_a_draining_node_counts_for_the_maximum() -> None:
    it = rig(load=HOT, nodes=5, settings=ScalingSettings(max_nodes=5))
    it.sfus["s0"].by = "kim"
    it.ticks(10)
    assert it.done("launch") == []


# --- cooldown ---


def test_the_pool_changes_once_a_cooldown() -> None:
    it = rig(load=HOT)
    for _ in range(40):
        it.load(HOT)
        it.tick()
    times = [each.at for each in it.done("launch")]
    assert len(times) >= 3
    assert all(later - earlier >= 300 for earlier, later in itertools.pairwise(times))


def test_the_cooldown_counts_for_taking_out_as_well() -> None:
    it = rig(load=QUIET, nodes=6, settings=ScalingSettings(scale_in_ticks=4))
    it.ticks(30)
    times = [each.at for each in it.done("cordon")]
    assert len(times) == 3
    assert all(later - earlier >= 300 for earlier, later in itertools.pairwise(times))


def test_a_shorter_cooldown_in_the_settings_holds_at_once() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    it.settings = ScalingSettings(cooldown_s=60.0)
    assert it.tick().state.cooldown_left_s <= 30


@pytest.mark.parametrize("jump_s", [-86400.0, -400.0, 400.0, 86400.0])
def test_a_jump_of_redis_clock_ends_no_cooldown_and_no_launch(jump_s: float) -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.clock_error_s = jump_s
    it.load(HOT)
    it.ticks(8)
    assert len(it.done("launch")) == 1
    assert it.state.launch is not None
    assert it.state.cooldown_left_s > 0


# --- scale in ---


def test_twenty_quiet_ticks_cordon_one_node() -> None:
    it = rig(load=QUIET)
    ticks = it.ticks(20)
    assert [tick.action for tick in ticks[:19]] == [ScaleAction.NONE] * 19
    assert ticks[19].action is ScaleAction.SCALE_IN
    assert [each.what for each in it.journal] == ["cordon"]


def test_one_tick_over_the_line_starts_the_quiet_count_anew() -> None:
    it = rig(load=QUIET)
    it.ticks(19)
    it.load(0.31)
    it.tick()
    it.load(QUIET)
    assert all(tick.action is ScaleAction.NONE for tick in it.ticks(19))
    assert it.tick().action is ScaleAction.SCALE_IN


def test_the_threshold_itself_is_quiet() -> None:
    assert rig(load=0.30).ticks(20)[-1].action is ScaleAction.SCALE_IN


def test_the_victim_has_the_fewest_streams() -> None:
    it, node = draining()
    assert [each.node for each in it.done("cordon")] == [node]


def test_never_under_the_floor() -> None:
    it = rig(load=QUIET, nodes=3)
    it.ticks(30)
    assert it.journal == []
    assert it.state.held == "at-the-floor"


def test_the_mean_after_the_removal_is_looked_at_first() -> None:
    settings = ScalingSettings(scale_in_at=0.5, scale_out_at=0.65, min_nodes=1)
    it = rig(load=0.45, nodes=2, settings=settings)
    tick = it.ticks(20)[-1]
    assert (tick.action, tick.reason) == (ScaleAction.HELD, "would-be-hot")
    assert tick.figures.mean_after == pytest.approx(0.9)
    assert it.done("cordon") == []


def test_the_mean_after_bounds_what_a_small_node_would_take_from_a_big_one() -> None:
    it = rig(load=0.2, nodes=2, settings=ScalingSettings(min_nodes=1))
    it.sfus["s0"].capacities = Capacities(egress_mbps=700, streams=4000)
    it.sfus["s0"].streams = 800  # 0.2 of a big one, 0.8 of a small one
    it.tick()
    it.pass_time(1)
    world = join(it.pool.listing(), it.leader.samples.reports(now=it.now))
    assert mean_after(world.members, world.members[0]) == pytest.approx(0.2 + 0.8)
    assert mean_after(world.members[:1], world.members[0]) is None


def test_other_peoples_drains_are_no_capacity_and_no_loss() -> None:
    it = rig(load=WARM, nodes=3)
    it.sfus["s0"].by = "kim"
    figures = it.ticks(15)[-1].figures
    assert (figures.capacity, figures.draining_other, figures.draining_own) == (2, 1, 0)
    assert it.journal == []


def test_a_drain_of_somebody_else_leaves_nothing_to_take_out() -> None:
    it = rig(load=QUIET, nodes=4)
    it.sfus["s0"].by = "kim"
    it.ticks(25)
    assert it.journal == []


def test_no_scale_in_while_a_launch_is_under_way() -> None:
    it = rig(load=HOT, settings=ScalingSettings(launch_timeout_s=900.0))
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.load(QUIET)
    it.ticks(20)
    assert ("held", "launch-in-progress") in it.recorded()
    assert it.done("cordon") == []


# --- the removal ---


def test_a_draining_node_is_ended_at_zero_streams_and_not_before() -> None:
    it, node = draining()
    it.ticks(50)
    assert it.done("terminate") == []
    it.sfus[node].empty()
    it.ticks(2)
    assert [(each.node, each.streams) for each in it.done("terminate")] == [(node, 0)]
    assert it.state.removals == ()


@pytest.mark.parametrize(
    "field", [{"streams": 1}, {"players": 1}, {"egress_bps": 800.0}, {"silent": True}, {"cpu": -1.0}]
)
def test_a_node_of_which_anything_is_left_or_unknown_is_not_ended(field: dict[str, float]) -> None:
    it, node = draining()
    it.sfus[node].empty()
    for name, value in field.items():
        setattr(it.sfus[node], name, value)
    it.ticks(5)
    assert it.done("terminate") == []


def test_an_empty_node_is_not_ended_while_the_pool_is_not_known() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].empty()
    it.pool.partial = True
    assert not any(isinstance(effect, Terminate) for tick in it.ticks(3) for effect in tick.effects)
    it.pool.partial = False
    it.tick()
    assert [each.node for each in it.done("terminate")] == [node]


def test_the_cordon_is_renewed_in_good_time_while_the_node_drains() -> None:
    it, _ = draining()
    it.ticks(300)  # 9000 s: the lease is 3600
    times = [it.done("cordon")[0].at, *(each.at for each in it.done("renew")), it.now]
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) < 1800


def test_the_cordon_is_renewed_though_the_pool_does_not_answer() -> None:
    it, _ = draining()
    it.pool.down = True
    it.ticks(60)
    assert it.done("renew")


def test_a_cordon_that_did_not_arrive_is_ordered_again() -> None:
    it = rig(load=QUIET)
    it.deaf_store = True
    it.until(ScaleAction.SCALE_IN)
    it.ticks(2)
    it.deaf_store = False
    it.tick()
    assert len(it.done("cordon")) == 1


def test_a_node_that_never_follows_is_left_alone() -> None:
    it = rig(load=QUIET)
    for sfu in it.sfus.values():
        sfu.deaf = True
    it.until(ScaleAction.SCALE_IN)
    it.ticks(12)
    assert ("cancelled", "never-cordoned") in it.recorded()
    assert it.state.removals == ()


def test_whoever_uncordons_the_node_has_the_last_word() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].by = ""
    it.tick()
    assert ("cancelled", "no-longer-cordoned") in it.recorded()
    assert it.sfus[node].by == ""
    assert it.done("renew") == []


def test_whoever_uncordons_it_before_the_next_tick_has_the_last_word_too() -> None:
    it, node = draining()
    it.sfus[node].by = ""
    it.tick()
    assert ("cancelled", "no-longer-cordoned") in it.recorded()
    assert it.sfus[node].by == ""


def test_what_an_sfu_said_that_is_heard_no_more_takes_no_removal_back() -> None:
    it, node = draining()
    it.sfus[node].silent = True
    it.ticks(5)
    it.sfus[node].by = ""  # an old record, say, that a router wrote again
    it.ticks(3)
    assert not [each for each in it.recorded() if each[0] == "cancelled"]
    assert [removal.node for removal in it.state.removals] == [node]


def test_whoever_drains_the_node_takes_it_over() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].by = "kim"
    it.sfus[node].empty()
    it.tick()
    assert ("cancelled", "taken-over") in it.recorded()
    it.ticks(3)
    assert it.done("terminate") == []


def test_load_that_comes_back_takes_the_drain_back_before_anything_is_launched() -> None:
    it, node = draining()
    it.ticks(10)
    it.load(HOT)
    it.until(ScaleAction.CANCELLED, within=5)
    assert it.sfus[node].by == ""
    assert it.done("launch") == []
    assert it.state.cooldown_left_s == 300


def test_an_uncordon_that_did_not_arrive_is_ordered_again() -> None:
    it, node = draining()
    it.ticks(10)
    it.load(HOT)
    it.deaf_store = True
    it.until(ScaleAction.CANCELLED, within=5)
    it.deaf_store = False
    assert it.sfus[node].by == AUTOSCALER
    it.tick()
    assert it.sfus[node].by == ""


def test_a_terminate_that_did_not_arrive_is_repeated() -> None:
    it, node = draining()
    it.tick()
    it.sfus[node].empty()
    it.pass_time(1)
    decision = it.tick(crash_after=0)
    assert any(isinstance(effect, Terminate) for effect in decision.effects)
    assert it.state.removals[0].stage == RemovalStage.ENDING
    it.tick()
    assert len(it.done("terminate")) == 1
    assert it.recorded().count(("terminated", "empty")) == 1


def test_several_of_our_drains_go_on_side_by_side() -> None:
    it = rig(load=0.1, nodes=6)
    for _ in range(60):
        it.load(0.1)
        it.tick()
    assert len(it.done("cordon")) == 3
    assert it.tick().figures.draining_own == 3


# --- launches ---


def test_a_launch_is_over_when_the_node_is_capacity() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    it.ticks(2)
    assert it.state.launch is None
    assert ("launched", "capacity") in it.recorded()


def test_a_launch_whose_answer_got_lost_is_not_made_twice() -> None:
    it = rig(load=HOT)
    it.pool.loses_answers = True
    it.until(ScaleAction.SCALE_OUT)
    it.load(WARM)
    it.ticks(5)
    assert len(it.done("launch")) == 1
    assert it.state.launch is None


def test_the_cooldown_starts_again_when_a_node_whose_launch_seemed_to_fail_is_found() -> None:
    it = rig(load=HOT)
    it.pool.loses_answers = True
    it.until(ScaleAction.SCALE_OUT)
    it.tick()
    assert it.state.cooldown_left_s == it.settings.cooldown_s


def test_a_pool_that_fails_is_asked_for_the_same_node_again() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    decision = it.tick(crash_after=0)  # as if the call had failed
    assert decision.action is ScaleAction.SCALE_OUT
    (again,) = [effect for effect in it.tick().effects if isinstance(effect, Launch)]
    assert again in decision.effects


def test_a_launch_that_never_warms_up_is_given_up_and_replaced() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    first = it.done("launch")[0].node
    for _ in range(12):
        it.load(HOT)
        it.tick()
    assert ("launch-given-up", "timed-out") in it.recorded()
    assert [each.node for each in it.done("terminate")] == [first]
    assert len(it.done("launch")) == 2


def test_a_launch_that_registers_and_never_warms_up_is_cordoned_before_it_is_ended() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    node = it.done("launch")[0].node
    it.sfus[node].registered = True
    it.ticks(14)
    mine = [each.what for each in it.journal if each.node == node]
    assert mine == ["launch", "cordon", "terminate"]


def test_a_launch_that_fails_is_replaced() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.fail(it.done("launch")[0].node)
    for _ in range(12):
        it.load(HOT)
        it.tick()
    assert ("launch-given-up", "failed") in it.recorded()
    assert len(it.done("launch")) == 2


def test_a_lost_node_under_the_floor_is_replaced() -> None:
    it = rig(load=WARM, nodes=3)
    it.tick()
    it.fail("s0")
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "under-the-floor")
    it.tick()
    assert [each.what for each in it.journal] == ["launch", "sweep"]


def test_a_node_that_is_silent_for_longer_than_a_launch_may_take_is_replaced_and_not_ended() -> None:
    it = rig(load=WARM, nodes=3)
    it.tick()
    it.sfus["s0"].silent = True
    it.ticks(9)
    assert it.journal == []
    it.ticks(5)
    assert [each.what for each in it.journal] == ["launch"]
    assert it.decisions[-1][1].figures.lost == 1


def test_two_launches_within_a_second_are_two_nodes() -> None:
    settings = ScalingSettings(tick_s=0.2, cooldown_s=0.2, scale_out_hits=1, scale_out_window=1)
    it = rig(load=HOT, settings=settings)
    for _ in range(10):
        it.load(HOT)
        it.tick()
    asked = [decision for _, decision in it.decisions if decision.action is ScaleAction.SCALE_OUT]
    assert len(asked) >= 3
    assert len({each.request for each in it.done("launch")}) == len(asked)


# --- no capacity ---


def test_a_pool_of_which_people_have_cordoned_every_node_gets_one_more() -> None:
    it = rig(load=WARM, nodes=3)
    for sfu in it.sfus.values():
        sfu.by = "kim"
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "no-capacity")
    it.load(WARM)
    assert it.ticks(15)[-1].figures.capacity == 1
    assert len(it.done("launch")) == 1, "enough for as long as it isn't hot"


def test_without_capacity_another_launch_waits_for_cooldown_and_maximum_as_any() -> None:
    it = rig(load=WARM, nodes=3, settings=ScalingSettings(max_nodes=5))
    for _ in range(60):
        for sfu in it.sfus.values():
            sfu.by = "kim"
        it.tick()
    first, second = it.done("launch")
    assert second.at - first.at >= 300
    assert it.state.held == "at-the-maximum"


@pytest.mark.parametrize("field", [{"cpu": -1.0}, {"silent": True}, {"warmed_up": False}])
def test_a_node_that_may_be_capacity_or_is_about_to_be_is_waited_for(field: dict[str, float]) -> None:
    it = rig(load=WARM, nodes=3)
    it.tick()
    for name, value in field.items():
        setattr(it.sfus["s0"], name, value)
    it.sfus["s1"].by = it.sfus["s2"].by = "kim"
    it.ticks(10)
    assert it.journal == []
    decision = it.until(ScaleAction.SCALE_OUT, within=3)
    assert decision.figures.lost == 1, "but not for ever"


def test_without_capacity_a_removal_is_taken_back_first() -> None:
    it, node = draining()
    for sfu in it.sfus.values():
        sfu.by = sfu.by or "kim"
    decision = it.until(ScaleAction.CANCELLED, within=12)
    assert decision.reason == "no-capacity"
    assert it.sfus[node].by == ""
    assert it.done("launch") == []


# --- nobody is heard ---


def test_of_a_fleet_of_which_nobody_is_heard_nothing_is_concluded() -> None:
    """All routers are away, or Redis has lost what they wrote: players go on, and no new node would be heard either."""
    it = rig(load=HOT, nodes=5)
    it.ticks(2)
    it.routers_away = True
    decision = it.ticks(60)[-1]
    assert (decision.action, decision.reason) == (ScaleAction.HELD, "fleet-unheard")
    assert it.journal == []
    assert it.recorded() == [("held", "fleet-unheard")], "said once"


def test_a_fleet_whose_records_are_gone_is_not_heard_either() -> None:
    it = rig(load=HOT, nodes=5)
    it.ticks(2)
    for sfu in it.sfus.values():
        sfu.registered = False
    assert it.ticks(60)[-1].reason == "fleet-unheard"
    assert it.journal == []


def test_those_that_are_heard_again_later_than_others_are_not_lost() -> None:
    it = rig(load=WARM, nodes=5)
    it.ticks(2)
    for sfu in it.sfus.values():
        sfu.silent = True
    it.ticks(60)
    for sfu in it.sfus.values():
        sfu.silent = False
        it.tick()
    assert it.ticks(2)[-1].figures.capacity == 5
    assert it.journal == []


def test_a_launch_is_not_given_up_for_what_nobody_could_hear() -> None:
    it = rig(load=HOT)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.routers_away = True
    it.ticks(30)
    assert it.state.launch is not None
    assert len(it.journal) == 1


def test_an_empty_pool_is_new_and_gets_its_nodes() -> None:
    it = Rig(nodes=0)
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "under-the-floor")
    it.ticks(40)
    assert len(it.done("launch")) == 3


def test_an_empty_pool_whose_first_nodes_come_to_nothing_gets_others() -> None:
    it = Rig(nodes=0)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.ticks(15)
    it.fail(it.done("launch")[-1].node)
    it.ticks(25)
    assert [each.what for each in it.journal][:3] == ["launch", "terminate", "launch"]
    assert len(it.done("launch")) >= 3


def test_a_first_node_that_came_to_nothing_and_can_not_be_ended_holds_up_no_other() -> None:
    it = Rig(nodes=0)
    it.pool.launches_warm = False
    it.until(ScaleAction.SCALE_OUT)
    it.pool.stuck = {it.done("launch")[0].node}
    it.until(ScaleAction.SCALE_OUT)
    it.pool.launches_warm = True
    assert it.ticks(45)[-1].figures.capacity == 3


# --- what the platform calls failed ---


def test_failed_nodes_are_swept_up_one_a_tick() -> None:
    it = rig(load=WARM, nodes=6)
    for node in ("s0", "s1", "s2"):
        it.fail(node)
    for swept in (1, 2, 3):
        it.tick()
        assert len(it.done("sweep")) == swept
    assert list(it.pool.nodes) == ["s3", "s4", "s5"]


def test_failed_nodes_are_not_swept_up_before_their_replacements_are_there() -> None:
    """A platform may count them until then: ended at once they would take the whole pool with them."""
    it = rig(load=WARM, nodes=5, settings=ScalingSettings(min_nodes=5))
    it.tick()
    for node in list(it.pool.nodes):
        it.fail(node)
    for _ in range(80):
        it.load(WARM)
        it.tick()
        assert len(it.pool.nodes) >= 5
    assert it.tick().figures.capacity == 5
    assert len(it.done("sweep")) == len(it.done("launch")) == 5


def test_a_failed_node_makes_room_for_its_replacement_where_the_floor_is_the_maximum() -> None:
    it = rig(load=WARM, nodes=3, settings=ScalingSettings(min_nodes=3, max_nodes=3))
    it.tick()
    it.fail("s0")
    it.fail("s1")
    for _ in range(30):
        it.load(WARM)
        it.tick()
        assert 2 <= len(it.pool.nodes) <= 3
    assert [each.what for each in it.journal] == ["sweep", "launch", "sweep", "launch"]
    assert it.tick().figures.capacity == 3


def test_a_failed_node_that_can_not_be_ended_holds_up_no_other() -> None:
    it = rig(load=WARM, nodes=6)
    it.fail("s0")
    it.fail("s1")
    it.pool.stuck = {"s0"}
    it.ticks(4)
    assert [each.node for each in it.done("sweep")] == ["s1"]


def test_nothing_is_swept_up_while_the_pool_is_not_known() -> None:
    it = rig(load=WARM, nodes=6)
    it.fail("s1")
    it.pool.partial = True
    it.ticks(3)
    assert it.journal == []


def test_a_removal_goes_on_though_the_platform_calls_its_node_failed_while_it_reports() -> None:
    it, node = draining()
    it.tick()
    it.call_failed(node)
    it.ticks(60)
    assert it.done("terminate") == it.done("sweep") == []
    assert it.done("renew"), "its cordon must not lapse"
    it.sfus[node].empty()
    it.ticks(2)
    assert node not in it.pool.nodes
    assert it.recorded()[-1] == ("terminated", "empty")


def test_a_launch_that_reports_is_not_given_up_for_what_the_platform_says() -> None:
    it = rig(load=HOT)
    it.until(ScaleAction.SCALE_OUT)
    node = it.done("launch")[0].node
    it.call_failed(node)
    it.load(WARM)
    it.ticks(3)
    assert it.state.launch is not None
    it.call_failed(node, failed=False)
    it.tick()
    assert ("launched", "capacity") in it.recorded()


# --- unknown is not zero ---


@pytest.mark.parametrize(
    "field",
    [
        {"silent": True},
        {"registered": False},
        {"streams": -5},
        {"egress_bps": float("nan")},
        {"egress_bps": 1e15},
        {"cpu": float("inf")},
        {"capacities": Capacities(streams=0)},
        {"players": -1},
    ],
)
def test_a_node_that_says_nothing_believable_is_unknown_and_nothing_is_taken_out(field: dict[str, float]) -> None:
    it = rig(load=QUIET, nodes=5)
    it.ticks(10)
    for name, value in field.items():
        setattr(it.sfus["s1"], name, value)
    figures = it.ticks(30)[-1].figures
    assert (figures.unknown or figures.lost, figures.quiet_ticks) == (1, 0)
    assert it.journal == []


def test_a_node_that_fell_silent_within_the_tick_is_unknown_at_its_end() -> None:
    it = rig(nodes=3)
    it.tick()
    it.pass_time(10)
    it.sfus["s1"].silent = True
    figures = it.tick().figures
    assert (figures.capacity, figures.unknown) == (2, 1)


def test_figures_that_can_not_be_are_told() -> None:
    it = rig(nodes=3)
    it.sfus["s1"].streams = -5
    assert ("report-streams", "s1") in it.tick().faults


def test_the_mean_of_an_empty_pool_is_unknown() -> None:
    it = rig(nodes=3, settings=ScalingSettings(min_nodes=1))
    for sfu in it.sfus.values():
        sfu.silent = True
    decision = it.ticks(9)[-1]
    assert decision.figures.mean_load is None
    assert decision.figures.unknown == 3
    assert it.journal == []


@pytest.mark.parametrize("trouble", ["down", "partial"])
def test_a_pool_that_is_not_known_changes_nothing(trouble: str) -> None:
    it = rig(load=QUIET, nodes=5)
    it.ticks(19)
    setattr(it.pool, trouble, True)
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.HELD, "pool-unknown")
    it.load(HOT)
    it.ticks(10)
    assert it.journal == []


def test_a_tick_in_which_the_pool_is_not_known_ends_the_quiet_streak() -> None:
    it = rig(load=QUIET, nodes=5)
    it.ticks(19)
    it.pool.down = True
    it.tick()
    it.pool.down = False
    assert it.tick().figures.quiet_ticks == 1
    assert it.journal == []


def test_a_node_that_is_listed_twice_is_not_acted_on() -> None:
    it = rig(load=QUIET, nodes=5)
    it.pool.nodes["again"] = it.pool.nodes["s1"]
    decision = it.ticks(30)[-1]
    assert decision.reason == "pool-unknown"
    assert ("pool-twice", "s1") in decision.faults
    assert it.journal == []


def test_an_sfu_that_the_pool_does_not_list_takes_no_part() -> None:
    it = rig(load=HOT, nodes=4)
    del it.pool.nodes["s3"]
    decision = it.tick()
    assert (decision.figures.nodes, decision.figures.capacity) == (3, 3)
    assert ("sfu-unlisted", "s3") in decision.faults


# --- leaders ---


def test_a_new_leader_goes_on_with_streaks_and_cooldown() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.new_leader("b")
    it.pass_time(15)
    assert it.tick().action is ScaleAction.SCALE_OUT


def test_a_new_leader_does_what_the_last_one_only_decided() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.tick(crash_after=0)
    assert it.done("launch") == []
    it.new_leader("b")
    it.tick()
    assert len(it.done("launch")) == 1
    assert it.recorded().count(("scale-out", "hot")) == 1


def test_a_new_leader_does_not_repeat_what_the_last_one_did_but_could_not_say() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.pool.loses_answers = True
    it.tick()
    it.pool.loses_answers = False
    it.new_leader("b")
    it.load(WARM)
    it.ticks(3)
    assert len(it.done("launch")) == 1


def test_a_new_leader_renews_our_cordons_at_once() -> None:
    it, _ = draining()
    it.tick()
    it.new_leader("b")
    assert any(isinstance(each, Cordon) and each.renewal for each in it.tick().effects)


def test_ticks_that_are_far_apart_are_not_in_a_row() -> None:
    it = rig(load=HOT)
    it.ticks(3)
    it.pass_time(600)
    assert it.tick().figures.out_hits == 1


def test_a_late_first_tick_of_a_new_leader_starts_the_streaks_anew() -> None:
    it = rig(load=QUIET)
    it.ticks(19)
    it.new_leader("b")
    it.pass_time(600)
    assert it.tick().figures.quiet_ticks == 1


def test_a_clock_that_went_back_between_two_leaders_starts_the_streaks_anew() -> None:
    it = rig(load=QUIET)
    it.ticks(19)
    it.new_leader("b")
    it.clock_error_s = -3600.0
    it.pass_time(1.0)
    assert it.tick().figures.quiet_ticks == 1


# --- scheduled floors, dry run ---


def test_a_scheduled_floor_holds_by_redis_clock() -> None:
    text = '[[floors]]\nfrom = "00:00"\nto = "23:59:59"\nmin_nodes = 5'
    it = rig(load=QUIET, nodes=4, settings=read_settings(text))
    decision = it.tick()
    assert (decision.action, decision.reason) == (ScaleAction.SCALE_OUT, "under-the-floor")
    assert decision.figures.floor == 5


def test_a_dry_run_decides_and_does_nothing() -> None:
    it = rig(load=HOT)
    state = it.state
    actions = []
    for tick in range(30):
        it.pass_time(30)
        world = join(it.pool.listing(), it.leader.samples.reports(now=it.now))
        moment = Moment(now_at=it.now, elapsed_s=30.0, first=tick == 0)
        decision = decide(world, state, it.settings, moment=moment, token=1, dry_run=True)
        state = decision.state
        actions.append(decision.action)
        assert decision.effects == ()
        assert state.launch is None
        assert all(record.dry_run for record in decision.records)
    # As often as if it had been done: once a cooldown.
    assert actions.count(ScaleAction.SCALE_OUT) == 3
