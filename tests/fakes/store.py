"""The store in memory for tests: `FakeStore` in place of `Store`, with a switch for outages."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from shared.errors import StoreUnavailable
from shared.placement_records import PlacementRecord
from shared.placing import Failing, FailureRule, InFlightThere, PlacedRoom, Tries, Version, Wish
from shared.records import (
    DrainReport,
    ExitOrder,
    PlayerRecord,
    PublicationRecord,
    RouterRecord,
    SfuCommand,
    SfuState,
)
from shared.store.answers import EnteredRoom, Gap, HeardRouter, HeardSfu, PutSfu, RoomRecord, Scaling, Wake
from tests.fakes.store_core import StoreCore


class FakeStore:
    """One program's view of a store in memory; several programs share one `core`.

    `down = True` makes every call raise `StoreUnavailable` and loses hints; going up again gives a `Gap`, as a
    reconnect does. Each call lets other tasks run once, as a real one would.
    """

    def __init__(self, clock: Callable[[], float] | None = None, *, core: StoreCore | None = None) -> None:
        """`clock` stands for Redis' own [Unix seconds]; leave it out when `core` brings one."""
        if (clock is None) == (core is None):
            raise ValueError("give a clock or a core")
        self.core = core if core is not None else StoreCore(clock or float)
        self._down = False
        self._healthy = False
        self._subscriptions: list[asyncio.Queue[Wake | Gap]] = []

    @property
    def counts(self) -> Counter[str]:
        return self.core.counts

    @property
    def healthy(self) -> bool:
        return self._healthy

    @property
    def down(self) -> bool:
        return self._down

    @down.setter
    def down(self, down: bool) -> None:
        came_back = self._down and not down
        self._down = down
        if came_back:
            for queue in self._subscriptions:
                queue.put_nowait(Gap())

    async def close(self) -> None:
        return None

    async def _call(self, method: str, *args: Any) -> Any:
        await asyncio.sleep(0)
        if self._down:
            raise self._unavailable(method)
        self._healthy = True
        return getattr(self.core, method)(*args)

    def _unavailable(self, method: str) -> StoreUnavailable:
        self._healthy = False
        self.counts["unavailable"] += 1
        return StoreUnavailable(operation=method, detail="the test has switched it off")

    async def now(self) -> float:
        return float(await self._call("now"))

    async def ping(self) -> None:
        await self._call("ping")

    async def put_sfu(self, state: SfuState) -> PutSfu:
        answer: PutSfu = await self._call("put_sfu", state)
        return answer

    async def read_sfus(self) -> list[SfuState]:
        answer: list[SfuState] = await self._call("read_sfus")
        return answer

    async def hear_sfus(self) -> list[HeardSfu]:
        answer: list[HeardSfu] = await self._call("hear_sfus")
        return answer

    async def remove_sfu(self, sfu: str, incarnation: int) -> bool:
        return bool(await self._call("remove_sfu", sfu, incarnation))

    async def place_room(self, room: str, wish: Wish) -> PlacedRoom:
        if not wish.offers and wish.keep is None:
            raise ValueError("place_room needs at least one offer")
        answer: PlacedRoom = await self._call("place_room", room, wish)
        return answer

    async def count_join(self, sfu: str, version: Version) -> InFlightThere:
        answer: InFlightThere = await self._call("count_join", sfu, version)
        return answer

    async def note_tries(self, tries: Sequence[Tries], rule: FailureRule) -> list[str]:
        return list(await self._call("note_tries", tries, rule))

    async def read_failing(self) -> list[Failing]:
        return list(await self._call("read_failing"))

    async def read_roll_next(self) -> frozenset[str]:
        return frozenset(await self._call("read_roll_next"))

    async def push_placements(self, records: Sequence[PlacementRecord]) -> None:
        await self._call("push_placements", records)

    async def read_placements(self, n: int, *, room: str = "", player: str = "") -> list[PlacementRecord]:
        return list(await self._call("read_placements", n, room, player))

    async def enter_room(self, room: str, player: PlayerRecord) -> EnteredRoom:
        answer: EnteredRoom = await self._call("enter_room", room, player)
        return answer

    async def put_player(self, room: str, player: PlayerRecord) -> bool:
        return bool(await self._call("put_player", room, player))

    async def leave_room(self, room: str, player: str) -> None:
        await self._call("leave_room", room, player)

    async def renew_room(self, room: str, players: Sequence[str]) -> tuple[str, ...]:
        return tuple(await self._call("renew_room", room, players))

    async def put_publication(self, room: str, publication: PublicationRecord) -> bool:
        return bool(await self._call("put_publication", room, publication))

    async def remove_publication(self, room: str, publication: str, player: str) -> None:
        await self._call("remove_publication", room, publication, player)

    async def read_room(self, room: str) -> RoomRecord:
        answer: RoomRecord = await self._call("read_room", room)
        return answer

    async def room_versions(self, rooms: Sequence[str]) -> dict[str, int]:
        return dict(await self._call("room_versions", rooms))

    async def order_exit(self, scope: str, target: str, by: str) -> ExitOrder:
        answer: ExitOrder = await self._call("order_exit", scope, target, by)
        return answer

    async def read_exits(self) -> list[ExitOrder]:
        return list(await self._call("read_exits"))

    async def command_sfu(self, verb: str, sfu: str, by: str, reason: str) -> SfuCommand:
        answer: SfuCommand = await self._call("command_sfu", verb, sfu, by, reason)
        return answer

    async def read_commands(self, sfus: Sequence[str]) -> list[SfuCommand]:
        return list(await self._call("read_commands", sfus))

    async def push_drain_report(self, report: DrainReport) -> None:
        await self._call("push_drain_report", report)

    async def read_drain_reports(self, n: int) -> list[DrainReport]:
        return list(await self._call("read_drain_reports", n))

    async def read_scaling(self, n: int) -> Scaling:
        answer: Scaling = await self._call("read_scaling", n)
        return answer

    async def put_router(self, router: RouterRecord) -> None:
        await self._call("put_router", router)

    async def read_routers(self) -> list[RouterRecord]:
        return list(await self._call("read_routers"))

    async def hear_routers(self) -> list[HeardRouter]:
        return list(await self._call("hear_routers"))

    async def known_since(self) -> float | None:
        answer: float | None = await self._call("known_since")
        return answer

    async def remove_router(self, router: str) -> None:
        await self._call("remove_router", router)

    async def wake(self, hint: Wake) -> None:
        await self._call("wake", hint)

    async def wakes(self, *, rng: random.Random) -> AsyncGenerator[Wake | Gap, None]:
        queue: asyncio.Queue[Wake | Gap] = asyncio.Queue()
        if not self._down:
            queue.put_nowait(Gap())

        def hear(hint: Wake) -> None:
            if not self._down:
                queue.put_nowait(hint)

        self._subscriptions.append(queue)
        self.core.listeners.append(hear)
        try:
            while True:
                yield await queue.get()
        finally:
            self._subscriptions.remove(queue)
            self.core.listeners.remove(hear)
