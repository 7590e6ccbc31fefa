"""The settings of the autoscaler: one TOML file, checked as a whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from control.core.floors import Floor, floor_at, read_floors
from control.core.toml_source import TomlSource, parse
from shared.errors import BadSetting
from shared.load import (
    LEAST_CPU_GUARD,
    LEAST_EGRESS_MBPS,
    LEAST_STREAMS,
    MOST_CPU,
    MOST_EGRESS_MBPS,
    MOST_STREAMS,
)
from shared.scaling_records import MOST_LEASE_S

MOST_NODES = 10_000
MOST_SECONDS = 30 * 86400.0
_WHOLE = ("scale_out_hits", "scale_out_window", "scale_in_ticks", "min_nodes", "max_nodes", "stream_ceiling")
_CEILINGS = {
    "egress_ceiling_mbps": (LEAST_EGRESS_MBPS, MOST_EGRESS_MBPS),
    "stream_ceiling": (LEAST_STREAMS, MOST_STREAMS),
    "cpu_guard": (LEAST_CPU_GUARD, MOST_CPU),
}
"""The ceilings that `shared.load` believes; with others every node would be unknown, and nothing would be scaled."""
LEAST_REPORT_AGE_S = 3.0
"""An SFU reports each second, and two reports may get lost."""
ORDER_S = 4.0
"""What comes on top of whole ticks until the SFU has the order [s]: a new leader notices within 1 s that it leads, a
call to Redis may take 1 s, and the order passes one exchange of a router with Redis, 1 s, and one message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PoolTable:
    """The `[pool]` table: its kind, and keys that only a pool of that kind understands."""

    kind: str
    keys: Mapping[str, Any]
    """Everything but `kind`, as it is in the file."""
    source: TomlSource

    def bad(self, key: str, detail: str) -> BadSetting:
        """An error about one of its keys, with the line."""
        return self.source.bad(f"pool.{key}", detail)


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingSettings:
    """All of it. Made by `read_settings`, which has checked it."""

    scale_out_at: float = 0.65
    """Mean load of the pool from which a tick counts as hot [1.0: at the ceiling] (A4)."""
    scale_out_hits: int = 4
    """Hot ticks within the window that add a node."""
    scale_out_window: int = 5
    """Ticks that the window holds."""
    scale_in_at: float = 0.30
    """Mean load of the pool up to which a tick counts as quiet (A4)."""
    scale_in_ticks: int = 20
    """Quiet ticks in a row that take a node out."""
    tick_s: float = 30.0
    """Seconds from one decision to the next; loads are means over it (A3)."""
    cooldown_s: float = 300.0
    """Seconds between any two changes of the pool (A4)."""
    min_nodes: int = 3
    """The floor: never fewer nodes (A4)."""
    max_nodes: int = 20
    """Never more nodes, whatever their state (A4)."""
    drain_max_s: float = 1800.0
    """Seconds after the cordon at which remaining players are asked to move (A6)."""
    cordon_lease_s: float = 3600.0
    """Lifetime of the cordon flag [s]; renewed at a third of it while the node drains (A6)."""
    egress_ceiling_mbps: float | None = None
    """Sent Mbit/s at which a node is full. Absent: what each node reports as its own, 700 by default (A2)."""
    stream_ceiling: int | None = None
    """Forwarded streams at which a node is full. Absent: what each node reports, 1200 by default (A2)."""
    cpu_guard: float | None = None
    """CPU share at which a node is full [0..1]. Absent: what each node reports, 0.85 by default (A1)."""
    launch_timeout_s: float = 300.0
    """Seconds after which a launch that is not capacity is given up (A8)."""
    lease_s: float = 15.0
    """Lifetime of the leader's lease [s]: how long the pool has no leader when one dies (A7)."""
    report_max_age_s: float = 10.0
    """A node whose report has not changed for this many seconds is unknown; an SFU reports each second."""
    dry_run: bool = False
    """Decide, log and record, but change nothing."""
    floors: tuple[Floor, ...] = ()
    """Scheduled floors."""
    pool: PoolTable = field(default_factory=lambda: PoolTable(kind="process", keys={}, source=parse("", name="")))
    """Where nodes come from (A8)."""

    @property
    def sample_s(self) -> float:
        """Seconds between two looks at the nodes: 1 s (A3), or less when ticks are compressed."""
        return min(1.0, self.tick_s / 4)

    @property
    def longest_gap_s(self) -> float:
        """Ticks further apart than this are no longer in a row: a fail-over fits in, an outage does not.

        The longest fail-over: the leader dies just before a tick, its lease ends after `lease_s`, another one asks each
        third of that, notices within `sample_s` that it leads, and looks for a whole tick.
        """
        return 3 * self.tick_s + 4 / 3 * self.lease_s

    def floor(self, now_at: float) -> int:
        """The least nodes at a moment [Unix seconds]."""
        return floor_at(self.floors, now_at, otherwise=self.min_nodes)


def read_settings(text: str, *, name: str = "scaling.toml") -> ScalingSettings:
    """The settings in a file's text. Raises `BadSetting`, which names file, line, key and the fix."""
    source = parse(text, name=name)
    plain = [each.name for each in fields(ScalingSettings) if each.name not in ("floors", "pool")]
    source.check_known(source.data, [*plain, "floors", "pool"])
    values = {key: _value(source, key) for key in plain if key in source.data}
    settings = ScalingSettings(**values, floors=read_floors(source), pool=_pool(source))
    _check(settings, source)
    return settings


def _value(source: TomlSource, key: str) -> Any:
    value = source.data[key]
    if key == "dry_run":
        if not isinstance(value, bool):
            raise source.bad(key, "must be true or false")
        return value
    number = source.number(key, value, whole=key in _WHOLE)
    return number if key in _WHOLE else float(number)


def _pool(source: TomlSource) -> PoolTable:
    table = source.data.get("pool", {})
    if not isinstance(table, dict):
        raise source.bad("pool", "must be a table: [pool]")
    kind = source.text("pool.kind", table.get("kind", "process"))
    return PoolTable(kind=kind, keys={key: table[key] for key in table if key != "kind"}, source=source)


def _check(settings: ScalingSettings, source: TomlSource) -> None:
    """Raise `BadSetting` for impossible values, and for values that contradict each other."""
    _check_ranges(settings, source)
    is_now = _Said(settings, source)
    if settings.scale_in_at >= settings.scale_out_at:
        raise source.clash(
            ("scale_in_at", f"must be under {is_now('scale_out_at')}"),
            ("scale_out_at", f"must be over {is_now('scale_in_at')}"),
        )
    if settings.scale_out_hits > settings.scale_out_window:
        raise source.clash(
            ("scale_out_hits", f"must not be over {is_now('scale_out_window')}: so few ticks never hold so many"),
            ("scale_out_window", f"must not be under {is_now('scale_out_hits')}: so few ticks never hold so many"),
        )
    if settings.min_nodes > settings.max_nodes:
        raise source.clash(
            ("min_nodes", f"must not be over {is_now('max_nodes')}"),
            ("max_nodes", f"must not be under {is_now('min_nodes')}"),
        )
    if settings.launch_timeout_s < settings.tick_s:
        raise source.clash(
            ("launch_timeout_s", f"must be at least one tick: {is_now('tick_s')}"),
            ("tick_s", f"must not be over {is_now('launch_timeout_s')}"),
        )
    _check_floors(settings, source, is_now)
    _check_cordon_lease(settings, source, is_now)


@dataclass(frozen=True, slots=True)
class _Said:
    """The value of a key in words, for an error about another one."""

    settings: ScalingSettings
    source: TomlSource

    def __call__(self, key: str) -> str:
        return f"{key}, which is {getattr(self.settings, key):g}{'' if key in self.source else ' by default'}"


def _check_floors(settings: ScalingSettings, source: TomlSource, is_now: _Said) -> None:
    for index, floor in enumerate(settings.floors):
        if floor.min_nodes > settings.max_nodes:
            raise source.bad(f"floors.{index}.min_nodes", f"must not be over {is_now('max_nodes')}")
        if floor.min_nodes <= settings.min_nodes:
            raise source.bad(f"floors.{index}.min_nodes", f"never acts: at any time there are {is_now('min_nodes')}")


def least_cordon_lease_s(*, tick_s: float, lease_s: float) -> float:
    """The shortest lifetime of a cordon [s] that lapses neither over a fail-over nor over a lost renewal.

    A leader renews at the first tick at which a third of the lifetime C is over, so up to a tick later. The worst
    moment to die is just before that tick. Then its own lease ends, after `lease_s`; another controller asks each third
    of that; it takes the lease, looks for a whole tick, and renews at the end of it. The cordon must live until then:

        C/3 + tick + 4/3 lease + tick + ORDER_S <= C,  so  C >= 3/2 (2 tick + 4/3 lease + ORDER_S)

    Without any fail-over one renewal may get lost: the next one comes 2 (C/3 + tick) after the last that was heard,
    which is before the end when C is 6 ticks.
    """
    return max(1.5 * (2 * tick_s + 4 / 3 * lease_s + ORDER_S), 6 * tick_s)


def _check_cordon_lease(settings: ScalingSettings, source: TomlSource, is_now: _Said) -> None:
    if settings.cordon_lease_s > MOST_LEASE_S:
        raise source.bad("cordon_lease_s", f"SFUs refuse cordons for longer than {MOST_LEASE_S:.0f} seconds")
    least_s = least_cordon_lease_s(tick_s=settings.tick_s, lease_s=settings.lease_s)
    if least_s > MOST_LEASE_S:
        detail = (
            f"needs a cordon_lease_s of {least_s:g} seconds, and SFUs refuse more than {MOST_LEASE_S:.0f}; lower it"
        )
        raise source.clash(("lease_s", detail), ("tick_s", detail))
    if settings.cordon_lease_s < least_s:
        given = f"{is_now('tick_s')}, and {is_now('lease_s')}"
        needed = f"needs a cordon_lease_s of at least {least_s:g}, or cordons could lapse before they are renewed"
        raise source.clash(
            ("cordon_lease_s", f"could lapse before it is renewed; give at least {least_s:g} with {given}"),
            ("lease_s", needed),
            ("tick_s", needed),
        )


def _check_ranges(settings: ScalingSettings, source: TomlSource) -> None:
    shares = ("scale_out_at", "scale_in_at")
    counts = ("scale_out_hits", "scale_out_window", "scale_in_ticks", "min_nodes", "max_nodes")
    spans = ("tick_s", "cooldown_s", "drain_max_s", "cordon_lease_s", "launch_timeout_s", "lease_s", "report_max_age_s")
    for key in shares:
        if not 0 < getattr(settings, key) <= 1:
            raise source.bad(key, "must be over 0 and at most 1")
    for key in counts:
        if not 1 <= getattr(settings, key) <= MOST_NODES:
            raise source.bad(key, f"must be 1 to {MOST_NODES}")
    for key in spans:
        if not 0 < getattr(settings, key) <= MOST_SECONDS:
            raise source.bad(key, f"must be over 0 and at most {MOST_SECONDS:.0f} seconds")
    for key, (least, most) in _CEILINGS.items():
        if (value := getattr(settings, key)) is not None and not least <= value <= most:
            raise source.bad(key, f"must be {least:.15g} to {most:.15g}: reports with other values are not believed")
    if settings.report_max_age_s < LEAST_REPORT_AGE_S:
        raise source.bad("report_max_age_s", f"must be at least {LEAST_REPORT_AGE_S:g}: an SFU reports each second")
    if settings.tick_s < 0.2 or settings.lease_s < 0.5:
        key, least = ("tick_s", 0.2) if settings.tick_s < 0.2 else ("lease_s", 0.5)
        raise source.bad(key, f"must be at least {least:g}")
