"""`player.join`: a room for as long as an `async with` lasts."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from player.core.claims import names_in
from player.core.events import PlayerEvent
from player.core.rules import Rule, safe_to_move
from player.shell.me import Me
from player.shell.watcher import ParticipantPlan
from shared.errors import BadSetting
from shared.records import Presence, PublicationRecord

CLIENT = "sluice-player/1"
JOIN_S = 15.0
SPREAD_S = 1.5
"""Within this time, at random, a move begins that nothing forces: a room does not move in one instant."""
AT_DESK = Presence()


def everything(record: PublicationRecord) -> bool:
    """Take all publications of the room."""
    return True


def nothing(record: PublicationRecord) -> bool:
    """Take none: a player that only publishes."""
    return False


@asynccontextmanager
async def join(
    url: str | Sequence[str],
    token: str | Callable[[], str],
    *,
    presence: Presence = AT_DESK,
    rule: Rule = safe_to_move,
    takes: Callable[[PublicationRecord], bool] = everything,
    on_event: Callable[[PlayerEvent], None] | None = None,
    client: str = CLIENT,
    spread_s: float = SPREAD_S,
    timeout_s: float = JOIN_S,
) -> AsyncIterator[Me]:
    """Join the room that the token names, and leave it at the end of the `async with`.

    `url`: a router's websocket URL, or several, of which any will do. `token`: a player token, or a function that makes
    one, which is better for a long session: it is asked again when a session can't be resumed. `takes` says which
    publications of others to subscribe to. `on_event` hears everything from the first event on.

    Raises `BadSetting` for a URL and `BadToken` for a token that is none, `JoinFailed` when no router has let us in
    within `timeout_s`.
    """
    me = _make(url, token, presence=presence, rule=rule, takes=takes, client=client, spread_s=spread_s)
    if on_event is not None:
        me.on_event(on_event)
    try:
        await me.begin(timeout_s)
        yield me
    finally:
        await me.leave()


def _make(
    url: str | Sequence[str],
    token: str | Callable[[], str],
    *,
    presence: Presence,
    rule: Rule,
    takes: Callable[[PublicationRecord], bool],
    client: str,
    spread_s: float,
) -> Me:
    urls = (url,) if isinstance(url, str) else tuple(url)
    if not urls or not all(each.startswith(("ws://", "wss://")) for each in urls):
        raise BadSetting(setting="url", detail="name a router or several, such as ws://127.0.0.1:7000")
    fresh = token if callable(token) else lambda: token
    identity, room = names_in(fresh())
    plan = ParticipantPlan(
        identity=identity,
        room=room,
        routers=urls,
        token=fresh,
        client=client,
        presence=presence,
        spread_s=spread_s,
        takes=takes,
    )
    return Me(plan, rule=rule, rng=random.Random())
