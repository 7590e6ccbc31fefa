"""Reads PromQL as far as our own queries go: which series, with which labels, grouped by which."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tests.fakes.needed import need_installed

SERIES = re.compile(r"\b(sluice_[a-z_]+)(?:\{([^}]*)\})?")
LABEL = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)")
GROUPED = re.compile(r"\b(?:by|on|without|ignoring)\s*\(([^)]*)\)")
FROM_PROMETHEUS = {"instance", "job", "le"}
VARIABLES = {"$__rate_interval": "5m", "$__range": "1h", "$version": ".*"}


def series_of(expr: str) -> dict[str, set[str]]:
    """Series in an expression, and the labels its selectors name."""
    found: dict[str, set[str]] = {}
    for name, selector in SERIES.findall(expr):
        found.setdefault(name, set()).update(LABEL.findall(selector))
    return found


def grouping_of(expr: str) -> set[str]:
    """Labels that it groups or matches by, without those that Prometheus itself adds."""
    names = {name.strip() for group in GROUPED.findall(expr) for name in group.split(",")}
    return names - FROM_PROMETHEUS - {""}


def plain(expr: str) -> str:
    """The expression with Grafana's variables filled in."""
    for variable, value in VARIABLES.items():
        expr = expr.replace(variable, value)
    return expr


def promtool(*args: str, cwd: Path) -> None:
    """Run promtool. In CI it must be there; elsewhere its tests are skipped without it."""
    binary = shutil.which("promtool")
    need_installed(binary, "promtool", "apt-get install prometheus")
    assert binary is not None
    run = subprocess.run([binary, *args], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
