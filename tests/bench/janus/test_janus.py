"""Janus is measured by the same generator as our own SFU: a small run of each kind, whole and in order."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from bench.janus.api import JanusApi
from bench.janus.process import JanusFailed
from bench.janus.server import JanusPeer, room_request, version_of
from bench.machine import Cores
from bench.relay.figures import RelayFigures
from bench.relay.measure import measure
from bench.relay.run import RunSettings
from bench.relay.workloads import WORKLOADS
from shared.rtc.srtp import SrtpProfile
from tests.bench.janus.janus_installed import need_janus

GCM, CM = SrtpProfile.AEAD_AES_128_GCM, SrtpProfile.AES128_CM_SHA1_80

ENDLESS_US = 100_000
"""The last bucket of the delays."""


async def run(workload: str, size: int, profile: SrtpProfile = GCM) -> RelayFigures:
    settings = RunSettings(
        workload=WORKLOADS[workload],
        size=size,
        seconds=1.5,
        joins=0,
        profile=profile,
        cores=Cores(server=None, generator=None),
    )
    return await measure(settings, JanusPeer(), say=lambda text: None)


def check(figures: RelayFigures) -> None:
    assert figures.verified > 100, "the watched subscriber decrypted what was published, in order"
    assert figures.loss < 0.1, "none of the eight is silent"
    assert figures.packets_out_per_s > 0
    assert figures.cpu_us_per_packet == pytest.approx(figures.cpu_us_user + figures.cpu_us_sys)
    assert figures.cpu_us_per_packet > 0
    assert figures.rss_kib_per_subscriber > 0
    timed = sum(count for _, count in figures.delays)
    assert timed / figures.seconds == pytest.approx(figures.packets_out_per_s, rel=0.3), "all packets have a delay"
    endless = sum(count for bound, count in figures.delays if bound >= ENDLESS_US)
    assert endless < timed / 2, "frames that are taken for others look as late as can be"
    assert not figures.drops
    assert figures.version.startswith("Janus ")


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize("profile", [GCM, CM])
async def test_a_small_fanout_arrives_whole(profile: SrtpProfile) -> None:
    need_janus()
    figures = await run("fanout", 3, profile)
    check(figures)
    assert figures.profile == profile.value


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(("workload", "size"), [("audio", 2), ("rooms", 1)])
async def test_many_publishers_are_told_apart(workload: str, size: int) -> None:
    need_janus()
    check(await run(workload, size))


@pytest.mark.slow
@pytest.mark.process
async def test_nothing_is_left_of_a_start_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    need_janus()
    paths: list[Path] = []

    async def refuse(path: Path) -> JanusApi:
        paths.append(path)
        raise JanusFailed("refused")

    monkeypatch.setattr(JanusApi, "open", refuse)
    peer = JanusPeer()
    with pytest.raises(JanusFailed):
        await peer.start(core=None, profile=GCM)
    assert not paths[0].exists()
    assert not any(str(paths[0].parent) in line for line in await asyncio.to_thread(_command_lines))
    await peer.stop()


def _command_lines() -> list[str]:
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((process / "cmdline").read_text())
        except OSError:
            continue
    return lines


def test_a_room_does_nothing_but_forward() -> None:
    request = room_request(7)
    assert request["room"] == 7
    for name in ("audiolevel_event", "audiolevel_ext", "notify_joining", "record", "transport_wide_cc_ext"):
        assert request[name] is False
    assert request["fir_freq"] == 0


def test_the_version_names_the_libraries_that_matter() -> None:
    info: dict[str, Any] = {"version_string": "1.1.2", "dependencies": {"libsrtp": "libsrtp2 2.5.0"}}
    assert version_of(info) == "Janus 1.1.2, libsrtp2 2.5.0"
