"""The exchange with Redis, each interval and when something is urgent: put what is linked here, read the rest."""

from __future__ import annotations

import asyncio
import logging
import secrets

from router.core.room import KEEP_ABSENT_S
from router.shell.hints import Hints
from router.shell.history import read_failing
from router.shell.room_reader import RoomReader
from router.shell.sfu_links import SfuLinks
from router.shell.state import RouterState
from shared.errors import StoreUnavailable
from shared.logs import fields
from shared.records import RouterRecord, SfuState
from shared.store.answers import Gap, Wake, WakeKind

HURRY_GAP_S = 0.02
"""Between two urgent exchanges, so that a burst of hints is one."""
ROUTERS_EVERY_S = 1.0
"""How often the router's own record is renewed and the others' are read: operators see a dead one after 3 s."""
log = logging.getLogger("router")


class Sync:
    """Keeps this router and Redis in step."""

    def __init__(self, state: RouterState, hints: Hints, links: SfuLinks, reader: RoomReader) -> None:
        self._state = state
        self._hints = hints
        self._links = links
        self._reader = reader
        self._routers_due = 0.0
        self._told_status: dict[str, tuple[int, str | None]] = {}
        self._was_up: bool | None = None
        self._settle_at: float | None = None
        self._boot = secrets.token_hex(4)
        self.tried = asyncio.Event()
        """Set after the first exchange, successful or not."""

    def announce(self) -> None:
        """Write the router's own record with the next exchange, which is now."""
        self._routers_due = 0.0
        self._hints.hurry()

    async def run(self) -> None:
        """Exchange for ever; an outage of Redis does not end it."""
        interval_s = self._state.config.sync_interval_s
        while True:
            await self._exchange()
            self.tried.set()
            await asyncio.sleep(HURRY_GAP_S)
            try:
                async with asyncio.timeout(interval_s):
                    await self._hints.urgent.wait()
            except TimeoutError:
                pass

    async def follow_wakes(self) -> None:
        """Hints of other routers and of operators; after a gap everything is read again."""
        first = True
        async for hint in self._state.store.wakes(rng=self._state.rng):
            if isinstance(hint, Gap):
                if not first:
                    self._expect_losses()
                first = False
                self._hints.hurry()
            elif hint.kind is WakeKind.ROOM:
                self._reader.want(hint.target)
            else:
                self._hints.hurry()

    async def _exchange(self) -> None:
        state = self._state
        self._hints.urgent.clear()
        try:
            with state.metrics.sync.time():
                await self._put_sfus()
                await self._read_sfus()
                await read_failing(state)
                state.assigner.standings.roll(await state.store.read_roll_next())
                await self._read_orders()
                await self._read_rooms()
                await self._routers()
        except StoreUnavailable as error:
            self._down(error)
        else:
            self._up()

    async def _put_sfus(self) -> None:
        """First of all what is linked here, then a hint to the others for each status that changed (D3, D4)."""
        facts = self._links.facts()
        puts = await asyncio.gather(*(self._state.store.put_sfu(each.state) for each in facts), return_exceptions=True)
        hints, self._hints.waiting = self._hints.waiting, []
        for each, put in zip(facts, puts, strict=True):
            if isinstance(put, BaseException):
                self._hints.waiting = hints
                raise put
            self._links.stamp(each.sfu, put)
            if self._status_news(each.sfu, each.state):
                hints.append(Wake(WakeKind.SFU, each.sfu))
        for hint in hints:
            await self._state.store.wake(hint)

    def _status_news(self, sfu: str, new: SfuState) -> bool:
        told = (new.incarnation, new.status)
        if self._told_status.get(sfu) == told:
            return False
        self._told_status[sfu] = told
        return True

    async def _read_sfus(self) -> None:
        state = self._state
        states = await state.store.read_sfus()
        now = state.mono()
        facts = state.directory.read_back(states, now=now)
        state.metrics.told.inc(state.teller.tell(facts))
        for fact in facts:
            log.info(
                "[drain] heard %s",
                fields(fact=type(fact).__name__.lower(), sfu=fact.sfu, revision=fact.state.revision),
            )
        present = set(self._links.ids)
        self._told_status = {sfu: told for sfu, told in self._told_status.items() if sfu in present}

    async def _read_orders(self) -> None:
        linked = self._links.ids
        if linked:
            self._links.order(await self._state.store.read_exits(), await self._state.store.read_commands(linked))

    async def _read_rooms(self) -> None:
        state = self._state
        if self._settle_at is not None and state.mono() >= self._settle_at:
            self._settle_at = None
            for room in state.rooms:
                if room.keeps_absent:
                    self._reader.want(room.name)  # who is not back by now is gone
        known = {room.name: room.version for room in state.rooms}
        for name, version in (await state.store.room_versions(list(known))).items():
            if version != known[name]:
                self._reader.want(name)

    async def _routers(self) -> None:
        state = self._state
        if state.mono() < self._routers_due or state.closing:
            return
        await state.store.put_router(
            RouterRecord(
                router=state.config.router,
                http=state.announced_http,
                ws=state.announced_ws,
                version=state.config.version,
                boot=self._boot,
                players=state.rooms.sessions,
                sfus=self._links.ids,
                without_media=state.rooms.without_media,
                who_without_media=state.rooms.who_without_media(),
            )
        )
        state.routers = tuple(await state.store.read_routers())
        self._routers_due = state.mono() + ROUTERS_EVERY_S

    def _down(self, error: StoreUnavailable) -> None:
        state = self._state
        state.metrics.sync_failed.inc()
        state.metrics.store_up.set(0)
        state.directory.lose_store(now=state.mono())
        if self._was_up is not False:
            log.warning("[store] down: %s; going on with what is known", error)
        self._was_up = False

    def _up(self) -> None:
        state = self._state
        state.metrics.store_up.set(1)
        state.directory.see_store(now=state.mono())
        if self._was_up is False:
            log.info("[store] up again")
            self._expect_losses()
        self._was_up = True

    def _expect_losses(self) -> None:
        """Redis may have lost records: no player counts as gone for not being listed.

        What it has lost of ours shows by the rooms' versions: those that differ are read, and what is missing is put
        back, both a batch at a time. An outage without loss costs next to nothing (invariant 5: no storm).
        """
        state = self._state
        until = state.mono() + KEEP_ABSENT_S
        state.recovering_until = until
        state.rooms.keep_absent(until=until)
        self._settle_at = until
        self._routers_due = 0.0
