"""Loads the rule that the command line names."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import cast

from player.core.rules import Rule
from shared.errors import BadSetting


def load_rule(name: str) -> Rule:
    """The callable `module:function`, also from the working directory. Raises `BadSetting` that says what is wrong."""
    module_name, colon, function_name = name.partition(":")
    if not colon or not module_name or not function_name:
        raise BadSetting(setting="rule", detail=f"{name!r} is not of the form module:function")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # a plug-in's import may raise anything
        detail = f"{module_name} can't be imported: {type(error).__name__}: {error}"
        raise BadSetting(setting="rule", detail=detail[:300]) from None
    rule = getattr(module, function_name, None)
    if rule is None:
        raise BadSetting(setting="rule", detail=f"{module_name} has no {function_name}")
    if not callable(rule):
        raise BadSetting(setting="rule", detail=f"{name} can't be called")
    return cast(Rule, rule)
