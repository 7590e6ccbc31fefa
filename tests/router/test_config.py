"""A router's settings: what can't be used is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from router.config import RouterConfig
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
        ("sysload_limit", float("nan")),
        ("cpu_load_limit", float("nan")),
        ("ws_port", 65536),
        ("cpu_load_limit", 0.0),
        ("join_cost", -0.1),
        ("join_cost", float("nan")),
        ("max_joins_per_s", float("inf")),
        ("warm_up_wait_s", -1.0),
        ("reports_until_shown", 0),
        ("reports_until_shown", 6),
        ("failure_share", 0.0),
        ("failure_share", 1.1),
        ("failure_players", 0),
        ("failure_players", 1001),
        ("failure_window_s", 0.0),
        ("failure_pause_s", 4000.0),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(BadSetting) as caught:
        RouterConfig(secret=SECRET, **{name: value}).check()
    assert name in caught.value.setting


def test_a_percentage_in_place_of_a_share_is_told() -> None:
    with pytest.raises(BadSetting, match=r"cpu_load_limit: must be over 0 and at most 1, not 90\.0; .*0\.9 is 90 %"):
        RouterConfig(secret=SECRET, cpu_load_limit=90.0).check()
    RouterConfig(secret=SECRET, cpu_load_limit=1.0, sysload_limit=1.5).check()


def test_the_settings_of_placement_reach_the_selector_and_the_rule() -> None:
    config = RouterConfig(secret=SECRET, two_choices=True, join_cost=0.02, max_joins_per_s=5, failure_players=7).check()
    assert (config.selector.two_choices, config.selector.join_cost, config.selector.max_joins_per_s) == (True, 0.02, 5)
    assert (config.failure_rule.players, config.failure_rule.share) == (7, 0.1)
