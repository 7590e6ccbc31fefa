"""The read-only JSON API (P5, D12), and tokens for trying it out."""

from __future__ import annotations

import asyncio
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from router.core.room import Room
from router.core.sessions import Session
from router.shell.readings import MAX_ROWS, NO_NUMBER, Readings, rows_asked, rows_read
from router.shell.state import RouterState
from shared.errors import BadToken, StoreUnavailable
from shared.http import answer
from shared.placement_records import PlacementRecord
from shared.records import DrainReport, every_field
from shared.store.placements import is_about
from shared.tokens import MAX_NAME, PlayerClaims, issue

DEV_TOKEN_TTL_S = 3600.0
MAX_DRAINS = 100


class About(NamedTuple):
    """Which placements are asked for: at most so many, of a room and of a player if named."""

    most: int
    room: str
    player: str


class Api:
    """Handlers under `/api`."""

    def __init__(self, state: RouterState, readers: asyncio.Semaphore) -> None:
        """`readers` bounds how many read the store for the API at a time."""
        self._state = state
        self._readers = readers
        self._placed = Readings(self._read_placements, clock=lambda: state.mono(), gate=readers)
        self._drained = Readings(self._read_drains, clock=lambda: state.mono(), gate=readers)

    def add_to(self, app: web.Application) -> None:
        """Add the routes."""
        app.add_routes(
            [
                web.get("/api/sfus", self._sfus),
                web.get("/api/sfus/{sfu}/players", self._sfu_players),
                web.get("/api/rooms", self._rooms),
                web.get("/api/rooms/{room}", self._room),
                web.get("/api/placements", self._placements),
                web.get("/api/routers", self._routers),
                web.get("/api/drains", self._drains),
                web.post("/api/dev-token", self._dev_token),
            ]
        )

    async def _sfus(self, _: web.Request) -> web.Response:
        """Every SFU as this router sees it."""
        state = self._state
        rows = []
        for view in state.directory.views(now=state.mono()):
            row = {
                **every_field(view.state),
                "sfu": view.sfu,
                "status": view.status.value,
                "placeable": view.refused is None,
                "refused": view.refused.value if view.refused else None,
                "linked": view.linked,
                "age_s": round(view.age_s, 3),
            }
            rows.append(row)
        return answer({"router": state.config.router, "store_up": not state.directory.blind, "sfus": rows})

    async def _sfu_players(self, request: web.Request) -> web.Response:
        """Players of this router whose home is that SFU, and why they are still there."""
        sfu = request.match_info["sfu"]
        rows = [
            _player_row(room, session, sfu)
            for room in self._state.rooms
            for session in room.sessions.values()
            if room.players[session.player].sfu == sfu
        ]
        return answer({"router": self._state.config.router, "sfu": sfu, "count": len(rows), "players": rows[:MAX_ROWS]})

    async def _rooms(self, _: web.Request) -> web.Response:
        """The rooms hosted here."""
        rows = [
            {
                "room": room.name,
                "sfu": room.placement.sfu if room.placement else None,
                "generation": room.placement.generation if room.placement else None,
                "players": len(room.players),
                "players_here": len(room.sessions),
                "publications": len(room.publications),
                "sfus": sorted(room.sfus),
            }
            for room in self._state.rooms
        ]
        return answer({"router": self._state.config.router, "count": len(rows), "rooms": rows[:MAX_ROWS]})

    async def _room(self, request: web.Request) -> web.Response:
        """One room: as hosted here, else as Redis has it."""
        name = request.match_info["room"]
        room = self._state.rooms.get(name)
        if room is None:
            room = await self._stored(name)
        if room is None:
            return answer({"error": "no such room"}, status=404)
        return answer(
            {
                "room": name,
                "placement": every_field(room.placement),
                "players": [every_field(record) for record in room.players.values()],
                "publications": [every_field(record) for record in room.publications.values()],
                "sfus": sorted(room.sfus),
            }
        )

    async def _stored(self, name: str) -> Room | None:
        try:
            async with self._readers:
                record = await self._state.need_store("read_room").read_room(name)
        except StoreUnavailable:
            return None
        if not record.version:
            return None
        room = Room(name)
        room.players, room.publications = dict(record.players), dict(record.publications)
        room.placement = record.placement
        return room

    async def _placements(self, request: web.Request) -> web.Response:
        """The fleet's last placements, newest first, with all that decided them; of one room or player if named.

        While Redis is away, those of this router.
        """
        state, query = self._state, request.query
        last = rows_asked(query, default=50)
        if last is None:
            return answer(NO_NUMBER, status=400)
        wanted = {"room": query.get("room", "")[:MAX_NAME], "player": query.get("player", "")[:MAX_NAME]}
        try:
            stored = await self._placed.of(About(rows_read(last), **wanted))
            here = state.placements.unsent
        except StoreUnavailable:
            stored, here = [], state.placements.last(MAX_ROWS)
        found = {each.id: each for each in (*here, *stored) if is_about(each, **wanted)}
        return answer(
            {
                "router": state.config.router,
                "store_up": not state.directory.blind,
                "reasons": dict(state.placements.reasons),
                "placements": [_placement(record) for record in list(found.values())[:last]],
            }
        )

    async def _read_placements(self, about: About) -> list[PlacementRecord]:
        store = self._state.need_store("read_placements")
        # Those on their way to the store may have arrived before the next question, and must not be missing then.
        on_their_way = self._state.placements.unsent
        return [*on_their_way, *await store.read_placements(about.most, room=about.room, player=about.player)]

    async def _routers(self, _: web.Request) -> web.Response:
        """The fleet's routers, for clients that look for another one."""
        return answer({"router": self._state.config.router, "routers": [every_field(r) for r in self._state.routers]})

    async def _drains(self, _: web.Request) -> web.Response:
        """The last drains of the fleet, newest first."""
        try:
            reports = await self._drained.of(MAX_DRAINS)
        except StoreUnavailable as error:
            return answer({"error": error.code}, status=503)
        return answer({"drains": [every_field(report) for report in reports]})

    async def _read_drains(self, most: int) -> list[DrainReport]:
        return await self._state.need_store("read_drain_reports").read_drain_reports(most)

    async def _dev_token(self, request: web.Request) -> web.Response:
        """A player token for every asker, when the setting allows it."""
        config = self._state.config
        if not config.dev_tokens:
            return answer({"error": "dev tokens are off; start the router with --dev-tokens"}, status=404)
        try:
            body = msgspec.json.decode(await request.read(), type=PlayerClaims)
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            return answer({"error": str(error)[:200]}, status=400)
        if not (body.room and body.identity) or max(map(len, (body.room, body.identity, body.name))) > MAX_NAME:
            return answer({"error": str(BadToken(reason="bad-claims", detail="room and identity"))}, status=400)
        token = issue(body, secret=config.secret, now_at=self._state.wall(), ttl_s=DEV_TOKEN_TTL_S)
        return answer({"token": token, "router": self._state.announced_ws})


def _player_row(room: Room, session: Session, sfu: str) -> dict[str, Any]:
    record = room.players[session.player]
    stay = record.stay if record.stay is not None and record.stay.sfu == sfu else None
    return {
        "player": record.player,
        "identity": record.identity,
        "name": record.name,
        "room": room.name,
        "presence": every_field(record.presence),
        "decided": stay is not None,
        "move": stay.move if stay else None,
        "reason": stay.reason if stay else "",
        "connected": session.wire is not None,
        "moving_to": session.next_sfu or None,
        "since_at": session.home_at,
        "publications": len(room.publications_of(record.player)),
    }


def _placement(record: PlacementRecord) -> dict[str, Any]:
    """The record, and the ids of the eligible SFUs in a list of their own, as this answer has always had them."""
    return {**every_field(record), "eligible": [each.sfu for each in record.candidates]}
