"""Routers in the store: who is alive and where to ask."""

from __future__ import annotations

from shared.keys import ROUTER_TTL_S
from shared.records import RouterRecord, write_record
from shared.store.answers import HeardRouter
from shared.store.calls import Calls, WrongType, text


class Routers(Calls):
    """Reads and writes of router records."""

    async def put_router(self, router: RouterRecord) -> None:
        """Write a router's record and renew its lifetime of `ROUTER_TTL_S`."""
        keys = [self.keys.router(router.router), self.keys.routers, self.keys.since]
        await self._run("put_indexed", keys, router.router, write_record(router), ROUTER_TTL_S)

    async def read_routers(self) -> list[RouterRecord]:
        """The routers that have written their record within `ROUTER_TTL_S`."""
        return [heard.router for heard in await self.hear_routers()]

    async def hear_routers(self) -> list[HeardRouter]:
        """The same, with how long ago by Redis' clock."""
        try:
            ids = [text(raw) for raw in await self._send("read_routers", "SMEMBERS", self.keys.routers)]
        except WrongType:
            return []
        if not ids:
            return []
        keys = [self.keys.routers, *map(self.keys.router, ids)]
        answer = await self._run("read_indexed", keys, *ids)
        heard = (self._heard_router(*answer[i : i + 3]) for i in range(0, len(answer), 3))
        return sorted((each for each in heard if each), key=lambda each: each.router.router)

    async def remove_router(self, router: str) -> None:
        """Take a router that ends out of the list."""
        await self._run("remove_indexed", [self.keys.router(router), self.keys.routers], router)

    async def known_since(self) -> float | None:
        """When a router of this fleet first wrote to this Redis [Unix seconds, by Redis' clock].

        What happened before is in no history, because a Redis without a disk forgets it when it ends. None: no router
        has written yet.
        """
        try:
            raw = await self._send("known_since", "GET", self.keys.since)
            return float(raw) if raw else None
        except (WrongType, ValueError):
            return None

    def _heard_router(self, raw_id: bytes, raw: bytes, left_ms: int) -> HeardRouter | None:
        record = self._record(RouterRecord, raw, self.keys.router(text(raw_id)))
        return HeardRouter(record, silent_for_s=max(0.0, ROUTER_TTL_S - left_ms / 1000)) if record else None
