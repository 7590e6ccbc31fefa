"""Settings that name a file with the value of another one: secrets mounted by Docker, Kubernetes or systemd.

A file is read once, at start. Unlike an environment it is not seen by every child, and not by `docker inspect`.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from shared.errors import BadSetting

SUFFIX = "_file"
MAX_SECRET = 64 * 1024
"""Longest file [bytes]."""
C = TypeVar("C")


def with_files_read(config: C) -> C:
    """These settings, with `x` read from the file that `x_file` names, in nested ones too. Raises `BadSetting`."""
    changes: dict[str, Any] = {}
    names = {each.name: each for each in fields(config)}  # type: ignore[arg-type]  # a dataclass, which has no type
    for name in names:
        value = getattr(config, name)
        if is_dataclass(value):
            changes[name] = with_files_read(value)
        target = name.removesuffix(SUFFIX)
        if target == name or target not in names or not value:
            continue
        if getattr(config, target) != names[target].default:
            raise BadSetting(setting=name, detail=f"and {target} are both given; give one of them")
        changes[target] = _read(value, setting=name)
    return replace(config, **changes)  # type: ignore[type-var]  # as above


def _read(path: str, *, setting: str) -> str:
    try:
        with Path(path).open("rb") as file:
            text = file.read(MAX_SECRET + 1).decode()
    except (OSError, UnicodeDecodeError) as error:
        detail = error.strerror if isinstance(error, OSError) else "it is no text"
        raise BadSetting(setting=setting, detail=f"{path} can't be read: {detail}") from None
    if len(text) > MAX_SECRET:
        raise BadSetting(setting=setting, detail=f"{path} is longer than {MAX_SECRET // 1024} KiB")
    if not text.strip():
        raise BadSetting(setting=setting, detail=f"{path} is empty")
    return text.strip()
