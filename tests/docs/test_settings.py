"""Defaults that pages tell are those of the code."""

from __future__ import annotations

from dataclasses import MISSING, fields
from typing import Any

import pytest

from control.core.floors import Floor
from control.core.pool_settings import CommonPool, DockerPoolSettings, KubernetesPoolSettings, MadePool
from control.core.scaling_settings import ScalingSettings
from router.config import RouterConfig
from router.core.selector.node_selector import NodeSelector
from sfu.config import SfuConfig
from shared.front.settings import FrontSettings
from tests.docs.pages import ROOT

TABLES = {
    ("drain", "SfuConfig"): (SfuConfig, 4),
    ("autoscaling", "ScalingSettings"): (ScalingSettings, 13),
    ("placement", "RouterConfig"): (RouterConfig, 3),
    ("placement", "NodeSelector"): (NodeSelector, 6),
    ("pools", "CommonPool"): (CommonPool, 2),
    ("security", "FrontSettings"): (FrontSettings, 1),
    ("pools", "MadePool"): (MadePool, 4),
}
"""Page and class -> the class, and how many of its settings the page has at least."""

WORDS = {"false": False, "true": True, "none": ()}


def told(page: str) -> dict[str, str]:
    """Key -> default, of each row of a settings table; flags are taken as keys."""
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    columns: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")] if line.startswith("|") else []
        if not cells:
            columns = []
        elif not columns:
            columns = [cell.strip() for cell in cells]
        elif "default" in columns and cells[0].startswith("`"):
            key = cells[0].strip("` ").removeprefix("--").replace("-", "_")
            found.setdefault(key, cells[columns.index("default")].strip("` "))
    return found


def defaults(settings: type[Any]) -> dict[str, Any]:
    """Name -> default; those that are made for each instance are left out."""
    return {each.name: each.default for each in fields(settings) if each.default is not MISSING}


def same(cell: str, default: object) -> bool:
    """Whether a cell tells the default. Absent ones are told in words; their number is in the code's docstring."""
    if default is None:
        return cell.startswith("each node's own")
    if cell in WORDS:
        return bool(default == WORDS[cell])
    if isinstance(default, int | float):
        return float(cell) == float(default)
    if isinstance(default, tuple):
        return default == () or cell == "`, `".join(default)
    return cell == str(default)


@pytest.mark.parametrize(("page", "name"), TABLES, ids="-".join)
def test_a_page_tells_the_defaults_of_the_code(page: str, name: str) -> None:
    settings, least = TABLES[page, name]
    cells, code = told(page), defaults(settings)
    shown = {key: cells[key] for key in cells.keys() & code.keys()}
    assert len(shown) >= least
    assert {key: cell for key, cell in shown.items() if not same(cell, code[key])} == {}


@pytest.mark.parametrize(
    ("page", "classes"),
    [
        ("drain", [SfuConfig]),
        ("autoscaling", [ScalingSettings, Floor]),
        ("placement", [RouterConfig, NodeSelector]),
        ("pools", [CommonPool, MadePool, DockerPoolSettings, KubernetesPoolSettings]),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_page_has_no_setting_that_is_not_there(page: str, classes: list[type[Any]]) -> None:
    known = {each.name for settings in classes for each in fields(settings)}
    # As they are called in the file; Python has other uses for some of these words.
    known |= {"kind", "days", "timezone", "from`, `to"}
    assert sorted(told(page).keys() - known) == []


def test_every_key_of_the_scaling_file_is_told() -> None:
    keys = {each.name for each in fields(ScalingSettings)} - {"floors", "pool"}
    assert sorted(keys - told("autoscaling").keys()) == []


def test_a_wrong_default_would_be_noticed() -> None:
    assert not same("31", 30.0)
    assert not same("true", False)
    assert not same("0.65", None)
    assert same("30", 30.0)
