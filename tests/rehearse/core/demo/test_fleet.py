"""The simulated fleet of `sluice demo fleet`: its states keep the rules that real SFUs keep."""

from __future__ import annotations

import random

import pytest

from rehearse.core.demo.fleet import NODES_PER_DRAIN, DemoFleet, DemoStep
from rehearse.core.demo.sfu import BOUNDS, WARM_AFTER_S
from shared.records import CommandVerb, SfuCommand, SfuState, SfuStatus, status_of


def fleet(sfus: int = 40, seed: int = 1) -> DemoFleet:
    return DemoFleet(sfus=sfus, rng=random.Random(seed), now=0.0, epoch=7)


def run(demo: DemoFleet, *, begin: float, end: float, every: float = 2.0) -> list[DemoStep]:
    steps, now = [], begin
    while now < end:
        steps.append(demo.step(now=now))
        now += every
    return steps


def command(verb: CommandVerb, sfu: str, *, number: str = "c1", lease_s: float | None = None) -> SfuCommand:
    return SfuCommand(command=number, verb=verb.value, sfu=sfu, by="olga", reason="kernel", lease_s=lease_s)


def online(demo: DemoFleet) -> str:
    return next(sfu.sfu for sfu in demo.sfus.values() if not sfu.draining and not sfu.warming)


def state(step: DemoStep, sfu: str) -> SfuState:
    return next(state for state in step.states if state.sfu == sfu)


@pytest.mark.parametrize("seed", range(3))
def test_reports_are_believable_and_their_revisions_grow(seed: int) -> None:
    demo = fleet(seed=seed)
    seen: dict[str, int] = {}
    for step in run(demo, begin=0.0, end=900.0):
        for each in step.states:
            assert each.revision > seen.get(each.sfu, 0)
            seen[each.sfu] = each.revision
            assert each.load is not None
            assert 0 <= each.load < 1.5
            assert (status_of(each) is SfuStatus.ONLINE) == (each.drain is None)
        assert len(demo.sfus) >= 40 - 1 - 40 // NODES_PER_DRAIN


def test_the_rollout_replaces_what_ends_and_reports_each_drain() -> None:
    demo = fleet()
    steps = run(demo, begin=0.0, end=7200.0, every=10.0)
    ended = [sfu for step in steps for sfu in step.gone]
    assert ended
    assert all(sfu.report is not None and (sfu.report.sfu, sfu.report.cause) == (sfu.sfu, "sigterm") for sfu in ended)
    assert len(demo.sfus) == 40
    assert not {sfu.sfu for sfu in ended} & demo.sfus.keys()


def test_an_occupied_sfu_is_drained_first_and_does_not_end_while_it_is() -> None:
    demo = fleet(sfus=NODES_PER_DRAIN)
    home = [sfu.sfu for sfu in demo.sfus.values() if sfu.version == "v1.8.2"][-1]
    for now in range(0, 3000, 10):
        demo.step(now=float(now), occupied=[home])
    assert demo.sfus[home].machine.status is SfuStatus.CORDONED
    run(demo, begin=3000.0, end=3030.0)
    assert home not in demo.sfus


def test_operators_are_obeyed_once() -> None:
    demo = fleet()
    sfu = online(demo)
    step = demo.step(now=1.0, commands=[command(CommandVerb.CORDON, sfu)])
    drain = state(step, sfu).drain
    assert drain is not None
    assert (drain.by, drain.reason, drain.exit_when_empty, drain.drain_max_s) == ("olga", "kernel", False, None)
    commands = [command(CommandVerb.UNCORDON, sfu, number="c2")]
    assert state(demo.step(now=2.0, commands=commands), sfu).drain is None
    step = demo.step(now=3.0, commands=[command(CommandVerb.CORDON, sfu), *commands])
    assert state(step, sfu).drain is None, "both are old"
    step = demo.step(now=4.0, commands=[command(CommandVerb.DRAIN, sfu, number="c3")])
    drain = state(step, sfu).drain
    assert drain is not None
    assert (drain.exit_when_empty, drain.drain_max_s) == (True, BOUNDS.drain_max_s)


def test_a_controllers_cordon_empties_the_sfu_and_ends_it_only_when_the_pool_does() -> None:
    demo = fleet()
    sfu = online(demo)
    step = demo.step(now=1.0, commands=[command(CommandVerb.CORDON, sfu, lease_s=3600.0)])
    drain = state(step, sfu).drain
    assert drain is not None
    assert drain.lease_left_s == 3600.0
    demo.step(now=3500.0, commands=[command(CommandVerb.CORDON, sfu, number="c2", lease_s=3600.0)])
    run(demo, begin=3510.0, end=5000.0, every=20.0)
    assert sfu in demo.sfus
    demo.end(sfu, now=5000.0)
    run(demo, begin=5000.0, end=5010.0)
    assert sfu not in demo.sfus


def test_a_launched_sfu_is_no_capacity_until_it_has_warmed_up() -> None:
    demo = fleet()
    sfu = demo.launch(now=0.0).sfu
    young = state(demo.step(now=1.0), sfu)
    assert (young.warmed_up, young.load_parts.egress_bps) == (False, None)
    assert state(demo.step(now=WARM_AFTER_S + 1), sfu).warmed_up
