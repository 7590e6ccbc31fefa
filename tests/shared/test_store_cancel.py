"""A call to Redis ends when its task is cancelled, even where the client lets the cancellation go by."""

from __future__ import annotations

import asyncio

import pytest

from shared.store.store import Store


class Swallowing:
    """A client that takes a cancellation for the end of its own zero time-out, and answers."""

    def __init__(self) -> None:
        self.called = asyncio.Event()

    async def execute_command(self, *command: object) -> int:
        self.called.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return 1
        raise AssertionError("that event is never set")

    async def aclose(self) -> None:
        """Nothing is open."""


async def test_a_cancellation_that_the_client_swallows_ends_the_call_all_the_same() -> None:
    store = Store("redis://127.0.0.1:1", timeout_s=30.0)
    client = store._client = Swallowing()  # type: ignore[assignment]
    call = asyncio.create_task(store.ping())
    await client.called.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await store.close()
