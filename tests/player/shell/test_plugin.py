"""The rule named on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from player.core.rules import safe_to_move
from player.shell.plugin import load_rule
from shared.errors import BadSetting


def test_the_default_is_found() -> None:
    assert load_rule("player.core.rules:safe_to_move") is safe_to_move


def test_a_rule_in_the_working_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_sluice_rule.py").write_text("def patient(facts):\n    return False\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])
    assert load_rule("my_sluice_rule:patient")(None) is False  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("", "module:function"),
        ("json", "module:function"),
        (":x", "module:function"),
        ("no_such_module_at_all:x", "can't be imported"),
        ("json:nothing_like_that", "has no"),
        ("json:__name__", "can't be called"),
    ],
)
def test_a_bad_name_says_what_is_wrong(name: str, word: str) -> None:
    with pytest.raises(BadSetting, match=word):
        load_rule(name)


def test_a_module_that_raises_is_a_bad_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_broken_sluice_rule.py").write_text("raise RuntimeError('boom')\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadSetting, match="boom"):
        load_rule("my_broken_sluice_rule:x")
