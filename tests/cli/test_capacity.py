"""`sluice capacity` as a person meets it, and one small search with a real SFU."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path

import pytest

from bench.capacity import figures as capacity_figures
from bench.capacity import run as capacity_run
from bench.capacity import sfu as capacity_sfu
from bench.capacity.figures import EndReason
from bench.capacity.run import measure_step
from bench.capacity.settings import CapacitySettings
from bench.capacity.sfu import RealSfu, Silent, read_metrics
from bench.machine import Cores
from cli.bench_relay import GeneratorMissing
from cli.capacity import capacity
from cli.main import run
from control.core.scaling_settings import read_settings
from shared.errors import BadSetting

UNPINNED = Cores(server=None, generator=None)
SCRAPE = """
# TYPE sluice_sfu_media_bytes_out counter
sluice_sfu_media_bytes_out_total 1200.0
# TYPE sluice_sfu_media_drops counter
sluice_sfu_media_drops_total{reason="no-route"} 3.0
# TYPE sluice_sfu_forwarding_delay_seconds histogram
sluice_sfu_forwarding_delay_seconds_bucket{le="0.001024"} 5.0
sluice_sfu_forwarding_delay_seconds_bucket{le="0.00128"} 5.0
sluice_sfu_forwarding_delay_seconds_bucket{le="0.003072"} 7.0
sluice_sfu_forwarding_delay_seconds_bucket{le="+Inf"} 8.0
"""


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"profile": "aes"}, "--profile"),
        ({"cameras": 1.5}, "--cameras"),
        ({"room_size": 1}, "--room-size"),
        ({"kbps": 0.0}, "--kbps"),
        ({"kbps": float("nan")}, "--kbps"),
        ({"step": 0}, "--step"),
        ({"seconds": -1.0}, "--seconds"),
        ({"start": 1}, "--start"),
        ({"start": 500, "most": 400}, "--most"),
        ({"sfus": 0}, "--sfus"),
        ({"interface_mbps": 0.0}, "--interface-mbps"),
        ({"interface": "no-such-0"}, "--interface"),
        ({"out": (Path("ceilings.ini"),)}, "--out"),
        ({"plot": Path("nowhere/capacity.png")}, "--plot"),
    ],
)
def test_a_setting_that_can_not_be_used_is_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(BadSetting) as refused:
        capacity(settings=CapacitySettings(**{"out": (), **settings}))  # type: ignore[arg-type]
    assert refused.value.setting == named


def test_without_the_compiled_generator_one_sentence_tells_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bench.generator.compiled", None)
    with pytest.raises(GeneratorMissing, match="pip install"):
        capacity(settings=CapacitySettings(out=()))


def test_a_scrape_is_read() -> None:
    scrape = read_metrics(SCRAPE, at=1.0)
    assert scrape.counts["bytes_out"] == 1200
    assert scrape.drops == {"no-route": 3}
    assert scrape.delays == [(1024, 5), (3072, 2), (1_000_000, 1)]


@pytest.mark.parametrize("error", [Silent(), TimeoutError()])
async def test_an_sfu_too_busy_to_answer_is_a_step_that_broke(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    async def measure(*_: object, **__: object) -> object:
        raise error

    monkeypatch.setattr(capacity_run, "measure", measure)
    figures = await measure_step(CapacitySettings(out=()), 100, UNPINNED, say=lambda text: None)
    assert (figures.streams, figures.players) == (100, 8)
    assert figures.silent


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine is slow, and that is not what these tests are about."""
    monkeypatch.setattr(capacity_sfu, "ANSWER_WITHIN_S", 60.0)
    monkeypatch.setattr(capacity_figures, "MAX_P99_MS", math.inf)
    monkeypatch.setattr(capacity_figures, "MAX_LOSS", 1.0)
    monkeypatch.setattr(capacity_figures, "CPU_GUARD", math.inf)


@pytest.mark.process
@pytest.mark.usefixtures("patient")
def test_a_small_search_with_a_real_sfu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toml = tmp_path / "c.toml"
    arguments = f"--start 4 --step 4 --most 8 --seconds 1 --room-size 3 --out {toml} --json".split()
    assert run(["capacity", *arguments]) == 0
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert [(step["streams"], step["held"]) for step in told["steps"]] == [(4, True), (8, True)]
    assert (told["reason"], told["certain"], told["stream_ceiling"]) == (EndReason.MOST, False, 6)
    assert read_settings(toml.read_text()).stream_ceiling == 6
    assert "lower bound" in toml.read_text()
    assert "8 streams, 3 players" in captured.err, "a line a step"


@pytest.mark.process
@pytest.mark.usefixtures("patient")
async def test_the_sfu_counts_what_it_forwards() -> None:
    """Packets, bits and CPU are the SFU's own, the delay is its histogram's."""
    settings = CapacitySettings(out=(), seconds=1.0, room_size=3)
    figures = await measure_step(settings, 12, UNPINNED, say=lambda text: None)
    assert figures.packets_per_s == pytest.approx(6 * (60 + 50), rel=0.4)
    assert figures.egress_mbps == pytest.approx(6 * 0.6, rel=0.6)
    assert 0 < figures.delay_ms_p50 <= figures.delay_ms_p99
    assert figures.sfu_cpu > 0


async def test_a_failed_start_leaves_nothing_behind() -> None:
    sfu = RealSfu()
    await sfu.stop()
    await sfu.stop()
    assert not sfu._logs.exists()
