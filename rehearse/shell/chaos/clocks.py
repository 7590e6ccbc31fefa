"""Wrong clocks for single programs, with the library of Debian's package `faketime`."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

from shared.errors import BadSetting

PLACES = ("/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime")
LIBRARY = "libfaketime.so.1"


def draw_skews(names: Iterable[str], *, skew_s: float, seed: int) -> dict[str, float]:
    """By how much each program's time of day is wrong [s]; empty for none."""
    rng = random.Random(f"{seed}/clocks")
    return {name: round(rng.uniform(-skew_s, skew_s), 1) for name in names} if skew_s else {}


def environments(skews: dict[str, float]) -> dict[str, dict[str, str]]:
    """What makes programs see those clocks; monotonic time stays true. Raises `BadSetting` without the library."""
    if not skews:
        return {}
    library = next((path for place in PLACES if (path := Path(place) / LIBRARY).exists()), None)
    if library is None:
        raise BadSetting(setting="--skew-s", detail="needs libfaketime: apt-get install faketime")
    more = {"LD_PRELOAD": str(library), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    return {name: {**more, "FAKETIME": f"{skew:+.1f}s"} for name, skew in skews.items()}
