"""Hints by pub/sub that something changed, and the supervised subscriber that never misses that it missed some."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from redis.asyncio.client import PubSub
from redis.exceptions import RedisClusterException, RedisError

from shared.jitter import full_jitter
from shared.store.answers import Gap, Wake, WakeKind
from shared.store.calls import Calls, text
from shared.store.connect import connect_subscriber

PING_EVERY_S = 5.0
"""A silent subscription is asked for a sign of life this often; without one until the next it is given up."""
BACKOFF_MIN_S = 0.2
BACKOFF_MAX_S = 5.0
MAX_HINT = 1024
"""Longest hint that is read [bytes]."""


def write_hint(hint: Wake) -> str:
    """A hint as it is published."""
    return f"{hint.kind.value} {hint.target}" if hint.target else hint.kind.value


def read_hint(raw: bytes) -> Wake | None:
    """The hint in a message; None when it is none of this version's."""
    if len(raw) > MAX_HINT:
        return None
    try:
        kind, _, target = raw.decode().partition(" ")
        return Wake(WakeKind(kind), target)
    except ValueError:
        return None


class Wakes(Calls):
    """Publishes and receives hints."""

    ping_every_s = PING_EVERY_S

    async def wake(self, hint: Wake) -> None:
        """Hint to every router that something changed."""
        await self._send("wake", "PUBLISH", self.keys.wake, write_hint(hint))

    async def wakes(self, *, rng: random.Random) -> AsyncGenerator[Wake | Gap, None]:
        """Hints for ever, with a `Gap` at first and each time some may have been lost. Ends only by cancellation.

        `rng` spreads attempts to subscribe again.
        """
        attempt = 0
        while True:
            try:
                async with aclosing(self._subscription()) as hints:
                    async for hint in hints:
                        attempt = 0
                        yield hint
            except (RedisError, RedisClusterException, OSError, TimeoutError, EOFError, RuntimeError) as error:
                self._limited.warning("store", f"subscription lost: {error}")
            self.counts["resubscribed"] += 1
            await asyncio.sleep(full_jitter(attempt, rng, first_s=BACKOFF_MIN_S, cap_s=BACKOFF_MAX_S))
            attempt += 1

    async def _subscription(self) -> AsyncGenerator[Wake | Gap, None]:
        """One subscription on a connection of its own, until it fails."""
        client = connect_subscriber(self.url, timeout_s=self.timeout_s)
        pubsub = client.pubsub()
        try:
            async with asyncio.timeout(2 * self.timeout_s):
                await pubsub.subscribe(self.keys.wake)
            async for message in self._messages(pubsub):
                # A second confirmation means that the client has reconnected on its own.
                if message["type"] == "subscribe":
                    yield Gap()
                elif message["type"] == "message":
                    hint = read_hint(message["data"])
                    if hint is None:
                        self.counts["bad-hint"] += 1
                        self._limited.warning("bad-hint", f"a hint can't be read: {text(message['data'][:64])!r}")
                    else:
                        yield hint
        finally:
            await pubsub.aclose()  # type: ignore[no-untyped-call]
            await client.aclose()

    async def _messages(self, pubsub: PubSub) -> AsyncGenerator[dict[str, Any], None]:
        """What arrives; raises `TimeoutError` when the server no longer answers pings.

        redis-py's own `listen` waits for ever on a connection whose other end has vanished (row 33).
        """
        while True:
            message = await pubsub.get_message(timeout=self.ping_every_s)
            if message is None:
                await pubsub.ping()
                message = await pubsub.get_message(timeout=self.ping_every_s)
            if message is None:
                raise TimeoutError(f"no sign of life for {2 * self.ping_every_s:g} s")
            yield message
