"""`sluice bench relay` as a person meets it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from bench.plot import draw
from bench.relay.knee import KneeStep, judge, knee_of
from bench.relay.peers import PeerMissing, peer_named
from bench.relay.plot import plot_knees, plot_run, rebinned
from bench.relay.settings import RelaySettings
from bench.relay.workloads import BURST, SMALL_BURST, WORKLOADS, unit, webcam
from cli import bench_relay as relay
from shared.errors import BadSetting
from tests.bench.relay.test_knee import GOOD, LATE


@pytest.mark.parametrize(
    ("workload", "settings", "named"),
    [
        ("fannout", RelaySettings(), "WORKLOAD"),
        ("fanout", RelaySettings(profile="aes"), "--profile"),
        ("fanout", RelaySettings(peer="nobody"), "--peer"),
        ("fanout", RelaySettings(subscribers=0), "--subscribers"),
        ("fanout", RelaySettings(seconds=-1.0), "--seconds"),
        ("churn", RelaySettings(find_knee=True), "--find-knee"),
    ],
)
def test_a_setting_that_can_not_be_used_is_named(workload: str, settings: RelaySettings, named: str) -> None:
    with pytest.raises(BadSetting) as refused:
        settings.check(workload)
    assert refused.value.setting == named


def test_without_the_compiled_generator_one_sentence_tells_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "bench.generator.compiled", None)
    with pytest.raises(relay.GeneratorMissing) as missing:
        relay.relay("fanout")
    assert "pip install" in missing.value.sentence()


def test_an_unknown_server_is_said_to_be_missing() -> None:
    with pytest.raises(PeerMissing):
        peer_named("nobody")


def test_workloads_are_as_fast_as_they_say() -> None:
    def bits_per_s(frames: tuple[tuple[int, ...], ...]) -> float:
        return 30 * 8 * sum(map(sum, frames)) / len(frames)

    assert bits_per_s(BURST.frames) == pytest.approx(2e6, rel=0.02)
    assert bits_per_s(SMALL_BURST.frames) == pytest.approx(500e3, rel=0.02)


def test_webcam_frames_differ_by_a_byte() -> None:
    frames = webcam(rng=random.Random(3)).frames
    assert all(max(sizes) - min(sizes) <= 1 for sizes in frames)
    assert sum(map(len, frames)) / len(frames) == pytest.approx(4.8, abs=0.5)


def test_no_player_in_a_room_gets_itself() -> None:
    setup = WORKLOADS["rooms"].setup(3)
    for number, subscriber in enumerate(setup.subscribers):
        assert len(subscriber.publishers) == 7
        assert number not in subscriber.publishers
        assert {setup.publishers[other].room for other in subscriber.publishers} == {subscriber.room}
    assert (unit("rooms"), unit("fanout")) == ("rooms", "subscribers")


def test_histograms_of_different_buckets_get_the_same_bins() -> None:
    fine = [(bound, 1) for bound in range(1050, 2001, 50)]
    coarse = [(1500, 10), (2000, 10)]
    (fine_shares, fine_edges), (coarse_shares, coarse_edges) = rebinned(fine), rebinned(coarse)
    assert sum(fine_shares) == pytest.approx(1) == sum(coarse_shares)
    assert set(fine_edges) & set(coarse_edges), "edges are the same"
    assert fine_edges[0] <= 1.05 * 8 / 9 < fine_edges[1]
    assert fine_edges[-2] < 2.0 <= fine_edges[-1]


def test_pictures_are_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    draw(plot_run([GOOD, LATE]), tmp_path / "run.png")
    steps = {size: KneeStep(size=size, figures=one, broken=judge(one)) for size, one in ((100, GOOD), (200, LATE))}
    draw(plot_knees("fanout", "subscribers", [("sluice", knee_of(steps))]), tmp_path / "knee.png")
    for name in ("run.png", "knee.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")
