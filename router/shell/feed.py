"""The fleet page's feed: `/api/fleet`, one compact answer for all SFUs, and `/api/sfus/{sfu}/rooms` for one of them.

Encoded once for all pages that ask within `FRESH_FOR_S`: three hundred SFUs and ten open pages are no load."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
from aiohttp import web

from router.core.directory import SfuView
from router.core.room import Room
from router.shell.state import RouterState
from shared.fleet_rows import RouterRow, SfuRow, facts_of, router_row, short
from shared.http import answer
from shared.load import load_of
from shared.records import every_field

FRESH_FOR_S = 0.5
"""SFUs report once a second."""
MAX_ROWS = 2000
"""SFUs in one answer at most; the page says how many were left out."""
MAX_ROOMS = 500


class SeenSfuRow(SfuRow, frozen=True, kw_only=True):
    """One SFU as this router sees it now."""

    refused: str | None
    """Why it gets no new work; null: it does."""
    age_s: float
    """Since it was last heard of."""
    linked: bool
    binding: str | None
    """The fullest part: `egress`, `streams`, `cpu`."""
    drain: dict[str, Any] | None
    """The fields of `Drain`, those of default value included."""


class FleetAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    router: str
    """Who answers."""
    store_up: bool
    now_at: float
    """This router's clock [Unix seconds]: pages count from it, not from their own."""
    routers: list[RouterRow]
    sfus: list[SeenSfuRow]
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
        return answer(self._body)

    def _answer(self, now: float) -> FleetAnswer:
        state = self._state
        views = state.directory.views(now=now)
        return FleetAnswer(
            router=state.config.router,
            store_up=not state.directory.blind,
            now_at=state.wall(),
            routers=[router_row(record) for record in state.routers],
            sfus=[seen_row(view) for view in islice(views, MAX_ROWS)],
            left_out=max(0, len(state.directory) - MAX_ROWS),
        )

    async def _rooms(self, request: web.Request) -> web.Response:
        sfu = request.match_info["sfu"]
        rooms = [room for room in self._state.rooms if sfu in room.sfus]
        rows = [_room_row(room) for room in rooms[:MAX_ROOMS]]
        return answer(RoomsAnswer(router=self._state.config.router, sfu=sfu, count=len(rooms), rooms=rows))


def seen_row(view: SfuView) -> SeenSfuRow:
    """One SFU's row, its load computed from the parts that it reports."""
    load = load_of(view.state)
    facts = facts_of(view.state) | {"sfu": view.sfu, "status": view.status.value, "load": short(load.node)}
    return SeenSfuRow(
        **facts,
        refused=view.refused.value if view.refused else None,
        age_s=round(view.age_s, 1),
        linked=view.linked,
        binding=load.binding.value if load.binding else None,
        drain=every_field(view.state.drain),
    )


def _room_row(room: Room) -> RoomRow:
    return RoomRow(
        room=room.name,
        sfu=room.placement.sfu if room.placement else None,
        players=len(room.players),
        publications=len(room.publications),
    )
