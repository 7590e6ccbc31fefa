"""Scheduled floors: at known hours the pool keeps more nodes than `min_nodes`, before they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from control.core.toml_source import TomlSource

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_KEYS = ("days", "from", "to", "timezone", "min_nodes")
MOST_FLOORS = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """One `[[floors]]` table. From `to` earlier than `from` it goes past midnight, and belongs to the day it began."""

    days: tuple[int, ...]
    """0: Monday."""
    begins: time
    ends: time
    zone: ZoneInfo
    min_nodes: int

    def holds(self, now_at: float) -> bool:
        """Whether it is in force at a moment [Unix seconds]; `from` belongs to it, `to` does not."""
        here = datetime.fromtimestamp(now_at, self.zone)
        clock = here.time()
        if self.begins < self.ends:
            return here.weekday() in self.days and self.begins <= clock < self.ends
        if clock >= self.begins:
            return here.weekday() in self.days
        return clock < self.ends and (here - timedelta(days=1)).weekday() in self.days


def floor_at(floors: Sequence[Floor], now_at: float, *, otherwise: int) -> int:
    """The highest floor in force."""
    return max([otherwise, *(floor.min_nodes for floor in floors if floor.holds(now_at))])


def read_floors(source: TomlSource) -> tuple[Floor, ...]:
    """The `[[floors]]` of a settings file. Raises `BadSetting`."""
    tables = source.data.get("floors", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        raise source.bad("floors", "must be tables: [[floors]]")
    if len(tables) > MOST_FLOORS:
        raise source.bad("floors", f"there can be {MOST_FLOORS} at most")
    return tuple(_read(source, f"floors.{index}", table) for index, table in enumerate(tables))


def _read(source: TomlSource, path: str, table: dict[str, Any]) -> Floor:
    source.check_known(table, _KEYS, under=f"{path}.")
    for key in ("from", "to", "min_nodes"):
        if key not in table:
            raise source.bad(f"{path}.{key}", "is missing")
    begins, ends = (_time(source, f"{path}.{key}", table[key]) for key in ("from", "to"))
    if begins == ends:
        raise source.bad(f"{path}.to", "is the same as 'from': it would hold for no time or all day")
    return Floor(
        days=_days(source, f"{path}.days", table.get("days", list(DAYS))),
        begins=begins,
        ends=ends,
        zone=_zone(source, f"{path}.timezone", table.get("timezone", "UTC")),
        min_nodes=int(source.number(f"{path}.min_nodes", table["min_nodes"], whole=True)),
    )


def _days(source: TomlSource, path: str, value: object) -> tuple[int, ...]:
    if not isinstance(value, list) or not value or not all(day in DAYS for day in value):
        raise source.bad(path, f"must be a list of {', '.join(DAYS)}")
    return tuple(sorted({DAYS.index(day) for day in value}))


def _time(source: TomlSource, path: str, value: object) -> time:
    if isinstance(value, time):  # TOML has times of its own: 08:00:00
        return value
    try:
        read = time.fromisoformat(source.text(path, value))
    except ValueError:
        raise source.bad(path, f'must be a time like "08:00", not {value!r}'[:200]) from None
    if read.tzinfo is not None:
        raise source.bad(path, "must be a time without a zone; 'timezone' says where")
    return read


def _zone(source: TomlSource, path: str, value: object) -> ZoneInfo:
    name = source.text(path, value)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise source.bad(path, f'no such time zone: {name[:64]!r}; give one like "Europe/Berlin"') from None
