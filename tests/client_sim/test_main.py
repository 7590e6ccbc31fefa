"""The command's settings, and what it says of bad ones."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from client_sim.__main__ import BAD_INPUT, bots_command, summary
from client_sim.config import BotsConfig
from client_sim.core.report import fleet_report

SECRET = "a secret of thirty-two bytes or more"


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"secret": ""}, "secret"),
        ({"bots": 0}, "bots"),
        ({"rooms": 0}, "bots and rooms"),
        ({"subscribe_only": 9}, "subscribe_only"),
        ({"routers": ()}, "routers"),
        ({"routers": ("http://x",)}, "ws://"),
        ({"token": "x", "bots": 2}, "token"),
        ({"duration_s": -1.0}, "duration_s: must be at least 0"),
        ({"move_spread_s": float("nan")}, "move_spread_s: must be at least 0"),
        ({"join_per_s": 0.0}, "join_per_s: must be over 0"),
        ({"metrics_port": 99_999}, "metrics_port: must be at least 0 and at most 65535"),
        ({"rule": "nowhere_at_all:x"}, "rule"),
        ({"behaviour": "0s lunch"}, "lunch"),
        ({"behaviour": "@/no/such/file"}, "behaviour"),
        ({"clip": Path("/no/such/file")}, "clip"),
    ],
)
def test_a_bad_setting_is_one_sentence_and_status_2(
    settings: dict[str, Any], word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert bots_command(BotsConfig(**{"secret": SECRET, "routers": ("ws://r:1",), **settings})) == BAD_INPUT
    said = capsys.readouterr()
    assert said.out == ""
    assert word in said.err
    assert said.err.count("\n") == 1


def test_bots_are_dealt_to_rooms_in_turn() -> None:
    config = BotsConfig(room="r", rooms=3, secret=SECRET)
    assert [config.room_of(index) for index in range(4)] == ["r-1", "r-2", "r-3", "r-1"]
    assert BotsConfig(room="r", secret=SECRET).room_of(7) == "r"


def test_the_secret_does_not_show() -> None:
    assert SECRET not in repr(BotsConfig(secret=SECRET, token="t0ken"))
    assert "t0ken" not in repr(BotsConfig(secret=SECRET, token="t0ken"))


def test_the_summary_does_not_call_silence_a_gap_of_zero() -> None:
    assert "nothing received" in summary(fleet_report([], frame_ms=50.0, worst_send_lag_ms=0.0, took_s=1.0))
