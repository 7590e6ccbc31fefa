"""Rounds: two servers in turn, and what a person's settings make of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.machine import Cores
from bench.relay import rounds as relay_rounds
from bench.relay.figures import RelayFigures
from bench.relay.knee import Objective
from bench.relay.peers import PEERS, Peer
from bench.relay.rounds import ROUNDS, RUN_S, measure_rounds, run_settings, search
from bench.relay.run import RunSettings, Say
from bench.relay.settings import RelaySettings
from bench.relay.sluice import SluicePeer
from shared.rtc.srtp import SrtpProfile
from tests.bench.relay.test_knee import GOOD, LATE

CORES = Cores(server=None, generator=None)


class Twin(SluicePeer):
    """Another server, for tests."""

    name = "twin"


@pytest.fixture(autouse=True)
def _twin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "twin", (__name__, "Twin", "always there"))


async def test_two_servers_are_measured_in_turn_and_medians_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str]] = []

    async def measure(settings: RunSettings, peer: Peer, *, say: Say) -> RelayFigures:
        asked.append((settings.seed, peer.name))
        return replace(GOOD, server=peer.name, loss=0.1 * settings.seed)

    monkeypatch.setattr(relay_rounds, "measure", measure)
    told = await measure_rounds("fanout", RelaySettings(peer="twin", floor=False), CORES, say=lambda text: None)
    assert asked == [(number, name) for number in range(1, ROUNDS + 1) for name in ("sluice", "twin")]
    assert [(one.server, one.loss) for one in told] == [("sluice", pytest.approx(0.2)), ("twin", pytest.approx(0.2))]


async def test_both_servers_knees_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    async def measure(settings: RunSettings, peer: Peer, *, say: Say) -> RelayFigures:
        return GOOD if settings.size <= (300 if peer.name == "sluice" else 20) else LATE

    monkeypatch.setattr(relay_rounds, "measure", measure)
    (ours, knee), (theirs, smaller) = await search(
        "fanout", RelaySettings(peer="twin", subscribers=100), CORES, say=lambda text: None
    )
    assert (ours, theirs) == ("sluice", "twin")
    assert 285 <= knee.size <= 300
    assert 19 <= smaller.size <= 20
    assert smaller.broken is not None
    assert smaller.broken.objectives == (Objective.DELAY,)


def test_a_workload_has_its_own_size_and_joins() -> None:
    def made(workload: str, settings: RelaySettings) -> tuple[int, int]:
        run = run_settings(workload, settings, CORES, seconds=RUN_S)
        return run.size, run.joins

    assert made("fanout", RelaySettings()) == (200, 0)
    assert made("fanout", RelaySettings(subscribers=7, joins=3)) == (7, 0), "no subscriber joins a steady run later"
    assert made("storm", RelaySettings()) == (200, 100)
    assert made("churn", RelaySettings()) == (50, 6000), "twice as many to warm up"
    assert run_settings("fanout", RelaySettings(profile="cm"), CORES, seconds=1.0).profile is (
        SrtpProfile.AES128_CM_SHA1_80
    )
