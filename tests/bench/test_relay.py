"""The relay benchmark measures what it says: small runs against a real node."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from bench.machine import Cores
from bench.peers import PeerMissing
from bench.relay_figures import RelayFigures
from bench.relay_floor import measure_floor, streams
from bench.relay_run import RunSettings, measure
from bench.relay_sluice import SluicePeer
from bench.relay_workloads import SPEAKERS, WORKLOADS
from shared.rtc.srtp import SrtpProfile

pytestmark = pytest.mark.integration
UNPINNED = Cores(server=None, generator=None)


def small(workload: str, size: int, *, joins: int = 0) -> RunSettings:
    return RunSettings(
        workload=WORKLOADS[workload],
        size=size,
        seconds=1.0,
        warm_up_s=1.2,
        joins=joins,
        profile=SrtpProfile.AEAD_AES_128_GCM,
        cores=UNPINNED,
    )


async def run(settings: RunSettings) -> RelayFigures:
    return await measure(settings, SluicePeer(), say=lambda text: None)


@pytest.mark.parametrize("profile", [SrtpProfile.AEAD_AES_128_GCM, SrtpProfile.AES128_CM_SHA1_80])
async def test_a_small_fanout_arrives_whole(profile: SrtpProfile) -> None:
    figures = await run(replace(small("fanout", 3), profile=profile))
    assert figures.verified > 100, "the watched subscriber decrypted what was published, in order"
    assert figures.loss < 0.5
    assert figures.packets_out_per_s == pytest.approx(3 * figures.packets_in_per_s, rel=0.4)
    assert 0 < figures.cpu_us_per_packet == pytest.approx(figures.cpu_us_user + figures.cpu_us_sys)
    assert figures.delay_ms_p99 >= figures.delay_ms_p50 > 0
    assert figures.arrival_ms_p99 >= figures.arrival_ms_p50 > 0, "the server's timestamps are the publisher's"
    assert figures.joins is None


async def test_everybody_in_a_room_gets_the_other_seven() -> None:
    figures = await run(small("rooms", 1))
    assert figures.subscribers == 8
    assert figures.packets_out_per_s == pytest.approx(7 * figures.packets_in_per_s, rel=0.4)


async def test_a_storm_is_told_by_those_who_were_there_before() -> None:
    figures = await run(small("storm", 3, joins=4))
    assert (figures.subscribers, figures.joins) == (3, 4)
    assert figures.loss < 0.5
    assert figures.joins_per_s is not None


async def test_churn_tells_memory_before_and_after() -> None:
    figures = await run(small("churn", 2, joins=60))
    assert figures.joins == 20, "the others were to warm up"
    assert figures.rss_kib_warm is not None
    assert figures.rss_kib_end is not None
    assert figures.rss_kib_warm > 1000
    assert figures.rss_kib_end > 1000


async def test_the_floor_is_the_price_of_the_same_sends() -> None:
    assert 0 < await measure_floor(small("fanout", 3), gso=True, seconds=0.3) < 1000


def test_the_floor_has_each_track_once_for_everybody_who_gets_it() -> None:
    told = streams(WORKLOADS["rooms"].setup(2), rng=random.Random(1))
    assert len(told) == 2 * 16
    assert all(len(stream[4]) == 7 for stream in told)
    assert told[0][4] == [1, 2, 3, 4, 5, 6, 7]
    assert len(streams(WORKLOADS["audio"].setup(5), rng=random.Random(1))) == SPEAKERS


async def test_a_plane_that_is_not_there_is_not_replaced_by_another(monkeypatch: pytest.MonkeyPatch) -> None:
    """The node falls back to the reference with a warning; a benchmark must not."""
    peer = SluicePeer()
    monkeypatch.setattr(SluicePeer, "_answer", _reference_answers)
    with pytest.raises(PeerMissing, match="compiled plane"):
        await peer.start(core=None, profile=SrtpProfile.AEAD_AES_128_GCM)
    await peer.stop()


async def _reference_answers(self: SluicePeer) -> dict[str, object]:
    return {"port": 1, "plane": "reference"}
