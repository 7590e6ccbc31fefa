"""A router in this process, on a store in memory, for the tests of its shell."""

from __future__ import annotations

import random
import time
from collections.abc import AsyncIterator
from dataclasses import fields
from typing import Any

import pytest

from router.config import RouterConfig
from router.core.selector.node_selector import NodeSelector
from router.shell.router import Router
from tests.fakes.store import FakeStore
from tests.router.actors import SECRET, Sfu

_SELECTOR = {each.name for each in fields(NodeSelector)}


def config(**settings: Any) -> RouterConfig:
    """Settings for a test: any port, a quick exchange, small bounds."""
    quick: dict[str, Any] = {
        "router": "r1",
        "ws_port": 0,
        "http_port": 0,
        "secret": SECRET,
        "sync_interval_s": 0.1,
        "send_buffer_kib": 64,
        "closing_spread_s": 0.0,
        "max_players": 40,
        "dev_tokens": True,
        "api_open": True,
    }
    chosen_by = {name: settings.pop(name) for name in _SELECTOR & set(settings)}
    return RouterConfig(selector=NodeSelector(**chosen_by), **(quick | settings)).check()


@pytest.fixture
async def store() -> FakeStore:
    return FakeStore(clock=time.time)


@pytest.fixture
async def router(store: FakeStore) -> AsyncIterator[Router]:
    running = Router(config(), store, rng=random.Random(1))
    await running.start()
    yield running
    assert running.failed() is None, "a loop of the router has ended"
    await running.stop()


@pytest.fixture
async def sfu(router: Router) -> AsyncIterator[Sfu]:
    """An SFU linked to it."""
    running = await Sfu("s1", [router.state.announced_ws]).start()
    yield running
    await running.stop()
