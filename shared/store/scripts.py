"""The Lua scripts: every decision that must be atomic. `--include NAME` in one stands for the text of `NAME.lua`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

_INCLUDE = re.compile(r"^[ ]*--include (\w+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Script:
    """One script, ready to send."""

    name: str
    body: bytes
    sha: str
    """Its name in the server's script cache."""


@cache
def script(name: str) -> Script:
    """The script of `lua/<name>.lua`, with what it includes and the common helpers in front."""
    body = (_text("_prelude") + _expand(_text(name))).encode()
    return Script(name, body, hashlib.sha1(body, usedforsecurity=False).hexdigest())


def _text(name: str) -> str:
    return (files("shared.store") / "lua" / f"{name}.lua").read_text(encoding="utf-8")


def _expand(text: str) -> str:
    return _INCLUDE.sub(lambda match: _text(match[1]), text)
