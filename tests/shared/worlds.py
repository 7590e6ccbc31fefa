"""The places in which the contract of the store is tested: in memory, on Valkey, on Debian's Redis, on a Cluster."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Protocol

from redis.asyncio import Redis

from shared.keys import Keys
from shared.placing import Offer, Wish
from shared.store.api import StoreApi
from shared.store.store import Store
from tests.fakes.store import FakeStore
from tests.fakes.store_core import Kept, StoreCore

START_AT = 1_800_000_000.0


def wish(*sfus: str, **fields: Any) -> Wish:
    """To be placed on the first of these SFUs."""
    return Wish(offers=tuple(Offer(sfu=sfu) for sfu in sfus), **fields)


class World(Protocol):
    """One backend with the two stores of two programs on it, and what only a test may do to it."""

    store: StoreApi
    other: StoreApi

    async def expire_sfu(self, sfu: str) -> None: ...
    async def expire_lease(self, room: str, player: str) -> None: ...
    async def write_raw_sfu(self, sfu: str, raw: bytes) -> None: ...
    async def write_raw_field(self, room: str, field: str, raw: bytes) -> None: ...
    async def write_raw_in_flight(self, sfu: str, raw: bytes) -> None: ...
    async def age_in_flight(self, sfu: str, by_s: float) -> None:
        """As if all that is in flight there had been placed so much earlier."""

    async def age_tries(self, sfu: str, by_s: float) -> None:
        """As if all that is known of the first incarnation's connections had happened so much earlier."""

    async def age_sfu(self, sfu: str, by_s: float) -> None:
        """As if the last news of it had come so much earlier."""

    async def age_router(self, router: str, by_s: float) -> None:
        """As if its record had been written so much earlier."""

    async def lose_everything(self) -> None: ...
    async def close(self) -> None: ...


class MemoryWorld:
    """The fake."""

    def __init__(self) -> None:
        self.at = START_AT
        self.core = StoreCore(lambda: self.at)
        self.store: StoreApi = FakeStore(core=self.core)
        self.other: StoreApi = FakeStore(core=self.core)

    async def expire_sfu(self, sfu: str) -> None:
        self.core.sfus[sfu].until_at = self.at

    async def expire_lease(self, room: str, player: str) -> None:
        self.core.rooms[room].leases[player] = self.at

    async def write_raw_sfu(self, sfu: str, raw: bytes) -> None:
        self.core.sfus[sfu] = Kept(raw, math.inf)

    async def write_raw_field(self, room: str, field: str, raw: bytes) -> None:
        kind, _, name = field.partition(":")
        target = self.core.rooms[room].players if kind == "p" else self.core.rooms[room].publications
        target[name] = raw

    async def write_raw_in_flight(self, sfu: str, raw: bytes) -> None:
        self.core.placements.records.pop(sfu, None)

    async def age_in_flight(self, sfu: str, by_s: float) -> None:
        since = self.core.placements.records[sfu].since
        since.update({version: at - by_s for version, at in since.items()})

    async def age_tries(self, sfu: str, by_s: float) -> None:
        for (tried, incarnation, _), words in self.core.placements.tries.items():
            if (tried, incarnation) == (sfu, 1):
                words.update({word: at - by_s for word, at in words.items()})

    async def age_sfu(self, sfu: str, by_s: float) -> None:
        stamps = self.core.stamps[sfu]
        assert stamps.heard_at is not None
        self.core.stamps[sfu] = replace(stamps, heard_at=stamps.heard_at - by_s)

    async def age_router(self, router: str, by_s: float) -> None:
        self.core.routers[router].until_at -= by_s

    async def lose_everything(self) -> None:
        self.core.lose_everything()

    async def close(self) -> None:
        return None


class RedisWorld:
    """A real server. `node` is the URL of the one that holds the fleet's keys."""

    def __init__(self, url: str, fleet: str, *, node: str = "") -> None:
        # A test machine may be busy for longer than a second; the bound itself has tests of its own.
        self.store: StoreApi = Store(url, fleet=fleet, timeout_s=10.0)
        # A cluster client asks so much at its start that one has to do for both.
        self.other: StoreApi = self.store if node else Store(url, fleet=fleet, timeout_s=10.0)
        self.keys = Keys(fleet)
        self.client: Redis = Redis.from_url(node or url)

    async def expire_sfu(self, sfu: str) -> None:
        await self._do("DEL", self.keys.sfu(sfu))

    async def expire_lease(self, room: str, player: str) -> None:
        await self._do("ZADD", self.keys.room_leases(room), "XX", 1, f"p:{player}")

    async def write_raw_sfu(self, sfu: str, raw: bytes) -> None:
        await self._do("SET", self.keys.sfu(sfu), raw)
        await self._do("SADD", self.keys.sfus, sfu)

    async def write_raw_field(self, room: str, field: str, raw: bytes) -> None:
        await self._do("HSET", self.keys.room(room), field, raw)

    async def write_raw_in_flight(self, sfu: str, raw: bytes) -> None:
        await self._do("SET", self.keys.in_flight(sfu), raw)

    async def read_raw(self, room: str, field: str) -> bytes:
        return bytes(await self._do("HGET", self.keys.room(room), field))

    async def read_raw_in_flight(self, sfu: str) -> bytes:
        return bytes(await self._do("GET", self.keys.in_flight(sfu)))

    async def write_raw_failing(self, sfu: str, raw: str) -> None:
        await self._do("HSET", self.keys.failing, sfu, raw)

    async def server_now(self) -> float:
        """The server's clock [Unix seconds]."""
        return float((await self._do("TIME"))[0])

    async def age_in_flight(self, sfu: str, by_s: float) -> None:
        head, *versions = (await self._do("GET", self.keys.in_flight(sfu))).decode().split(";")
        parts = [each.rsplit(" ", 1) for each in versions]
        aged = [f"{counts} {int(since) - round(by_s * 1000)}" for counts, since in parts]
        await self._do("SET", self.keys.in_flight(sfu), ";".join([head, *aged]), "KEEPTTL")

    async def age_tries(self, sfu: str, by_s: float) -> None:
        for key in (self.keys.tried(sfu, 1), self.keys.failed(sfu, 1)):
            for word in await self._do("ZRANGE", key, 0, -1):
                await self._do("ZINCRBY", key, -round(by_s * 1000), word)

    async def age_sfu(self, sfu: str, by_s: float) -> None:
        key = self.keys.sfu_stamps(sfu)
        await self._do("HSET", key, "heard_at", f"{float(await self._do('HGET', key, 'heard_at')) - by_s:.6f}")

    async def age_router(self, router: str, by_s: float) -> None:
        key = self.keys.router(router)
        await self._do("PEXPIRE", key, await self._do("PTTL", key) - round(by_s * 1000))

    async def lose_everything(self) -> None:
        for key in await self._do("KEYS", f"{{{self.keys.fleet}}}:*"):
            await self._do("DEL", key)

    async def _do(self, *command: Any) -> Any:
        return await self.client.execute_command(*command)  # type: ignore[no-untyped-call]

    async def close(self) -> None:
        await self.store.close()
        await self.other.close()
        await self.client.aclose()
