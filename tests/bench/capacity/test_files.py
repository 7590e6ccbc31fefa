"""What `sluice capacity` writes is read by SFUs and by the autoscaler, and says how it was found."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from cyclopts import App

from bench.capacity.file import MARK, check_target, write
from bench.capacity.plot import plot_finding
from bench.capacity.text import ceilings, report_json, report_text, story
from bench.plot import draw
from cli.environment import every_setting
from control.core.scaling_settings import read_settings
from sfu.config import SfuConfig
from shared.errors import BadSetting
from tests.bench.capacity.capacity_steps import Machine, found, report

DOCS = Path(__file__).parents[3] / "docs"


def sfu_settings(env: Path) -> SfuConfig:
    """What an SFU makes of the file when a shell has read it."""
    script = f"set -a; . '{env}'; env -0"
    told = subprocess.run(["sh", "-c", script], env={"PATH": os.environ["PATH"]}, capture_output=True, check=True)
    given = dict(line.split("=", 1) for line in told.stdout.decode().split("\0") if line.startswith("SLUICE_"))
    app = App(name="sfu", config=every_setting, result_action="return_value")
    app.default(_itself)
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("SLUICE_")]:
            patch.delenv(name)
        for name, value in given.items():
            patch.setenv(name, value)
        config = app([])
    assert isinstance(config, SfuConfig)
    return config


def _itself(config: SfuConfig | None = None) -> SfuConfig:
    return config or SfuConfig()


async def test_an_sfu_and_the_autoscaler_read_the_ceilings_that_were_found(tmp_path: Path) -> None:
    told = report(await found(Machine(breaks_at=1300, sfu_cpu=0.9)))
    for suffix in ("env", "toml"):
        write(tmp_path / f"c.{suffix}", ceilings(told), story(told))
    sfu = sfu_settings(tmp_path / "c.env")
    assert (sfu.stream_ceiling, sfu.egress_ceiling_mbps, sfu.cpu_guard) == (1040, 700.0, 0.85)
    scaling = read_settings((tmp_path / "c.toml").read_text())
    assert (scaling.stream_ceiling, scaling.egress_ceiling_mbps, scaling.cpu_guard) == (1040, 700.0, 0.85)


async def test_an_env_file_is_plain_enough_for_docker_and_systemd(tmp_path: Path) -> None:
    """Docker takes a value as it stands, quotes and later comments included."""
    told = report(await found(Machine(breaks_at=1300, sfu_cpu=0.9)))
    write(tmp_path / "c.env", ceilings(told), story(told))
    lines = [line for line in (tmp_path / "c.env").read_text().splitlines() if line]
    assert all(line.startswith("#") or (line.startswith("SLUICE_") and " " not in line) for line in lines)


@pytest.mark.parametrize("suffix", ["env", "toml"])
def test_the_example_in_the_docs_can_be_used(suffix: str) -> None:
    path = DOCS / f"capacity-example.{suffix}"
    settings = sfu_settings(path) if suffix == "env" else read_settings(path.read_text())
    assert settings.stream_ceiling
    assert settings.stream_ceiling > 0
    assert path.read_text().startswith(MARK)
    check_target(path)


def test_the_page_shows_the_example_as_it_is() -> None:
    """`scripts/document-capacity.sh` puts it there."""
    shown = (DOCS / "autoscaling.md").read_text()
    assert f"```sh\n{(DOCS / 'capacity-example.env').read_text()}```\n" in shown


async def test_the_story_says_where_and_why_it_broke() -> None:
    broke = "\n".join(story(report(await found(Machine(breaks_at=1300, delay_ms_p99=3.7)), kbps=1200.0)))
    for part in ("Some CPU", "2 cores", "Linux 6.1", "1200 kbit/s", "1,200 streams", "1,300 streams", "3.70 ms", "80%"):
        assert part in broke


async def test_a_lower_bound_is_never_told_as_a_ceiling() -> None:
    told = report(await found(Machine(breaks_at=1000, loss=0.05, generator_drops=9)))
    for text in ("\n".join(story(told)), report_text(told, ())):
        assert "lower bound" in text
        assert "generator" in text
        assert "of where it broke" not in text
    assert report_json(told)["certain"] is False
    beyond = report(await found(Machine(breaks_at=10**9)))
    assert "lower bound" in report_text(beyond, ())


async def test_a_silent_sfu_is_told_in_words(tmp_path: Path) -> None:
    machine = Machine(
        breaks_at=300, silent="the SFU did not answer", delay_ms_p99=float("nan"), others_cpu=float("nan")
    )
    told = report(await found(machine))
    assert "broke at 300 streams: the SFU did not answer" in report_text(told, ())
    draw(plot_finding(told), tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


async def test_json_has_every_step() -> None:
    told = report_json(report(await found(Machine(breaks_at=300, sfu_cpu=0.9))))
    again = json.loads(json.dumps(told))
    assert [(step["streams"], step["held"]) for step in again["steps"]] == [(100, True), (200, True), (300, False)]
    assert (again["reason"], again["stream_ceiling"], again["broke_streams"]) == ("cpu", 200, 300)


@pytest.mark.parametrize("name", ["capacity.ini", "nowhere/capacity.env"])
def test_a_file_that_can_not_be_written_is_told_before_measuring(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadSetting, match="--out"):
        check_target(tmp_path / name)


def test_a_settings_file_that_a_person_wrote_is_not_written_over(tmp_path: Path) -> None:
    mine = tmp_path / "scaling.toml"
    mine.write_text("min_nodes = 4\n")
    with pytest.raises(BadSetting, match="another name"):
        check_target(mine)
    assert mine.read_text() == "min_nodes = 4\n"
    check_target(tmp_path / "new.toml")
    assert not (tmp_path / "new.toml").exists(), "looking leaves nothing behind"


async def test_pictures_are_drawn(tmp_path: Path) -> None:
    for machine in (Machine(breaks_at=1300, sfu_cpu=0.9), Machine(breaks_at=10**9)):
        draw(plot_finding(report(await found(machine))), tmp_path / "p.png")
        assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")
