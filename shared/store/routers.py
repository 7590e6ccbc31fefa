"""Routers in the store: who is alive and where to ask."""

from __future__ import annotations

from shared.keys import ROUTER_TTL_S
from shared.records import RouterRecord, write_record
from shared.store.calls import Calls, WrongType, text


class Routers(Calls):
    """Reads and writes of router records."""

    async def put_router(self, router: RouterRecord) -> None:
        """Write a router's record and renew its lifetime of `ROUTER_TTL_S`."""
        keys = [self.keys.router(router.router), self.keys.routers]
        await self._run("put_indexed", keys, router.router, write_record(router), ROUTER_TTL_S)

    async def read_routers(self) -> list[RouterRecord]:
        """The routers that are alive."""
        try:
            ids = [text(raw) for raw in await self._send("read_routers", "SMEMBERS", self.keys.routers)]
        except WrongType:
            return []
        if not ids:
            return []
        keys = [self.keys.routers, *map(self.keys.router, ids)]
        answer = await self._run("read_indexed", keys, *ids)
        pairs = ((text(answer[i]), answer[i + 1]) for i in range(0, len(answer), 2))
        records = (self._record(RouterRecord, raw, self.keys.router(router)) for router, raw in pairs)
        return sorted((record for record in records if record), key=lambda record: record.router)

    async def remove_router(self, router: str) -> None:
        """Take a router that ends out of the list."""
        await self._run("remove_indexed", [self.keys.router(router), self.keys.routers], router)
