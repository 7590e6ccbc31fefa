"""A router's settings: what can't be used is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from router.command import app
from router.config import RouterConfig
from router.core.selector.node_selector import NodeSelector, SelectorKind, SortBy
from shared.errors import BadSetting
from tests.router.actors import SECRET


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("router", ""),
        ("sync_interval_s", 0.0),
        ("sync_interval_s", float("nan")),
        ("resume_window_s", float("nan")),
        ("resume_window_s", float("inf")),
        ("closing_spread_s", float("nan")),
        ("closing_spread_s", -1.0),
        ("ws_port", 65536),
        ("failure_share", 0.0),
        ("failure_share", 1.1),
        ("failure_players", 0),
        ("failure_players", 1001),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(BadSetting) as caught:
        RouterConfig(secret=SECRET, **{name: value}).check()
    assert name in caught.value.setting


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sysload_limit", float("nan")),
        ("cpu_load_limit", float("nan")),
        ("cpu_load_limit", 0.0),
        ("max_joins_per_s", float("inf")),
        ("max_joins_per_s", -1.0),
    ],
)
def test_a_setting_of_the_selector_that_cannot_be_used_is_refused_by_name(name: str, value: float) -> None:
    with pytest.raises(BadSetting) as caught:
        RouterConfig(secret=SECRET, selector=NodeSelector(**{name: value})).check()  # type: ignore[arg-type]
    assert name in caught.value.setting


def test_a_percentage_in_place_of_a_share_is_told() -> None:
    with pytest.raises(BadSetting, match=r"cpu_load_limit: must be over 0 and at most 1, not 90\.0; .*0\.9 is 90 %"):
        RouterConfig(secret=SECRET, selector=NodeSelector(cpu_load_limit=90.0)).check()
    RouterConfig(secret=SECRET, selector=NodeSelector(cpu_load_limit=1.0, sysload_limit=1.5)).check()


FLAGS = ["--node-selector-kind", "cpuload", "--sort-by", "tracks", "--cpu-load-limit", "0.5", "--sysload-limit", "2"]


@pytest.mark.parametrize("how", ["flags", "variables"])
def test_the_settings_of_placement_are_flags_and_variables_of_the_router(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = [*FLAGS, "--two-choices", "--max-joins-per-s", "5", "--failure-players", "7"]
    if how == "variables":
        variables = {"SORT_BY": "tracks", "TWO_CHOICES": "true", "MAX_JOINS_PER_S": "5", "FAILURE_PLAYERS": "7"}
        variables |= {"NODE_SELECTOR_KIND": "cpuload", "CPU_LOAD_LIMIT": "0.5", "SYSLOAD_LIMIT": "2"}
        for name, value in variables.items():
            monkeypatch.setenv(f"SLUICE_{name}", value)
        given = []
    _, bound, _ = app.parse_args(given, print_error=False, exit_on_error=False)
    config: RouterConfig = bound.arguments["config"]
    assert config.selector == NodeSelector(
        node_selector_kind=SelectorKind.CPULOAD,
        sort_by=SortBy.TRACKS,
        cpu_load_limit=0.5,
        sysload_limit=2.0,
        two_choices=True,
        max_joins_per_s=5.0,
    )
    assert (config.failure_rule.players, config.failure_rule.share) == (7, 0.1)
