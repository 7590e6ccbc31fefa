"""Secrets from files, instead of the setting itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from router.config import RouterConfig
from router.core.ice_servers import IceSettings
from shared.errors import BadSetting
from shared.host.secret_files import with_files_read

KEY = "a-secret-of-the-tests, long enough for HS256"


def test_a_file_stands_for_the_setting_in_nested_ones_too(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(f"{KEY}\n")
    (tmp_path / "turn").write_text("turn secret\n")
    ice = IceSettings(turn_urls=("turn:t.example.com:3478",), turn_secret_file=str(tmp_path / "turn"))
    config = RouterConfig(secret_file=str(tmp_path / "key"), ice=ice)
    read = with_files_read(config).check()
    assert (read.secret, read.ice.turn_secret) == (KEY, "turn secret")
    assert KEY not in repr(read)
    assert replace(read, secret="", ice=ice) == config


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), ("", "is empty"), (b"\xff\xfe\xff", "is no text"), ("x" * 70_000, "64")],
)
def test_a_file_that_can_t_be_used_is_named(tmp_path: Path, content: str | bytes | None, said: str) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(BadSetting, match=said) as no:
        with_files_read(RouterConfig(secret_file=str(file)))
    assert "secret_file" in str(no.value)
    assert str(file) in str(no.value)


def test_both_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    with pytest.raises(BadSetting, match="secret are both given"):
        with_files_read(RouterConfig(secret=KEY, secret_file=str(tmp_path / "key")))
