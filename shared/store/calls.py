"""One call to Redis: bounded in time and number, with `StoreUnavailable` as the only way to fail."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

from redis.exceptions import (
    AuthenticationError,
    BusyLoadingError,
    MasterDownError,
    NoScriptError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
    ResponseError,
)

from shared.errors import BadRecord, StoreUnavailable
from shared.keys import Keys
from shared.logs import OncePerMinute
from shared.records import Record, read_record
from shared.store.connect import TIMEOUT_S, connect, drop_idle
from shared.store.scripts import script

R = TypeVar("R", bound=Record)
Argument = str | bytes | int | float

MAX_IN_FLIGHT = 32
"""Calls at a time, and so connections: a burst waits here rather than at Redis."""

log = logging.getLogger("store")


DEMOTED = (ReadOnlyError, MasterDownError, BusyLoadingError)
"""Answers of a server that was the master and is a replica, or is not ready: its connections stay open for ever, and
the master is elsewhere, perhaps behind the same address."""


class WrongType(StoreUnavailable):
    """A key of ours holds another type of value. Only the record concerned is out of reach; the store is fine."""


class Calls:
    """The connection that the parts of the store share."""

    def __init__(self, url: str, *, fleet: str = "sluice", timeout_s: float = TIMEOUT_S) -> None:
        """`url` as in `shared.store.connect`; raises `BadSetting`. `timeout_s` bounds each call [seconds]."""
        self.keys = Keys(fleet)
        self.url = url
        self.timeout_s = timeout_s
        self.counts: Counter[str] = Counter()
        """What went wrong so far, by kind: `bad-record`, `bad-hint`, `unavailable`, `resubscribed`, `demoted`."""
        self._client = connect(url, timeout_s=timeout_s)
        self._slots = asyncio.Semaphore(MAX_IN_FLIGHT)
        self._healthy = False
        self._limited = OncePerMinute(log, clock=time.monotonic)

    @property
    def healthy(self) -> bool:
        """Whether the last call reached the store; False until one has."""
        return self._healthy

    async def close(self) -> None:
        """Close all connections; the store can't be used afterwards."""
        await self._client.aclose()

    async def _run(self, name: str, keys: Sequence[str], *args: Argument) -> Any:
        """The answer of a script. Raises `StoreUnavailable`."""
        body = script(name)
        try:
            return await self._send(name, "EVALSHA", body.sha, len(keys), *keys, *args)
        except NoScriptError:
            # The server has restarted, failed over or flushed its scripts; EVAL caches the script again.
            return await self._send(name, "EVAL", body.body, len(keys), *keys, *args)

    async def _send(self, operation: str, *command: Argument) -> Any:
        try:
            async with asyncio.timeout(self.timeout_s), self._slots:
                answer = await self._client.execute_command(*command)
        except NoScriptError:
            raise
        except ResponseError as error:
            if "WRONGTYPE" in str(error):
                self._note_bad(BadRecord(key=operation, detail="a key holds another type of value"))
                raise WrongType(operation=operation, detail="a key holds another type of value") from error
            await self._leave_if_demoted(error)
            raise self._unavailable(operation, error) from error
        # uvloop answers a write on a transport that has just been closed with RuntimeError.
        except (RedisError, RedisClusterException, OSError, TimeoutError, EOFError, RuntimeError) as error:
            await self._leave_if_demoted(error)
            raise self._unavailable(operation, error) from error
        self._healthy = True
        # The client's own look for stale data runs under a zero time-out, which can eat a cancellation of ours.
        if (task := asyncio.current_task()) is not None and task.cancelling():
            raise asyncio.CancelledError
        return answer

    async def _leave_if_demoted(self, error: Exception) -> None:
        """What answers is no master now: ask the address, or Sentinel, again where the master is."""
        if not isinstance(error, DEMOTED) and "READONLY" not in str(error):
            return
        try:
            async with asyncio.timeout(self.timeout_s):
                await drop_idle(self._client)
        except (RedisError, OSError, TimeoutError, RuntimeError) as error:
            self._limited.warning("store-drop", f"connections to Redis could not be closed: {error}")
        self.counts["demoted"] += 1

    def _unavailable(self, operation: str, error: Exception) -> StoreUnavailable:
        self._healthy = False
        self.counts["unavailable"] += 1
        detail = f"no answer within {self.timeout_s:g} s" if isinstance(error, TimeoutError) else str(error)
        if isinstance(error, AuthenticationError):
            detail = "the password is wrong or missing"
        trouble = StoreUnavailable(operation=operation, detail=detail[:200] or type(error).__name__)
        self._limited.warning("store", str(trouble))
        return trouble

    def _record(self, kind: type[R], raw: bytes, key: str) -> R | None:
        """The record in `raw`, or None when it can't be read; then it was counted, and logged once a minute."""
        try:
            return read_record(kind, raw, key=key)
        except BadRecord as error:
            self._note_bad(error)
            return None

    def _note_bad(self, error: BadRecord) -> None:
        self.counts["bad-record"] += 1
        self._limited.warning("bad-record", str(error))

    async def now(self) -> float:
        """The Redis server's clock [Unix seconds]."""
        return float(await self._run("now", [self.keys.sfus]))

    async def ping(self) -> None:
        """Return when the store answers; raises `StoreUnavailable` when it doesn't."""
        await self._send("ping", "EXISTS", self.keys.sfus)


def text(raw: bytes) -> str:
    """A key's part or a field's name as text; bytes that are no UTF-8 are replaced, so nothing raises."""
    return raw.decode(errors="replace")
