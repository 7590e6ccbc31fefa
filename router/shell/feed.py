"""The fleet page's feed: `/api/fleet`, one compact answer for all SFUs, and `/api/sfus/{sfu}/rooms` for one of them.

Encoded once for all pages that ask within `FRESH_FOR_S`: three hundred SFUs and ten open pages are no load."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
from aiohttp import web
from msgspec.structs import asdict

from router.core.directory import SfuView
from router.core.room import Room
from router.shell.state import RouterState
from shared.load import load_of
from shared.records import RouterRecord

FRESH_FOR_S = 0.5
"""SFUs report once a second."""
MAX_ROWS = 2000
"""SFUs in one answer at most; the page says how many were left out."""
MAX_ROOMS = 500
COMPRESSED_FROM = 4096
"""Answers from this size are compressed [bytes]: rows of a fleet are much alike."""


class PartsRow(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the ceilings, 1.0 at the ceiling; null: not known."""

    egress: float | None
    streams: float | None
    cpu: float | None


class SfuRow(msgspec.Struct, frozen=True, kw_only=True):
    """One SFU as this router sees it now; null is "not known" everywhere, never zero (invariant 4)."""

    sfu: str
    status: str
    refused: str | None
    """Why it gets no new work; null: it does."""
    age_s: float
    """Since it was last heard of."""
    linked: bool
    cell: str
    version: str
    address: str
    load: float | None
    binding: str | None
    """The fullest part: `egress`, `streams`, `cpu`."""
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
    milestones: dict[str, Any]
    """The fields of `Milestones`, unset ones included."""
    probe_failure: str
    drain: dict[str, Any] | None
    """The fields of `Drain`, those of default value included."""


class RouterRow(msgspec.Struct, frozen=True, kw_only=True):
    """One router."""

    router: str
    http: str
    players: int
    version: str


class FleetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    router: str
    """Who answers."""
    store_up: bool
    now_at: float
    """This router's clock [Unix seconds]: pages count from it, not from their own."""
    routers: list[RouterRow]
    sfus: list[SfuRow]
    left_out: int
    """SFUs beyond `MAX_ROWS`."""


class RoomRow(msgspec.Struct, frozen=True, kw_only=True):
    """A room that touches the SFU, as hosted here."""

    room: str
    sfu: str | None
    """Where its new work goes."""
    players: int
    publications: int


class RoomsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Rooms of one SFU, those of this router."""

    router: str
    sfu: str
    count: int
    rooms: list[RoomRow]


class Feed:
    """The handlers."""

    def __init__(self, state: RouterState) -> None:
        self._state = state
        self._body = b""
        self._made = float("-inf")

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.add_routes([web.get("/api/fleet", self._fleet), web.get("/api/sfus/{sfu}/rooms", self._rooms)])

    async def _fleet(self, _: web.Request) -> web.Response:
        now = self._state.mono()
        if now - self._made >= FRESH_FOR_S:
            self._body, self._made = msgspec.json.encode(self._answer(now)), now
        return _json(self._body)

    def _answer(self, now: float) -> FleetAnswer:
        state = self._state
        views = state.directory.views(now=now)
        return FleetAnswer(
            router=state.config.router,
            store_up=not state.directory.blind,
            now_at=state.wall(),
            routers=[_router_row(record) for record in state.routers],
            sfus=[sfu_row(view) for view in islice(views, MAX_ROWS)],
            left_out=max(0, len(state.directory) - MAX_ROWS),
        )

    async def _rooms(self, request: web.Request) -> web.Response:
        sfu = request.match_info["sfu"]
        rooms = [room for room in self._state.rooms if sfu in room.sfus]
        rows = [_room_row(room) for room in rooms[:MAX_ROOMS]]
        answer = RoomsAnswer(router=self._state.config.router, sfu=sfu, count=len(rooms), rooms=rows)
        return _json(msgspec.json.encode(answer))


def sfu_row(view: SfuView) -> SfuRow:
    """One SFU's row."""
    state, parts, load = view.state, view.state.load_parts, load_of(view.state)
    return SfuRow(
        sfu=view.sfu,
        status=view.status.value,
        refused=view.refused.value if view.refused else None,
        age_s=round(view.age_s, 1),
        linked=view.linked,
        cell=state.cell,
        version=state.version,
        address=state.address,
        load=_short(load.node),
        binding=load.binding.value if load.binding else None,
        parts=PartsRow(egress=_short(load.egress), streams=_short(load.streams), cpu=_short(load.cpu)),
        egress_bps=parts.egress_bps,
        ingress_bps=parts.ingress_bps,
        streams=parts.streams,
        cpu=parts.cpu,
        egress_ceiling_mbps=state.capacities.egress_mbps,
        stream_ceiling=state.capacities.streams,
        players=state.players,
        rooms=parts.rooms,
        producers=state.producers,
        consumers=state.consumers,
        warmed_up=state.warmed_up,
        started_at=state.started_at,
        milestones=asdict(state.milestones),
        probe_failure=state.probe_failure,
        drain=asdict(state.drain) if state.drain else None,
    )


def _router_row(record: RouterRecord) -> RouterRow:
    return RouterRow(router=record.router, http=record.http, players=record.players, version=record.version)


def _room_row(room: Room) -> RoomRow:
    return RoomRow(
        room=room.name,
        sfu=room.placement.sfu if room.placement else None,
        players=len(room.players),
        publications=len(room.publications),
    )


def _short(share: float | None) -> float | None:
    return None if share is None else round(share, 3)


def _json(body: bytes) -> web.Response:
    response = web.Response(body=body, content_type="application/json", headers={"Cache-Control": "no-store"})
    if len(body) >= COMPRESSED_FROM:
        response.enable_compression()
    return response
