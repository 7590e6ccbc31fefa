"""Goes on with a roll: look, decide, write the plan, act; until it is done, pauses, or another command takes over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from typing import Any

import aiohttp

from operators.core.roll import machine
from operators.core.roll.following import follow
from operators.core.roll.health import RouterHealth, grown, read_health
from operators.core.roll.planning import rolled_next
from operators.core.roll.seen import RollSeen, seen_of
from operators.errors import NotApplied
from operators.shell.operations import command, reader_token
from operators.shell.roll.platform import RollPlatform
from shared.errors import Fenced, Refused, StoreUnavailable
from shared.records import CommandVerb, RouterRecord
from shared.roll_records import RollRecord, RollState
from shared.store.store import Store

LOOK_EVERY_S = 0.5
REPORTS_LOOKED_AT = 200
"""More than one look can have missed."""
FOLLOW = "follow"
Show = Callable[[RollRecord, RollSeen], Coroutine[Any, Any, None]]


class RollRunner:
    """One command that holds the roll under `token`."""

    def __init__(
        self,
        store: Store,
        session: aiohttp.ClientSession,
        platform: RollPlatform,
        *,
        name: str,
        token: int,
        secret: str = "",
        show: Show,
    ) -> None:
        """`show` is given each plan after it has been written."""
        self._store = store
        self._session = session
        self._platform = platform
        self._name = name
        self.token = token
        """The one to give the lease back with; another one after Redis has lost its data."""
        self._secret = secret
        self._show = show
        self._health: dict[str, RouterHealth] = {}
        self._acts: dict[machine.RollAct, asyncio.Task[None]] = {}

    async def run(self, plan: RollRecord) -> RollRecord:
        """Go on until the plan is no longer running; the plan then. Raises `Fenced` when another command took over.

        While Redis is away nothing is done, and nothing is forgotten.
        """
        try:
            while True:
                with contextlib.suppress(StoreUnavailable):
                    plan = await self._tick(plan)
                if plan.state != RollState.RUNNING:
                    return plan
                await asyncio.sleep(LOOK_EVERY_S)
        finally:
            await self._cancel()

    async def _tick(self, plan: RollRecord) -> RollRecord:
        now, seen = await self._store.now(), await self.look()
        plan = self._collect(plan, now)
        advance = follow if plan.platform == FOLLOW else machine.advance
        plan = advance(plan, seen, now=now)
        # First the plan, then the deed: a command that goes on after us must know what we may have begun.
        await self._write(plan)
        if plan.platform != FOLLOW:
            self._begin(plan)
        await self._show(plan, seen)
        return plan

    async def _write(self, plan: RollRecord) -> None:
        """Raises `Fenced` when another command has taken over. A server that has lost its data gets ours back."""
        try:
            await self._store.put_roll(self._name, self.token, plan, rolled_next=rolled_next(plan))
        except Fenced as error:
            if error.newest >= self.token:
                raise
            term = await self._store.take_roll(self._name, seen=self.token)
            if not term.mine:
                raise
            self.token = term.leader.token
            await self._store.put_roll(self._name, self.token, plan, rolled_next=rolled_next(plan))

    async def look(self) -> RollSeen:
        """The fleet now."""
        store = self._store
        routers = await store.hear_routers()
        health = await self._look_at_health([heard.router for heard in routers])
        return seen_of(
            await store.hear_sfus(),
            routers,
            await store.read_drain_reports(REPORTS_LOOKED_AT),
            failed=health.failed,
            freezes=health.freezes,
        )

    async def _look_at_health(self, routers: list[RouterRecord]) -> RouterHealth:
        token = reader_token(self._secret) if self._secret else ""
        exported = await asyncio.gather(*(_metrics(self._session, each.http, token) for each in routers))
        added = RouterHealth()
        for router, text in zip(routers, exported, strict=True):
            if text is not None:
                now = read_health(text)
                more = grown(self._health.get(router.router), now)
                self._health[router.router] = now
                added = RouterHealth(added.failed + more.failed, added.freezes + more.freezes)
        return added

    def _begin(self, plan: RollRecord) -> None:
        wanted = machine.acts(plan)
        for act in wanted:
            if act not in self._acts:
                self._acts[act] = asyncio.create_task(self._do(plan, act))
        for act in [act for act, task in self._acts.items() if act not in wanted and task.done()]:
            del self._acts[act]

    def _collect(self, plan: RollRecord, now: float) -> RollRecord:
        for act, task in self._acts.items():
            if not task.done():
                continue
            error = task.exception()
            if error is None:
                plan = machine.done(plan, act, now=now)
            elif isinstance(error, Refused | NotApplied):
                plan = machine.failed(plan, act, error.sentence())
            elif not isinstance(error, StoreUnavailable):
                raise error
        lost = [act for act, task in self._acts.items() if task.done() and task.exception() is not None]
        for act in lost:
            del self._acts[act]
        return plan

    async def _do(self, plan: RollRecord, act: machine.RollAct) -> None:
        match act:
            case machine.StartSfu():
                await self._platform.start(act.sfu, plan.version)
            case machine.StopSfu():
                await self._platform.stop(act.sfu)
            case machine.RestartRouter():
                await self._platform.restart(act.router, plan.version)
            case machine.DrainSfu():
                reason = f"roll {plan.roll} to {plan.version}"
                await command(self._store, CommandVerb.DRAIN, act.sfu, reason=reason)

    async def _cancel(self) -> None:
        for task in self._acts.values():
            task.cancel()
        await asyncio.gather(*self._acts.values(), return_exceptions=True)


async def _metrics(session: aiohttp.ClientSession, http: str, token: str) -> str | None:
    """What a router exports; None when it does not answer."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    try:
        async with session.get(f"{http}/metrics", headers=headers, timeout=aiohttp.ClientTimeout(total=2.0)) as answer:
            return await answer.text() if answer.status == 200 else None
    except (aiohttp.ClientError, TimeoutError, ValueError):
        return None
