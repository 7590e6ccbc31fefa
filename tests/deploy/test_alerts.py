"""The Prometheus alert rules: promtool's tests, queries that name what is there, and a page that says what to do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.deploy.metrics import registered
from tests.deploy.promql import FROM_PROMETHEUS, promtool, series_of

PROMETHEUS = Path(__file__).parents[2] / "deploy" / "prometheus"
DOCS = Path(__file__).parents[2] / "docs"
RULES = (PROMETHEUS / "alerts.yml").read_text(encoding="utf-8")
TESTS = (PROMETHEUS / "alerts.test.yml").read_text(encoding="utf-8")
BLOCKS = dict(re.findall(r"- alert: (\w+)\n(.*?)(?=\n +- alert: |\n +- name: |\Z)", RULES, re.DOTALL))
SERIES = {series: metric for metric in registered().values() for series in metric.series}


def test_prometheus_accepts_the_rules() -> None:
    promtool("check", "rules", "alerts.yml", cwd=PROMETHEUS)


@pytest.mark.process
def test_alerts_fire_when_they_should_and_stay_quiet_otherwise() -> None:
    promtool("test", "rules", "alerts.test.yml", cwd=PROMETHEUS)


def test_what_the_requirements_ask_for_is_there() -> None:
    wanted = {"SluiceDrainStuck", "SluiceFreeze", "SluiceLoss", "SluiceUnknownNodes", "SluiceFailedJoins"}
    assert wanted | {"SluiceLeaderAbsent", "SluiceNotWarmedUp", "SluiceEgressNearCeiling"} <= BLOCKS.keys()


@pytest.mark.parametrize("alert", BLOCKS)
def test_an_alert_fires_in_some_test(alert: str) -> None:
    fired = re.findall(r"alertname: (\w+)\n +exp_alerts:\n", TESTS)
    assert alert in fired


@pytest.mark.parametrize("alert", BLOCKS)
def test_an_alert_asks_for_what_a_program_exports(alert: str) -> None:
    series = series_of(re.sub(r" +#.*", "", BLOCKS[alert]))
    assert series
    for name, labels in series.items():
        assert name in SERIES, f"no program exports {name}"
        assert labels - FROM_PROMETHEUS <= SERIES[name].labels


@pytest.mark.parametrize("alert", BLOCKS)
def test_an_alert_says_how_urgent_it_is_and_where_to_read_on(alert: str) -> None:
    block = BLOCKS[alert]
    assert re.search(r"severity: (page|ticket)\b", block)
    assert "summary:" in block
    assert "description:" in block
    page, _, anchor = re.findall(r"runbook: (\S+)", block)[0].partition("#")
    assert anchor == alert.lower()
    assert f"### {alert}\n" in (DOCS.parent / page).read_text(encoding="utf-8")
