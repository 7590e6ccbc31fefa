"""The autoscaler in words: what is not known is never a number, and nothing that matters is left out."""

from __future__ import annotations

from control.core.autoscaler.effects import Launch, LeaseCordon, TakeBack, Terminate
from control.core.autoscaler.line import effect_line, tick_line
from operators.core.scaling_view import leader_words, load_words, node_words, plan_words, record_figures, streak_words
from shared.scaling_records import Launching, Removing, ScaleAction, ScalingFigures, ScalingRecord, ScalingState
from shared.store.answers import Leader
from tests.fakes.scaling_rig import Rig

FIGURES = ScalingFigures(
    mean_load=0.71, mean_egress=0.2, mean_streams=0.71, mean_cpu=0.3, binding="streams", nodes=5, capacity=3,
    draining_own=1, draining_other=1, out_hits=3, out_window=5, quiet_needed=20, cooldown_left_s=120.0, floor=3,
    maximum=9, mean_after=0.4,
)  # fmt: skip


def test_who_leads_is_said_and_that_no_controller_does() -> None:
    assert "ann" in leader_words(Leader("ann", 7, 4.0))
    assert "sluice control" in leader_words(None)


def test_the_figures_are_all_there() -> None:
    assert load_words(FIGURES) == "0.71 (egress 0.20, streams 0.71, CPU 0.30; streams binds)"
    assert node_words(FIGURES) == ("5: 3 capacity, 1 draining, ours, 1 draining, other people's (floor 3, maximum 9)")
    assert streak_words(FIGURES) == "hot 3/5 ticks, quiet 0/20, 2 min of cooldown left"
    record = record_figures(ScalingRecord(figures=FIGURES))
    assert record == "mean 0.71 · streams · after 0.40 · hot 3/5 · quiet 0/20 · 3 of 5"


def test_an_unknown_mean_is_no_number() -> None:
    assert load_words(ScalingFigures()) == "not known"
    assert record_figures(ScalingRecord()).startswith("mean ?")


def test_what_is_under_way_is_a_line_each() -> None:
    state = ScalingState(
        launch=Launching(request="7-1", waited_s=12.0, sfu="n", stages=("healthy", "first_packet")),
        removals=(Removing(node="s2", sfu="s2", stage="draining", waited_s=90.0),),
        held="at-the-floor",
    )
    assert plan_words(state) == [
        "launch 7-1: n, warmed up, for 12 s",
        "removal of s2: draining for 1 min 30 s (scale-in)",
        "held: at the floor",
    ]
    assert plan_words(ScalingState()) == ["nothing"]


def test_the_tick_line_has_the_figures_that_decided() -> None:
    it = Rig(nodes=3)
    it.load(0.7)
    it.ticks(3)
    decision = it.tick()
    assert decision.action is ScaleAction.SCALE_OUT
    line = tick_line(decision)
    assert line.startswith(
        "[scale] tick mean=0.70 egress=0.00 streams=0.70 cpu=0.12 binding=streams nodes=3 capacity=3 "
    )
    for part in ("hits=4/5", "quiet=0/20", "cooldown_left_s=0", "action=scale-out", "reason=hot"):
        assert f" {part}" in line


def test_the_tick_line_of_a_blind_pool_says_unknown() -> None:
    it = Rig(nodes=3)
    it.pool.down = True
    assert "mean=unknown egress=unknown" in tick_line(it.tick())


def test_each_effect_has_a_line() -> None:
    assert effect_line(Launch(request="7-1")) == "[pool] launch request=7-1"
    assert effect_line(LeaseCordon(sfu="s", node="n", streams=3)) == "[drain] cordon node=n sfu=s streams=3"
    assert effect_line(LeaseCordon(sfu="s", node="n", renewal=True)) == "[drain] renew node=n sfu=s"
    assert effect_line(TakeBack(sfu="s", node="n")) == "[drain] uncordon node=n sfu=s"
    ended = effect_line(Terminate(node="n", sfu="s", streams=0, egress_bps=0.0))
    assert ended == "[pool] terminate node=n sfu=s streams=0 egress_bps=0"
