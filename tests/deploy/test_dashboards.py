"""The Grafana dashboards: what Grafana needs to import them, and queries that name what is really there."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.metrics import registered
from tests.deploy.promql import FROM_PROMETHEUS, grouping_of, plain, promtool, series_of

GRAFANA = Path(__file__).parents[2] / "deploy" / "grafana"
FILES = sorted(GRAFANA.glob("*.json"))
NAMES = {series: metric for metric in registered().values() for series in metric.series}
KINDS = {"row", "timeseries", "stat", "bargauge", "heatmap", "table"}


def load(file: Path) -> dict[str, Any]:
    dashboard: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return dashboard


PANELS = [
    pytest.param(panel, id=f"{file.stem}: {panel['title']}")
    for file in FILES
    for panel in load(file)["panels"]
    if panel["type"] != "row"
]


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The builder, which is a script next to its output and no package of ours."""
    monkeypatch.syspath_prepend(str(GRAFANA))
    known = set(sys.modules)
    import build

    yield build
    for name in set(sys.modules) - known:
        if name in ("build", "model") or name.split(".")[0] == "dashboards":
            del sys.modules[name]


def test_the_four_dashboards_are_what_the_builder_builds(builder: Any) -> None:
    built = {name: builder.rendered(dashboard) for name, dashboard in builder.ALL.items()}
    assert set(built) == {"fleet", "drain", "autoscaler", "media"}
    assert built == {file.stem: file.read_text(encoding="utf-8") for file in FILES}, "run deploy/grafana/build.py"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_grafana_can_import_it(file: Path) -> None:
    dashboard = load(file)
    assert dashboard["schemaVersion"] == 42
    assert 8 <= len(dashboard["uid"]) <= 40
    assert "id" not in dashboard, "Grafana gives the number"
    assert dashboard["title"]
    assert dashboard["graphTooltip"] in (0, 1, 2)
    assert isinstance(dashboard["refresh"], str)
    assert set(dashboard["time"]) == {"from", "to"}
    assert all(link["type"] in ("link", "dashboards") for link in dashboard["links"])
    sources = [v for v in dashboard["templating"]["list"] if v["type"] == "datasource"]
    assert [(v["name"], v["query"]) for v in sources] == [("datasource", "prometheus")]


def test_no_two_dashboards_have_one_uid() -> None:
    assert len({load(file)["uid"] for file in FILES}) == len(FILES) == 4


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_panels_have_ids_of_their_own_and_do_not_overlap(file: Path) -> None:
    all_panels = load(file)["panels"]
    assert len({panel["id"] for panel in all_panels}) == len(all_panels)
    taken: dict[tuple[int, int], str] = {}
    for panel in all_panels:
        at = panel["gridPos"]
        assert min(at["w"], at["h"]) > 0
        assert at["x"] + at["w"] <= 24
        for x in range(at["x"], at["x"] + at["w"]):
            for y in range(at["y"], at["y"] + at["h"]):
                other = taken.setdefault((x, y), panel["title"])
                assert other == panel["title"], f"{panel['title']} lies on {other}"


@pytest.mark.parametrize("panel", PANELS)
def test_a_panel_says_what_it_shows_and_asks_the_chosen_data_source(panel: dict[str, Any]) -> None:
    assert panel["type"] in KINDS
    assert panel["title"]
    assert len(panel["description"]) > 10
    assert panel["targets"]
    refs = [target["refId"] for target in panel["targets"]]
    assert len(set(refs)) == len(refs)
    for each in (panel, *panel["targets"]):
        assert each["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
    steps = panel["fieldConfig"]["defaults"]["thresholds"]["steps"]
    assert steps[0]["value"] is None
    values = [step["value"] for step in steps[1:]]
    assert values == sorted(values)


@pytest.mark.parametrize("panel", PANELS)
def test_a_query_names_what_a_program_exports(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        series = series_of(target["expr"])
        assert series, target["expr"]
        known: set[str] = set()
        for name, labels in series.items():
            assert name in NAMES, f"no program exports {name}"
            assert labels - FROM_PROMETHEUS <= NAMES[name].labels, f"{name} has no {labels - NAMES[name].labels}"
            known |= NAMES[name].labels
        assert grouping_of(target["expr"]) <= known
        legend = target["legendFormat"].replace("{{", "\0").split("\0")[1:]
        assert {part.split("}}")[0] for part in legend} <= known | FROM_PROMETHEUS


def test_prometheus_understands_every_query(tmp_path: Path) -> None:
    exprs = [target["expr"] for file in FILES for p in load(file)["panels"] for target in p.get("targets", ())]
    rules = [{"record": f"sluice:query:{n}", "expr": plain(expr)} for n, expr in enumerate(exprs)]
    # JSON is YAML.
    (tmp_path / "rules.yml").write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    promtool("check", "rules", "rules.yml", cwd=tmp_path)
