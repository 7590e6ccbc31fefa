"""The tour names files and functions: all of them exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
STOPS = sorted(set(re.findall(r"`([\w./-]+/[\w.-]*:[\w.]+)`", TOUR)))
"""`path:function`, `path:Class.method`, or `folder/:function` for a function in any file of the folder."""


def names_in(path: Path) -> set[str]:
    """What a source file defines: functions, classes, and methods as `Class.method`."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".pyx", ".pxi"):
        return set(re.findall(r"^\s*(?:c?p?def) .*?(\w+)\(", text, re.MULTILINE))
    names = set()
    for node in ast.parse(text).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names.add(node.name)
        if isinstance(node, ast.ClassDef):
            inner = [each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
            names |= {f"{node.name}.{each.name}" for each in inner}
    return names


@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_of_the_tour_exists(stop: str) -> None:
    path, _, function = stop.partition(":")
    files = sorted((ROOT / path).iterdir()) if path.endswith("/") else [ROOT / path]
    assert any(function in names_in(file) for file in files if file.suffix in (".py", ".pyx", ".pxi"))


def test_the_tour_answers_what_a_newcomer_asks() -> None:
    """Where does a packet enter, where is a cordon applied, where is a node chosen?"""
    headings = re.findall(r"^## (.*)", TOUR, re.MULTILINE)
    assert headings == ["The life of a packet", "The life of a cordon", "How a node is chosen"]
    assert len(STOPS) > 40


def test_a_name_that_is_not_there_would_be_noticed() -> None:
    assert "pages" not in names_in(Path(__file__))
    assert "names_in" in names_in(Path(__file__))
