"""Grafana's dashboard model as far as ours need it: rows of panels laid out on 24 columns, written as classic JSON.

The classic model is what every Grafana imports: 12 stores it as it is, 13 turns it into its own on loading. Its version
is the one that Grafana's own migrations end at, so nothing is migrated. The data source is a variable: a dashboard
belongs to no installation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SCHEMA_VERSION = 42
"""Latest of `apps/dashboard/pkg/migration/schemaversion` in Grafana's source."""
COLUMNS = 24
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
Json = dict[str, Any]
GREEN, AMBER, RED, BLUE = "green", "orange", "red", "blue"


@dataclass(frozen=True, kw_only=True)
class Query:
    """One PromQL expression and what its lines are called."""

    expr: str
    legend: str = ""


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel. `steps`: from which value on which colour, the first without a bound."""

    title: str
    queries: tuple[Query, ...]
    help: str
    kind: str = "timeseries"
    """`timeseries`, `stat`, `bargauge`, `heatmap`, `table`."""
    unit: str = "short"
    width: int = 8
    height: int = 8
    least: float | None = 0
    most: float | None = None
    steps: tuple[tuple[float, str], ...] = ()
    first: str = GREEN
    """Colour below the first step."""
    stack: bool = False
    decimals: int | None = None


@dataclass(frozen=True, kw_only=True)
class Row:
    """A titled row."""

    title: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, kw_only=True)
class Dashboard:
    """A whole dashboard. `by_version`: with a variable `$version` over the releases that have drained."""

    uid: str
    title: str
    help: str
    rows: tuple[Row, ...]
    by_version: bool = False
    span: str = "now-6h"


def dashboard_json(dashboard: Dashboard) -> Json:
    """The dashboard as Grafana imports it."""
    variables = [_source_variable()] + ([_version_variable()] if dashboard.by_version else [])
    return {
        "uid": dashboard.uid,
        "title": dashboard.title,
        "description": dashboard.help,
        "tags": ["sluice"],
        "schemaVersion": SCHEMA_VERSION,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "timezone": "",
        "refresh": "30s",
        "time": {"from": dashboard.span, "to": "now"},
        "timepicker": {},
        "fiscalYearStartMonth": 0,
        "links": [_others()],
        "annotations": {"list": [_annotations()]},
        "templating": {"list": variables},
        "panels": list(_laid_out(dashboard.rows)),
    }


def _laid_out(rows: tuple[Row, ...]) -> Iterator[Json]:
    number, y = 0, 0
    for row in rows:
        number += 1
        yield {
            "id": number,
            "type": "row",
            "title": row.title,
            "collapsed": False,
            "panels": [],
            "gridPos": {"x": 0, "y": y, "w": COLUMNS, "h": 1},
        }
        x, y, deepest = 0, y + 1, 0
        for panel in row.panels:
            if x + panel.width > COLUMNS:
                x, y, deepest = 0, y + deepest, 0
            number += 1
            yield _panel(panel, number=number, x=x, y=y)
            x, deepest = x + panel.width, max(deepest, panel.height)
        y += deepest


def _panel(panel: Panel, *, number: int, x: int, y: int) -> Json:
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.help,
        "datasource": SOURCE,
        "gridPos": {"x": x, "y": y, "w": panel.width, "h": panel.height},
        "targets": [_target(query, panel, n) for n, query in enumerate(panel.queries)],
        "fieldConfig": {"defaults": _defaults(panel), "overrides": []},
        "options": _options(panel),
    }


def _target(query: Query, panel: Panel, n: int) -> Json:
    instant = panel.kind in ("bargauge", "table")
    target: Json = {
        "refId": chr(ord("A") + n),
        "datasource": SOURCE,
        "expr": query.expr,
        "legendFormat": query.legend or "__auto",
        "editorMode": "code",
        "range": not instant,
        "instant": instant,
    }
    if panel.kind == "heatmap":
        target["format"] = "heatmap"
    if panel.kind == "table":
        target["format"] = "table"
    return target


def _defaults(panel: Panel) -> Json:
    steps: list[Json] = [{"color": panel.first, "value": None}]
    steps += [{"color": color, "value": value} for value, color in panel.steps]
    defaults: Json = {
        "unit": panel.unit,
        "color": {"mode": "thresholds" if panel.kind in ("stat", "bargauge") else "palette-classic"},
        "thresholds": {"mode": "absolute", "steps": steps},
        "mappings": [],
    }
    for name, bound in (("min", panel.least), ("max", panel.most), ("decimals", panel.decimals)):
        if bound is not None:
            defaults[name] = bound
    if panel.kind == "timeseries":
        defaults["custom"] = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 25 if panel.stack else 5,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if panel.stack else "none", "group": "A"},
            "thresholdsStyle": {"mode": "dashed" if panel.steps else "off"},
        }
    return defaults


def _options(panel: Panel) -> Json:
    reduce = {"calcs": ["lastNotNull"], "fields": "", "values": False}
    match panel.kind:
        case "stat":
            return {"reduceOptions": reduce, "colorMode": "value", "graphMode": "area", "textMode": "auto"}
        case "bargauge":
            return {"reduceOptions": reduce, "orientation": "horizontal", "displayMode": "basic"}
        case "heatmap":
            return {"calculate": False, "yAxis": {"unit": panel.unit}, "color": {"mode": "scheme", "scheme": "Blues"}}
        case "table":
            return {"showHeader": True, "cellHeight": "sm"}
        case _:
            return {
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                "tooltip": {"mode": "multi", "sort": "desc"},
            }


def _source_variable() -> Json:
    return {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "hide": 0,
        "includeAll": False,
        "multi": False,
        "options": [],
        "refresh": 1,
        "regex": "",
        "skipUrlSync": False,
    }


def _version_variable() -> Json:
    return {
        "name": "version",
        "label": "Release",
        "type": "query",
        "datasource": SOURCE,
        "definition": "label_values(sluice_router_drains_total, version)",
        "query": {"query": "label_values(sluice_router_drains_total, version)", "refId": "version"},
        "current": {"text": ["All"], "value": ["$__all"]},
        "hide": 0,
        "includeAll": True,
        "allValue": ".*",
        "multi": True,
        "options": [],
        "refresh": 2,
        "regex": "",
        "sort": 2,
        "skipUrlSync": False,
    }


def _annotations() -> Json:
    return {
        "builtIn": 1,
        "datasource": {"type": "grafana", "uid": "-- Grafana --"},
        "enable": True,
        "hide": True,
        "iconColor": "rgba(0, 211, 255, 1)",
        "name": "Annotations & Alerts",
        "type": "dashboard",
    }


def _others() -> Json:
    return {
        "title": "Sluice",
        "type": "dashboards",
        "tags": ["sluice"],
        "asDropdown": False,
        "includeVars": True,
        "keepTime": True,
        "targetBlank": False,
        "icon": "external link",
        "tooltip": "",
        "url": "",
    }
