"""A store behind a bad network: calls and answers that are late, lost, doubled or out of order, as a test decides."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.fakes.store import FakeStore
from tests.fakes.store_core import StoreCore


@dataclass(frozen=True, slots=True)
class Call:
    """A call on its way to the store."""

    method: str
    args: tuple[Any, ...]
    reply: Callable[[Any], None] | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer on its way back; it tells what was true when the call arrived."""

    call: Call
    value: Any


class HostileCore:
    """One program's way to a `StoreCore`, for synchronous tests: nothing moves until the test moves it.

    `send` puts a call on its way. `arrive`, `lose_call` and `double` act on the call at an index, `answer` and
    `lose_answer` on the answer at one; any index is fine, it is taken modulo the length, so a test can draw numbers
    freely. Each returns False when there is nothing to act on.
    """

    def __init__(self, core: StoreCore) -> None:
        self.core = core
        self.calls: list[Call] = []
        self.answers: list[Answer] = []

    def send(self, method: str, *args: Any, reply: Callable[[Any], None] | None = None) -> None:
        """Put a call on its way; `reply` gets its answer, if and when the test delivers it."""
        self.calls.append(Call(method, args, reply))

    def arrive(self, index: int = 0) -> bool:
        """The call takes effect, and its answer is on its way."""
        if not self.calls:
            return False
        call = self.calls.pop(index % len(self.calls))
        self.answers.append(Answer(call, getattr(self.core, call.method)(*call.args)))
        return True

    def lose_call(self, index: int = 0) -> bool:
        """The call never arrives."""
        if not self.calls:
            return False
        self.calls.pop(index % len(self.calls))
        return True

    def double(self, index: int = 0) -> bool:
        """The call is on its way twice."""
        if not self.calls:
            return False
        self.calls.append(self.calls[index % len(self.calls)])
        return True

    def answer(self, index: int = 0) -> bool:
        """The answer reaches the program."""
        if not self.answers:
            return False
        answer = self.answers.pop(index % len(self.answers))
        if answer.call.reply is not None:
            answer.call.reply(answer.value)
        return True

    def lose_answer(self, index: int = 0) -> bool:
        """The answer is lost; the call took effect all the same."""
        if not self.answers:
            return False
        self.answers.pop(index % len(self.answers))
        return True

    def settle(self) -> None:
        """The network is good again: every call arrives and every answer comes back, in order."""
        while self.arrive() or self.answer():
            pass


class HostileStore(FakeStore):
    """A `FakeStore` with a seeded bad network in front, for stories with real tasks.

    A call is lost, or its answer is, with probability `loss` each: the caller gets `StoreUnavailable`. With probability
    `doubled` it takes effect once more, later. Delays are drawn up to `delay_s` each way and passed to `sleep`, so
    that calls overtake each other.
    """

    def __init__(
        self,
        core: StoreCore,
        *,
        rng: random.Random,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        loss: float = 0.1,
        doubled: float = 0.1,
        delay_s: float = 0.05,
    ) -> None:
        super().__init__(core=core)
        self.rng = rng
        self.loss = loss
        self.doubled = doubled
        self.delay_s = delay_s
        self._sleep = sleep
        self._late: set[asyncio.Task[None]] = set()

    async def _call(self, method: str, *args: Any) -> Any:
        lost, unanswered, again = (self.rng.random() < p for p in (self.loss, self.loss, self.doubled))
        await self._pause()
        if lost:
            raise self._unavailable(method)
        value = await super()._call(method, *args)
        if again:
            task = asyncio.create_task(self._once_more(method, args))
            self._late.add(task)
            task.add_done_callback(self._late.discard)
        await self._pause()
        if unanswered:
            raise self._unavailable(method)
        return value

    async def _once_more(self, method: str, args: tuple[Any, ...]) -> None:
        await self._pause()
        getattr(self.core, method)(*args)

    async def _pause(self) -> None:
        await self._sleep(self.rng.uniform(0, self.delay_s))

    async def close(self) -> None:
        """Drop what is still on its way."""
        for task in self._late:
            task.cancel()
        await asyncio.gather(*self._late, return_exceptions=True)
