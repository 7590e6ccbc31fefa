"""What a simulated player does all day: presence by the second, from a script, a file, or chance with a seed.

A script is steps such as `0s desk, 10s conversation, 40s desk+meeting, 60s idle`: from that second on exactly the
named inputs are true. Words: `desk`, `meeting`, `conversation`; `idle` names none of them. Before its first step a
player is idle.
"""

from __future__ import annotations

import random
import re
import tomllib
from dataclasses import dataclass
from typing import Any

from shared.errors import BadSetting
from shared.records import Presence

MAX_STEPS = 1000
_STEP = re.compile(r"(\d+(?:\.\d+)?)s?\s+([a-z]+(?:\s*\+\s*[a-z]+)*)")
_WORDS = {"desk": "at_desk", "meeting": "in_ambient_meeting", "conversation": "in_conversation"}
IDLE = Presence(at_desk=False)


@dataclass(frozen=True, slots=True)
class PresenceStep:
    """From `at_s` seconds after the player's start its presence is this."""

    at_s: float
    presence: Presence


@dataclass(frozen=True, slots=True)
class PresenceScript:
    """Steps in order of time."""

    steps: tuple[PresenceStep, ...]

    def at(self, elapsed_s: float) -> Presence:
        """The presence `elapsed_s` seconds after the player's start."""
        current = IDLE
        for step in self.steps:
            if step.at_s > elapsed_s:
                break
            current = step.presence
        return current

    def next_after(self, elapsed_s: float) -> float | None:
        """When the presence changes next [seconds after the start]; None when it stays."""
        return next((step.at_s for step in self.steps if step.at_s > elapsed_s), None)


def presence_of(words: str) -> Presence:
    """`desk+conversation` as a presence. Raises `BadSetting` for a word that is none."""
    names = [word.strip() for word in words.split("+")]
    if names == ["idle"]:
        return IDLE
    unknown = [name for name in names if name not in _WORDS]
    if unknown:
        known = ", ".join([*_WORDS, "idle"])
        raise BadSetting(setting="behaviour", detail=f"{unknown[0]!r} is no presence; known are {known}")
    return Presence(**{field: word in names for word, field in _WORDS.items()})


def parse(text: str) -> PresenceScript:
    """A script from its compact form. Raises `BadSetting` that names the step at fault."""
    steps: list[PresenceStep] = []
    for part in text.split(","):
        match = _STEP.fullmatch(part.strip())
        if match is None:
            raise BadSetting(setting="behaviour", detail=f"{part.strip()!r} is no step like `10s desk+conversation`")
        step = PresenceStep(float(match[1]), presence_of(match[2]))
        if steps and step.at_s <= steps[-1].at_s:
            raise BadSetting(setting="behaviour", detail=f"{part.strip()!r} does not come after the step before it")
        steps.append(step)
    if len(steps) > MAX_STEPS:
        raise BadSetting(setting="behaviour", detail=f"more than {MAX_STEPS} steps")
    return PresenceScript(tuple(steps))


def draw(rng: random.Random, *, horizon_s: float = 3600.0) -> PresenceScript:
    """A day by chance: stretches at the desk, in conversations and in meetings, exponential in length.

    Means of 40 s at the desk and 20 s for the rest: short, so that a rehearsal of a minute sees every kind.
    """
    steps: list[PresenceStep] = []
    at_s = 0.0
    while at_s < horizon_s and len(steps) < MAX_STEPS:
        words, mean_s = rng.choice([("desk", 40.0), ("conversation", 20.0), ("desk+meeting", 20.0), ("idle", 10.0)])
        steps.append(PresenceStep(round(at_s, 3), presence_of(words)))
        at_s += 0.1 + rng.expovariate(1.0 / mean_s)
    return PresenceScript(tuple(steps))


@dataclass(frozen=True, slots=True)
class Cast:
    """Which bot plays which script: by weight, dealt in turn, so that any number of bots gets its share."""

    scripts: tuple[PresenceScript, ...] = ()
    """Repeated by weight; empty: each bot draws its own by chance."""

    def script(self, index: int, rng: random.Random) -> PresenceScript:
        """The script of the bot with this number."""
        return self.scripts[index % len(self.scripts)] if self.scripts else draw(rng)


def read_cast(value: str, *, toml: str | None = None) -> Cast:
    """A cast from the setting: `random`, a compact script for all bots, or the text of a TOML file with
    `[[behaviour]]` tables of `script` and `weight`. Raises `BadSetting`."""
    if toml is not None:
        return _from_toml(toml)
    return Cast() if value.strip() == "random" else Cast((parse(value),))


def _from_toml(text: str) -> Cast:
    try:
        tables: Any = tomllib.loads(text).get("behaviour")
    except tomllib.TOMLDecodeError as error:
        raise BadSetting(setting="behaviour", detail=f"the file is no TOML: {error}") from None
    if not isinstance(tables, list) or not tables:
        raise BadSetting(setting="behaviour", detail="the file has no [[behaviour]] tables")
    scripts: list[PresenceScript] = []
    for table in tables:
        script, weight = (table.get("script"), table.get("weight", 1)) if isinstance(table, dict) else (None, 1)
        if not isinstance(script, str) or isinstance(weight, bool) or not isinstance(weight, int):
            raise BadSetting(setting="behaviour", detail="each [[behaviour]] needs a `script` and a whole `weight`")
        if not 1 <= weight <= 1000:
            raise BadSetting(setting="behaviour", detail="a weight is from 1 to 1000")
        scripts += [parse(script)] * weight
    return Cast(tuple(scripts))
