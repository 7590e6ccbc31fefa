"""The stories of the mover, over the Python one and (in node) over the browser's; and that a wrong story fails."""

from __future__ import annotations

import copy
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.test_unit import find_node
from tests.fakes.needed import need_installed
from tests.movers.runner import SEEDS, Run, load

ALL = load()


@pytest.mark.parametrize("story", ALL, ids=[story["name"] for story in ALL])
def test_the_python_mover(story: dict[str, Any]) -> None:
    for seed in SEEDS:
        Run(story, seed).run()


def wrong(story: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The story with one expectation wrong, in every way: an effect too many or too few, another phase or deadline."""
    for number, step in enumerate(story["steps"]):
        effects = step.get("effects", [])
        changes: list[dict[str, Any]] = [{"effects": [*effects, "open z"]}]
        if effects:
            changes += [{"effects": effects[:-1]}, {"effects": [f"not {effects[0]}", *effects[1:]]}]
        changes += [{key: "elsewhere"} for key in ("phase",) if key in step]
        changes += [{key: [-2000, -1000]} for key in ("due", "at_due") if key in step]
        for change in changes:
            altered = copy.deepcopy(story)
            altered["steps"][number].update(change)
            yield altered


@pytest.mark.parametrize("story", ALL, ids=[story["name"] for story in ALL])
def test_a_wrong_expectation_fails(story: dict[str, Any]) -> None:
    for altered in wrong(story):
        with pytest.raises(AssertionError):
            Run(altered, 1).run()


def in_node(**environment: str) -> subprocess.CompletedProcess[str]:
    node = find_node()
    need_installed(node, "node 20 or later", "apt-get install nodejs")
    assert node is not None
    command = [node, "--test", str(Path(__file__).parent / "stories.test.mjs")]
    env = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False, env=env)


def test_the_browsers_mover() -> None:
    run = in_node()
    assert run.returncode == 0, run.stdout + run.stderr
    assert f"# tests {len(ALL)}\n" in run.stdout, "each story ran"


def test_a_wrong_expectation_fails_in_node(tmp_path: Path) -> None:
    altered = [one for story in ALL for one in wrong(story)]
    for number, story in enumerate(altered):
        story["name"] = f"{number} {story['name']}"
    file = tmp_path / "wrong.json"
    file.write_text(json.dumps(altered))
    run = in_node(SLUICE_STORIES=str(file))
    assert run.returncode != 0
    assert f"# fail {len(altered)}\n" in run.stdout, run.stdout[-2000:]
