"""Bounds of numbers in settings. NaN is within none of them, which a plain `if value <= 0` lets through."""

from __future__ import annotations

import sys

from shared.errors import BadSetting

_MOST = sys.float_info.max
"""The greatest number that is finite; Python's own whole numbers have no end."""


def check_numbers(
    settings: object,
    *names: str,
    over: float | None = None,
    least: float = -_MOST,
    most: float = _MOST,
    flags: bool = False,
    hint: str = "",
) -> None:
    """Raise `BadSetting` for the first attribute of these `names` that is not finite or out of bounds.

    `over` is excluded, `least` and `most` are allowed; None, for "not given", always is. With `flags` the error says
    `--a-name` instead of `a_name`. `hint` ends the sentence.
    """
    for name in names:
        value = getattr(settings, name)
        if value is None or (least <= value <= most and (over is None or value > over)):
            continue
        shown = f"--{name.replace('_', '-')}" if flags else name
        detail = f"{_words(over, least, most)}, not {str(value)[:40]}"
        raise BadSetting(setting=shown, detail=f"{detail}; {hint}" if hint else detail)


def _words(over: float | None, least: float, most: float) -> str:
    bounds = [
        f"over {over:g}" if over is not None else "",
        f"at least {least:g}" if least > -_MOST else "",
        f"at most {most:.15g}" if most < _MOST else "",
    ]
    return f"must be {' and '.join(filter(None, bounds)) or 'finite'}"
