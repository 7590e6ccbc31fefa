"""A router ends, whatever its loops are doing."""

from __future__ import annotations

import asyncio
import random

import pytest

from router.shell.router import Router
from shared.errors import StoreUnavailable
from tests.fakes.store import FakeStore
from tests.router.conftest import config


class Deaf(FakeStore):
    """Takes the first cancellation of a call for a time-out, as redis-py does now and then."""

    async def put_router(self, router: object) -> None:
        try:
            await asyncio.sleep(3600)
        except asyncio.CancelledError:
            raise StoreUnavailable(operation="put_router", detail="took a cancellation for a time-out") from None


@pytest.mark.process
async def test_a_loop_that_swallows_a_cancellation_is_cancelled_again() -> None:
    router = Router(config(), Deaf(clock=float), rng=random.Random(1))
    await router.start()
    async with asyncio.timeout(30):
        await router.stop()
