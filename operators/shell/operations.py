"""Operators' commands on a running fleet: through Redis, and done only when the fleet's state says so."""

from __future__ import annotations

import asyncio
import getpass
import socket
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

import aiohttp

from operators.core.fleet_view import FleetView, fleet_view
from operators.core.orders import CommandAnswer, progress, why_not
from operators.errors import NotApplied
from operators.shell.target import Target
from shared.errors import Refused
from shared.http_client import get_json
from shared.messages.codes import Refusal
from shared.records import CommandVerb, ExitOrder, ExitScope, SfuState, sfu_id
from shared.store.answers import HeardSfu, Wake, WakeKind
from shared.store.store import Store
from shared.store.there import find_redis
from shared.tokens import MAX_NAME, OperatorClaims, issue

APPLIED_WITHIN_S = 10.0
"""A command passes one sync interval (1 s), one message to the SFU and one back; ten times that is a fault."""
LOOK_EVERY_S = 0.1
READER_TTL_S = 60.0
"""Of a token that is used at once."""


@asynccontextmanager
async def open_store(target: Target) -> AsyncIterator[Store]:
    """The fleet's store. Raises `NoRedis` at once when Redis does not answer."""
    store = Store(target.redis, fleet=target.fleet)
    try:
        await find_redis(store)
        yield store
    finally:
        await store.close()


def operator() -> str:
    """Who gives a command: user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container's user id may have no name
        user = "operator"
    return f"{user}@{socket.gethostname()}"


async def view(store: Store, fleet: str) -> FleetView:
    """The fleet as Redis tells it."""
    return fleet_view(fleet, sfus=await store.hear_sfus(), routers=await store.hear_routers())


async def heard_of(store: Store, sfu: str) -> HeardSfu | None:
    """One SFU's newest state in Redis and its age; None when it has no record."""
    return next((heard for heard in await store.hear_sfus() if sfu_id(heard.state) == sfu), None)


async def known_state(store: Store, sfu: str) -> SfuState:
    """One SFU's state. Raises `Refused` with the known ids when this is not one of them."""
    states = await store.read_sfus()
    for state in states:
        if sfu_id(state) == sfu:
            return state
    known = ", ".join(sorted(sfu_id(state) for state in states)) or "none at all"
    raise Refused(Refusal.UNKNOWN_SFU, f"{sfu!r}; the fleet has {known}")


async def command(
    store: Store,
    verb: CommandVerb,
    sfu: str,
    *,
    reason: str = "",
    wait: bool = True,
    within_s: float = APPLIED_WITHIN_S,
) -> None:
    """Give an SFU a command and wait until it has followed.

    Raises `Refused` for an unknown SFU and for an uncordon that can't be, `NotApplied` when nothing happens in time.
    """
    await _check(store, verb, sfu)
    await store.command_sfu(verb, sfu, operator(), reason)
    await store.wake(Wake(WakeKind.COMMAND, sfu))
    deadline = time.monotonic() + within_s
    while wait:
        if await _check(store, verb, sfu):
            return
        if time.monotonic() > deadline:
            raise NotApplied(command=f"{verb} of {sfu}", waited_s=within_s, fix=why_not(await heard_of(store, sfu)))
        await asyncio.sleep(LOOK_EVERY_S)


async def _check(store: Store, verb: CommandVerb, sfu: str) -> bool:
    # A drained SFU may be gone before we look again; one that was never there is a typo.
    heard = await heard_of(store, sfu)
    state = heard.state if heard else None
    if state is None and verb is not CommandVerb.DRAIN:
        await known_state(store, sfu)
    now = progress(verb, state)
    if now.answer is CommandAnswer.REFUSED:
        raise Refused("not-possible", f"{sfu} can't be uncordoned: {now.detail}")
    return now.answer is CommandAnswer.DONE


async def order_exit(store: Store, scope: ExitScope, target: str) -> ExitOrder:
    """Order a forced exit, dated by Redis' clock."""
    order = await store.order_exit(scope, target, operator())
    await store.wake(Wake(WakeKind.EXIT))
    return order


async def wait_gone(store: Store, sfus: Sequence[str], *, within_s: float) -> None:
    """Wait until none of these SFUs has a record. Raises `NotApplied` with those that have."""
    deadline = time.monotonic() + within_s
    while True:
        left = sorted(set(sfus) & {sfu_id(state) for state in await store.read_sfus()})
        if not left:
            return
        if time.monotonic() > deadline:
            fix = "its final sequence takes up to 10 s; look at its log"
            raise NotApplied(command=f"exit of {', '.join(left)}", waited_s=within_s, fix=fix)
        await asyncio.sleep(LOOK_EVERY_S)


def reader_token(secret: str) -> str:
    """A token for routers that answer operators only."""
    return issue(OperatorClaims(operator=operator()[:MAX_NAME]), secret=secret, now_at=time.time(), ttl_s=READER_TTL_S)


async def players_on(
    store: Store, session: aiohttp.ClientSession, sfu: str, *, secret: str = ""
) -> list[dict[str, Any]] | None:
    """The players that publish to an SFU and what their rules said, over all routers; None when no router answers, or
    none without the fleet's secret."""
    token = reader_token(secret) if secret else ""
    urls = [f"{router.http}/api/sfus/{quote(sfu, safe='')}/players" for router in await store.read_routers()]
    answers = await asyncio.gather(*(get_json(session, url, token=token) for url in urls))
    known = [answer["players"] for answer in answers if answer is not None]
    return sorted((player for players in known for player in players), key=_by_room) if known else None


def _by_room(player: dict[str, Any]) -> tuple[str, str]:
    return (str(player.get("room")), str(player.get("identity")))
