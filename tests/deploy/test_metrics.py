"""What programs export: labels that are bounded, names that follow one form, and a page that lists them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.shell.metrics import MAX_VERSIONS, Metrics
from tests.deploy.metrics import Registered, registered

BOUNDED = {
    "action": "ScaleAction",
    "call": "method of a pool",
    "code": "Refusal, CloseCode or the code of an error class",
    "kind": "words of the source",
    "milestone": "field of Milestones",
    "outcome": "words of the source",
    "part": "field of LoadParts",
    "peer": "player or sfu",
    "pool": "kind of pool",
    "port": "players or http",
    "reason": "words of the source",
    "side": "producers or consumers",
    "stage": "stages of a launch",
    "state": "connected or waiting",
    "status": "SfuStatus",
    "type": "tag of a message class",
    "verb": "CommandVerb, whoami or read",
    "version": "one a process, or MAX_VERSIONS at routers",
    "what": "producers or consumers",
    "why": "NotPlaceable, Short",
}
"""Every label there is, and what bounds its values. Add yours with the reason why it can't grow."""
DOCS = (Path(__file__).parents[2] / "docs" / "seeing.md").read_text(encoding="utf-8")
ALL = registered()


@pytest.mark.parametrize("metric", ALL.values(), ids=lambda metric: metric.name)
def test_every_label_is_bounded(metric: Registered) -> None:
    assert metric.labels <= BOUNDED.keys(), "never a player, room, SFU, node or source"


@pytest.mark.parametrize("metric", ALL.values(), ids=lambda metric: metric.name)
def test_every_metric_has_a_name_of_ours_and_a_word_of_help(metric: Registered) -> None:
    assert metric.name.startswith(("sluice_router_", "sluice_sfu_", "sluice_control_", "sluice_bots_"))
    assert metric.help


@pytest.mark.parametrize("metric", ALL.values(), ids=lambda metric: metric.name)
def test_every_metric_is_in_the_docs(metric: Registered) -> None:
    assert f"`{metric.series[0].removesuffix('_bucket')}`" in DOCS


def test_the_docs_list_no_metric_that_is_gone() -> None:
    listed = {line.split("`")[1] for line in DOCS.splitlines() if line.startswith("| `sluice_")}
    assert listed == {metric.series[0].removesuffix("_bucket") for metric in ALL.values()}


def test_a_rollout_of_many_releases_does_not_grow_a_routers_labels() -> None:
    metrics = Metrics()
    labels = {metrics.version(f"v{n}") for n in range(10 * MAX_VERSIONS)}
    assert len(labels) == MAX_VERSIONS + 1
    assert "other" in labels
