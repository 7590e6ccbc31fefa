"""A fleet as `sluice status` shows it: from the records in Redis, sorted and in plain words."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from shared.fleet_rows import RouterRow, SfuRow, facts_of, router_row
from shared.load import load_of
from shared.records import LoadParts, SfuState, SfuStatus, sfu_id, status_of
from shared.store.answers import HeardRouter, HeardSfu

SILENT = "SILENT"
"""The status of an SFU whose last word may not hold any more. No SFU says it of itself."""
SILENT_AFTER_S = 3.0
"""SFUs report each second, and routers write that and their own record each second. Routers give up a broken link after
the same time."""


class StatusRow(SfuRow, frozen=True, kw_only=True):
    """One SFU."""

    binding: str = ""
    """The part of its load that is fullest: `egress`, `streams`, `cpu`; empty while not all are known."""
    cause: str = ""
    """What began its drain: `sigterm` or `operator`; empty while online."""
    drain: str = ""
    """The drain in words."""
    cordoned_for_s: float | None = None
    silent_for_s: float | None = None
    """Since the store had news of it, by Redis' clock; None: an older router wrote its record and does not say."""
    last_status: str = ""
    """What it said of itself last. Differs from `status` while that is SILENT."""


class StatusRouterRow(RouterRow, frozen=True, kw_only=True):
    """One router."""

    silent_for_s: float
    """Since it wrote its record, by Redis' clock."""
    silent: bool
    """Whether that is too long for a router that is well."""


class FleetView(msgspec.Struct, frozen=True, kw_only=True):
    """The whole fleet, as `status --json` prints it."""

    fleet: str
    sfus: list[StatusRow]
    routers: list[StatusRouterRow]


def fleet_view(fleet: str, *, sfus: Iterable[HeardSfu], routers: Iterable[HeardRouter]) -> FleetView:
    """The view, sorted by id."""
    return FleetView(
        fleet=fleet,
        sfus=[sfu_row(heard) for heard in sorted(sfus, key=lambda heard: sfu_id(heard.state))],
        routers=[heard_router_row(heard) for heard in sorted(routers, key=lambda heard: heard.router.router)],
    )


def sfu_row(heard: HeardSfu) -> StatusRow:
    """One SFU's row; of a silent one nothing is told as if it were of now."""
    silent = heard.silent_for_s is not None and heard.silent_for_s >= SILENT_AFTER_S
    state = _without_load(heard.state) if silent else heard.state
    facts = facts_of(state)
    return StatusRow(
        **(facts | {"status": SILENT} if silent else facts),
        last_status=facts["status"],
        silent_for_s=None if heard.silent_for_s is None else round(heard.silent_for_s, 1),
        binding=load_of(state).binding or "",
        cause=state.drain.cause if state.drain else "",
        drain=drain_words(state),
        cordoned_for_s=state.drain.elapsed_s if state.drain else None,
    )


def heard_router_row(heard: HeardRouter) -> StatusRouterRow:
    """One router's row."""
    return StatusRouterRow(
        **msgspec.structs.asdict(router_row(heard.router)),
        silent_for_s=round(heard.silent_for_s, 1),
        silent=heard.silent_for_s >= SILENT_AFTER_S,
    )


def status_words(row: StatusRow) -> str:
    """The status for people: `ONLINE`, or `silent 7 s` in its place."""
    return f"silent {row.silent_for_s or 0:.0f} s" if row.status == SILENT else row.status


def drain_of(row: StatusRow) -> str:
    """The drain for people; of a silent SFU what it said last."""
    return ", ".join(filter(None, (f"it said {row.last_status}", row.drain))) if row.status == SILENT else row.drain


def _without_load(state: SfuState) -> SfuState:
    """The state with all that changes from second to second unknown (invariant 4)."""
    return msgspec.structs.replace(
        state, load=None, load_parts=LoadParts(), players=None, producers=None, consumers=None
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
