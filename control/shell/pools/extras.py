"""Client libraries that only some pools need: optional extras, asked for by name when they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType

from shared.errors import BadSetting


def need(module: str, *, extra: str) -> ModuleType:
    """The module. Raises `BadSetting` with the extra to install."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise BadSetting(
            setting="pool.kind", detail=f"{extra!r} needs more packages ({error}): pip install 'sluice[{extra}]'"
        ) from None
