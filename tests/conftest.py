"""Fixtures that tests of several packages share."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator

import pytest

from shared.embedded import EmbeddedRedis


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """An embedded server for the whole session. Tests keep apart by random fleet names: see `fleet`."""
    server = EmbeddedRedis()
    asyncio.run(server.start())
    yield server.url
    asyncio.run(server.stop())


@pytest.fixture
def fleet() -> str:
    """The name of a fleet that no other test uses."""
    return f"test-{secrets.token_hex(6)}"
