"""Players without media for a demo fleet: they join rooms, leave, hear of cordons, and say why they stay or move."""

from __future__ import annotations

import asyncio
import contextlib
import random
import secrets
import time

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from shared.errors import BadInput
from shared.messages import player as p
from shared.messages.base import encode
from shared.records import Presence
from shared.tokens import PlayerClaims, issue

NAMES = (
    "Ada",
    "Grace",
    "Edsger",
    "Barbara",
    "Alan",
    "Radia",
    "Donald",
    "Hedy",
    "Claude",
    "Margaret",
    "Tim",
    "Katherine",
)
ROOMS = ("standup", "design", "support", "kitchen", "all-hands", "pairing", "retro", "interview", "hallway", "library")
REASONS = ("in a conversation", "away from the desk", "in an ambient meeting", "presenting")
MOVES_AT_ONCE = 0.4
STAYS_S = 90.0
"""Mean time for which a player that stays goes on staying."""
VISIT_S = 240.0
"""Mean time between joining and leaving."""
AGAIN_S = 5.0


class DemoPlayers:
    """`run` until it is cancelled: so many players at all times, coming and going."""

    def __init__(self, *, ws: str, secret: str, players: int, rng: random.Random) -> None:
        self._ws = f"{ws}/player"
        self._secret = secret
        self._players = players
        self._rng = rng

    async def run(self) -> None:
        """Everybody lives here."""
        async with asyncio.TaskGroup() as group:
            for number in range(self._players):
                group.create_task(self._lives(number))

    async def _lives(self, number: int) -> None:
        await asyncio.sleep(self._rng.uniform(0, 10))
        while True:
            try:
                await self._visit(number)
            except* (OSError, TimeoutError, ConnectionClosed, InvalidHandshake, BadInput):
                pass  # the router was busy or is going; the next visit finds out
            await asyncio.sleep(self._rng.expovariate(1 / AGAIN_S))

    async def _visit(self, number: int) -> None:
        name = f"{NAMES[number % len(NAMES)]} {number // len(NAMES) + 1}"
        room = f"{self._rng.choice(ROOMS)}-{self._rng.randint(1, max(1, self._players // 40))}"
        claims = PlayerClaims(room=room, identity=f"demo-{number}", name=name)
        token = issue(claims, secret=self._secret, now_at=time.time(), ttl_s=3600.0)
        async with connect(self._ws, compression=None, ping_interval=None, proxy=None) as connection:
            await connection.send(encode(p.Join(token=token, presence=Presence(), client="sluice-demo/1")))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._rng.expovariate(1 / VISIT_S) + 20), asyncio.TaskGroup() as group:
                    await self._listen(connection, group)
            await connection.send(encode(p.Leave()))

    async def _listen(self, connection: ClientConnection, group: asyncio.TaskGroup) -> None:
        home = ""
        async for frame in connection:
            message = p.to_player.read(frame)
            if isinstance(message, p.Welcome) and message.assignment is not None:
                home = message.assignment.sfu
                for cordoned in message.cordoned:
                    group.create_task(self._decide(connection, cordoned, home))
            elif isinstance(message, p.CordonedSfu):
                group.create_task(self._decide(connection, message, home))
            elif isinstance(message, p.AssignedSfu):
                await connection.send(encode(p.Moved(sfu=message.sfu, left=home, took_ms=180.0)))
                home = message.sfu
            elif isinstance(message, p.SfuGone) and message.sfu == home:
                await connection.send(encode(p.RequestSfu(request=secrets.token_hex(4), leave=home, reason="lost")))

    async def _decide(self, connection: ClientConnection, cordoned: p.CordonedSfu, home: str) -> None:
        if cordoned.sfu != home:
            return
        with contextlib.suppress(ConnectionClosed):
            if self._rng.random() > MOVES_AT_ONCE:
                why = self._rng.choice(REASONS)
                await connection.send(encode(p.Decided(sfu=home, move=False, reason=why)))
                await asyncio.sleep(self._rng.expovariate(1 / STAYS_S))
            await connection.send(
                encode(
                    p.RequestSfu(
                        request=secrets.token_hex(4),
                        leave=home,
                        incarnation=cordoned.incarnation,
                        revision=cordoned.revision,
                        reason="cordoned",
                    )
                )
            )
