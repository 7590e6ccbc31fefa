"""Thousands of players without media, to measure how soon all of them hear of a cordon (`sluice bench notify`)."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from player.shell.router_connection import player_url
from shared.errors import BadInput, SluiceError
from shared.messages import player as p
from shared.messages.base import encode
from shared.records import Presence
from shared.tokens import PlayerClaims, issue

OPEN_S = 20.0
"""For the websocket and the welcome: a router that is being filled answers late."""
CONNECTING = 64
"""Players that join at the same time."""
TRIES = 3
CORDONED = '"type":"cordoned-sfu"'
"""Looked for before a frame is read as JSON: all players hear it at once, and reading would make the last seem late."""


class SwarmFailed(SluiceError):
    """Players could not join."""

    code = "swarm-failed"

    def __init__(self, detail: str) -> None:
        super().__init__()
        self.detail = detail

    def sentence(self) -> str:
        return f"the swarm is not complete: {self.detail}"


class _Timed(ClientConnection):
    """Notes when data came in, and leaves the reading of it for later: when ten thousand players are told at once, the
    time one process takes to parse their frames would be counted as the router's."""

    arrived = 0.0
    """Latest arrival [monotonic seconds]."""

    def data_received(self, data: bytes) -> None:
        self.arrived = time.monotonic()
        self.loop.call_soon(super().data_received, data)


@dataclass(slots=True)
class _Idle:
    """One player."""

    identity: str
    connection: _Timed | None = None
    sfu: str = ""
    told: dict[str, float] = field(default_factory=dict)
    """When it heard of each cordoned SFU [monotonic seconds]."""


class IdleSwarm:
    """Players in rooms of ten, or in `rooms` rooms, over `routers`. `fill` joins them, `close` ends them.

    Each keeps its websocket open, answers pings, and does nothing else: it neither moves nor comes back.
    """

    def __init__(
        self,
        *,
        routers: Sequence[str],
        secret: str,
        players: int,
        rooms: int | None = None,
        joins_per_s: float = 1000.0,
        room: str = "idle",
        seed: int = 1,
    ) -> None:
        self._urls = [player_url(url) for url in routers]
        self._secret = secret
        self._players = [_Idle(f"idle-{number}") for number in range(players)]
        self._rooms = [f"{room}-{number + 1}" for number in range(rooms or max(1, players // 10))]
        self._joins_per_s = joins_per_s
        self._rng = random.Random(seed)
        self._readers: set[asyncio.Task[None]] = set()
        self._lost = 0
        self._counts: Counter[str] = Counter()
        self._heard = asyncio.Event()
        self._last_message = time.monotonic()

    async def fill(self, *, progress: Callable[[int], None] = lambda joined: None) -> None:
        """All players join, at a bounded rate. Raises `SwarmFailed` when one can't, even after some tries."""
        gate = asyncio.Semaphore(CONNECTING)
        began = time.monotonic()
        try:
            async with asyncio.TaskGroup() as group:
                for number, idle in enumerate(self._players):
                    await asyncio.sleep(max(0.0, began + number / self._joins_per_s - time.monotonic()))
                    await gate.acquire()
                    task = group.create_task(self._join(idle, number))
                    task.add_done_callback(lambda _: gate.release())
                    progress(number + 1)
        except* SwarmFailed as failures:
            raise SwarmFailed(str(failures.exceptions[0])) from None

    @property
    def connected(self) -> int:
        """Players whose websocket is open."""
        return sum(1 for idle in self._players if idle.connection is not None) - self._lost

    def on(self, sfu: str) -> int:
        """Players that were assigned to this SFU at their join."""
        return sum(1 for idle in self._players if idle.sfu == sfu)

    def told(self, sfu: str) -> list[float]:
        """When each player heard that this SFU is cordoned [monotonic seconds], in order of time."""
        return sorted(idle.told[sfu] for idle in self._players if sfu in idle.told)

    async def wait_quiet(self, *, for_s: float, within_s: float) -> bool:
        """Wait until no player has heard anything for `for_s`: the routers have told all players of the last joins."""
        deadline = time.monotonic() + within_s
        while (now := time.monotonic()) < deadline:
            if now - self._last_message >= for_s:
                return True
            await asyncio.sleep(for_s - (now - self._last_message))
        return False

    async def wait_told(self, sfu: str, *, count: int, within_s: float) -> list[float]:
        """The times once `count` players have heard, or those so far when the time is over."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                while self._counts[sfu] < count:
                    self._heard.clear()
                    await self._heard.wait()
        return self.told(sfu)

    async def close(self) -> None:
        """All players go, without a message."""
        for task in list(self._readers):
            task.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        for idle in self._players:
            if idle.connection is not None:
                idle.connection.transport.abort()

    async def _join(self, idle: _Idle, number: int) -> None:
        for attempt in range(1, TRIES + 1):
            try:
                async with asyncio.timeout(OPEN_S):
                    await self._try_to_join(idle, self._urls[number % len(self._urls)], number)
                    return
            except (OSError, TimeoutError, ConnectionClosed, InvalidHandshake, BadInput) as error:
                if attempt == TRIES:
                    raise SwarmFailed(f"{idle.identity}: {type(error).__name__}: {error}") from None
                await asyncio.sleep(self._rng.uniform(0.1, 1.0))

    async def _try_to_join(self, idle: _Idle, url: str, number: int) -> None:
        claims = PlayerClaims(room=self._rooms[number % len(self._rooms)], identity=idle.identity, publish=False)
        token = issue(claims, secret=self._secret, now_at=time.time(), ttl_s=600.0)
        connection = await connect(
            url,
            create_connection=_Timed,
            open_timeout=OPEN_S,
            ping_interval=None,
            compression=None,
            max_size=1 << 22,
            max_queue=4,
            proxy=None,
        )
        assert isinstance(connection, _Timed)
        await connection.send(encode(p.Join(token=token, presence=Presence(), client="sluice-idle/1")))
        welcome = p.to_player.read(await connection.recv())
        if not isinstance(welcome, p.Welcome):
            raise SwarmFailed(f"{idle.identity}: the router answered {type(welcome).__name__} to join")
        idle.connection = connection
        idle.sfu = welcome.assignment.sfu if welcome.assignment is not None else ""
        task = asyncio.create_task(self._listen(idle, connection))
        self._readers.add(task)
        task.add_done_callback(self._readers.discard)

    async def _listen(self, idle: _Idle, connection: _Timed) -> None:
        try:
            async for frame in connection:
                self._last_message = connection.arrived
                if CORDONED in str(frame):
                    message = p.to_player.read(frame)
                    if isinstance(message, p.CordonedSfu) and message.sfu not in idle.told:
                        idle.told[message.sfu] = connection.arrived
                        self._counts[message.sfu] += 1
                        self._heard.set()
        except (ConnectionClosed, BadInput):
            self._lost += 1
