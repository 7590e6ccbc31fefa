"""Rows of a fleet for people and scripts: what `sluice status --json` and the fleet page's feed both say.

Null is "not known" everywhere, never zero (invariant 4).
"""

from __future__ import annotations

from typing import Any

import msgspec

from shared.load import Load, load_of
from shared.records import MissingMedia, RouterRecord, SfuState, every_field, sfu_id, status_of


class PartsRow(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the ceilings, 1.0 at the ceiling."""

    egress: float | None
    streams: float | None
    cpu: float | None


class SfuRow(msgspec.Struct, frozen=True, kw_only=True):
    """One SFU. The two views extend it: what a router sees of it, and how its drain reads in words."""

    sfu: str
    status: str
    load: float | None
    cell: str
    version: str
    address: str
    parts: PartsRow
    egress_bps: float | None
    ingress_bps: float | None
    streams: int | None
    cpu: float | None
    egress_ceiling_mbps: float
    stream_ceiling: int
    players: int | None
    rooms: int | None
    producers: int | None
    consumers: int | None
    warmed_up: bool
    started_at: float | None
    """By Redis' clock [Unix seconds]."""
    milestones: dict[str, Any]
    """The fields of `Milestones`, unset ones included."""
    probe_failure: str


class RouterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One router."""

    router: str
    http: str
    players: int
    sfus: tuple[str, ...]
    """SFUs linked to it."""
    version: str
    without_media: int | None
    """Players of it whose media does not get through; null: an older router does not say."""
    who_without_media: tuple[MissingMedia, ...]
    """The first few of them."""


def facts_of(state: SfuState) -> dict[str, Any]:
    """The fields of an `SfuRow`. `load` is that of the fullest part, so that the two agree; while not all parts are
    known, what the SFU has said of itself."""
    parts, load = state.load_parts, load_of(state)
    return {
        "sfu": sfu_id(state),
        "status": status_of(state).value,
        "load": short(load.node) if load.known else state.load,
        "cell": state.cell,
        "version": state.version,
        "address": state.address,
        "parts": _parts_row(load),
        "egress_bps": parts.egress_bps,
        "ingress_bps": parts.ingress_bps,
        "streams": parts.streams,
        "cpu": parts.cpu,
        "egress_ceiling_mbps": state.capacities.egress_mbps,
        "stream_ceiling": state.capacities.streams,
        "players": state.players,
        "rooms": parts.rooms,
        "producers": state.producers,
        "consumers": state.consumers,
        "warmed_up": state.warmed_up,
        "started_at": state.started_at,
        "milestones": every_field(state.milestones),
        "probe_failure": state.probe_failure,
    }


def router_row(record: RouterRecord) -> RouterRow:
    """One router's row."""
    return RouterRow(
        router=record.router,
        http=record.http,
        players=record.players,
        sfus=tuple(sorted(record.sfus)),
        version=record.version,
        without_media=record.without_media,
        who_without_media=record.who_without_media,
    )


def short(figure: float | None) -> float | None:
    """A figure to three digits."""
    return None if figure is None else round(figure, 3)


def _parts_row(load: Load) -> PartsRow:
    return PartsRow(egress=short(load.egress), streams=short(load.streams), cpu=short(load.cpu))
