"""The relay benchmark measures what it says: small runs against a real node."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from bench.machine import Cores
from bench.relay.figures import RelayFigures, loss, received
from bench.relay.floor import measure_floor, streams
from bench.relay.measure import measure
from bench.relay.peers import PeerMissing
from bench.relay.run import Run, RunSettings
from bench.relay.sluice import SluicePeer
from bench.relay.workloads import SPEAKERS, WORKLOADS
from shared.rtc.srtp import SrtpProfile

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


def assert_whole(figures: RelayFigures) -> None:
    """Nothing is lost unless a socket was full, which is counted: the machine was busy."""
    assert figures.loss == 0 or figures.generator_drops or figures.drops.get("socket-full")


class Flowing(Run):
    """A run without a clock."""

    async def come(self, packets: int) -> None:
        """Until every subscriber has got so many."""
        async with asyncio.timeout(60):
            while min(self.got()) < packets:  # noqa: ASYNC110 - the generator's thread can't set an event here
                await asyncio.sleep(0.02)

    def got(self) -> list[int]:
        counts = [0] * self.watching
        for flow in self.load.generator.flows():
            counts[flow[0]] += flow[2]
        return counts


@asynccontextmanager
async def under_way(settings: RunSettings) -> AsyncIterator[Flowing]:
    peer = SluicePeer()
    await peer.start(core=None, profile=settings.profile)
    try:
        flowing = Flowing(settings, peer, lambda text: None)
        try:
            await flowing.publish()
            await flowing.subscribe()
            flowing.load.go()
            yield flowing
        finally:
            await flowing.load.close()
    finally:
        await peer.stop()


async def run(settings: RunSettings) -> RelayFigures:
    return await measure(settings, SluicePeer(), say=lambda text: None)


@pytest.mark.parametrize("profile", [SrtpProfile.AEAD_AES_128_GCM, SrtpProfile.AES128_CM_SHA1_80])
async def test_a_small_fanout_arrives_whole(profile: SrtpProfile) -> None:
    figures = await run(replace(small("fanout", 3), profile=profile))
    assert figures.verified > 100, "the watched subscriber decrypted what was published, in order"
    assert_whole(figures)
    assert 0 < figures.cpu_us_per_packet == pytest.approx(figures.cpu_us_user + figures.cpu_us_sys)
    assert figures.delay_ms_p99 >= figures.delay_ms_p50 > 0
    assert figures.arrival_ms_p99 >= figures.arrival_ms_p50 > 0, "the server's timestamps are the publisher's"
    assert figures.joins is None


@pytest.mark.parametrize(("workload", "size", "copies"), [("fanout", 3, 3), ("audio", 2, 2), ("rooms", 1, 7)])
async def test_what_was_sent_is_what_the_server_says_it_forwarded_and_what_came(
    workload: str, size: int, copies: int
) -> None:
    async with under_way(small(workload, size)) as flowing:
        await flowing.come(200)
        before, first = await flowing.quiet(), await flowing.read()
        flowing.load.go()
        await flowing.come(1000)
        after, last = await flowing.quiet(), await flowing.read()
        sent = sum(after.sent.values()) - sum(before.sent.values())
        assert last.sent[0] - first.sent[0] == sent > 0
        assert last.peer.packets_in is not None
        assert first.peer.packets_in is not None
        assert last.peer.forwarded is not None
        assert first.peer.forwarded is not None
        came, forwarded = received(before.flows, after.flows), last.peer.forwarded - first.peer.forwarded
        assert 0 < came <= forwarded <= copies * sent
        if last.overrun == first.overrun and last.peer.drops == first.peer.drops:  # else a socket was full
            assert came == copies * sent
            assert last.peer.packets_in - first.peer.packets_in >= sent, "and receivers' reports"
            assert loss(before, after, flowing.wanted()) == 0


async def test_a_storm_is_told_by_those_who_were_there_before() -> None:
    figures = await run(small("storm", 3, joins=4))
    assert (figures.subscribers, figures.joins) == (3, 4)
    assert_whole(figures)
    assert figures.joins_per_s is not None


async def test_who_joined_and_left_leaves_no_memory_behind() -> None:
    """A peer takes about 90 KiB. What the interpreter has not collected yet, some 7 KiB each so early, is allowed."""
    figures = await run(small("churn", 2, joins=900))
    assert figures.joins == 300, "the others were to warm up"
    assert figures.rss_kib_warm is not None
    assert figures.rss_kib_end is not None
    assert 0 < figures.rss_kib_end < figures.rss_kib_warm + 32 * figures.joins


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
