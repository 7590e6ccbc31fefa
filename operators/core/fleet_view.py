"""A fleet as `sluice status` shows it: from the records in Redis, sorted and in plain words."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shared.fleet_rows import RouterRow, SfuRow, facts_of, router_row
from shared.load import load_of
from shared.records import RouterRecord, SfuState, SfuStatus, sfu_id, status_of


class StatusRow(SfuRow, frozen=True, kw_only=True):
    """One SFU."""

    binding: str = ""
    """The part of its load that is fullest: `egress`, `streams`, `cpu`; empty while not all are known."""
    cause: str = ""
    """What began its drain: `sigterm` or `operator`; empty while online."""
    drain: str = ""
    """The drain in words."""
    cordoned_for_s: float | None = None


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """The whole fleet, as `status --json` prints it."""

    fleet: str
    sfus: list[StatusRow]
    routers: list[RouterRow]


def fleet_view(fleet: str, *, sfus: Iterable[SfuState], routers: Iterable[RouterRecord]) -> FleetView:
    """The view, sorted by id."""
    return FleetView(
        fleet=fleet,
        sfus=[sfu_row(state) for state in sorted(sfus, key=sfu_id)],
        routers=[router_row(record) for record in sorted(routers, key=lambda record: record.router)],
    )


def sfu_row(state: SfuState) -> StatusRow:
    """One SFU's row."""
    return StatusRow(
        **facts_of(state),
        binding=load_of(state).binding or "",
        cause=state.drain.cause if state.drain else "",
        drain=drain_words(state),
        cordoned_for_s=state.drain.elapsed_s if state.drain else None,
    )


def drain_words(state: SfuState) -> str:
    """The drain as an operator wants to read it; empty while there is none."""
    drain = state.drain
    if drain is None or status_of(state) is SfuStatus.ONLINE:
        return ""
    who = "SIGTERM" if drain.cause == "sigterm" else f"by {drain.by or 'an operator'}"
    parts = [who, f"for {span(drain.elapsed_s)}"]
    if drain.reason and drain.cause != "sigterm":
        parts.append(f"“{drain.reason}”")
    if drain.lease_left_s is not None:
        parts.append(f"lapses in {span(drain.lease_left_s)} unless renewed")
    elif not drain.exit_when_empty:
        parts.append("held until uncordoned")
    if drain.asking:
        parts.append("asking players to move")
    elif drain.drain_max_s is not None:
        parts.append(f"asks in {span(max(0.0, drain.drain_max_s - drain.elapsed_s))}")
    if drain.exit_when_empty and drain.grace_s is not None:
        parts.append(f"ends within {span(max(0.0, drain.grace_s - drain.elapsed_s))}")
    return ", ".join(parts)


def span(seconds: float) -> str:
    """A length of time, to two figures of what matters: `4.2 s`, `3 min 20 s`, `1 h 5 min`."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"
