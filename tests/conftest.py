"""Tiers, lanes and the closing lines of a run, and fixtures that tests of several packages share."""

from __future__ import annotations

import asyncio
import gc
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from shared.embedded import EmbeddedRedis
from tests.budget import register_profiles
from tests.fakes.needed import left_out
from tests.tiers import Lanes, add_marks

register_profiles()


def pytest_configure() -> None:
    """Collect no garbage while thousands of tests are collected, and never look at those again: a tenth of the CPU."""
    gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    add_marks(items)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Lanes:
    return Lanes(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if line := left_out(str(report.longrepr[2]) for report in skipped):
        terminalreporter.write_line(line, yellow=True)


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
