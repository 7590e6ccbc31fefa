"""`sluice drain --watch` without a terminal: a file gets one line for each event."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from cli.drain import drain
from operators.config import Where
from shared.records import Drain, DrainReport, SfuState
from shared.store.store import Store

ONLINE = SfuState(address="ws://a", sfu="a", incarnation=1, revision=1)


async def obey(store: Store) -> None:
    """An SFU that follows the command, is seen doing so, and ends."""
    while not (given := await store.read_commands(["a"])):  # noqa: ASYNC110 - another program can't set an event here
        await asyncio.sleep(0.02)
    told = Drain(command=given[0].command, by="[JIRA-1]")
    await store.put_sfu(msgspec.structs.replace(ONLINE, revision=2, status="CORDONED", drain=told))
    await asyncio.sleep(1.0)
    await store.push_drain_report(DrainReport(sfu="a", outcome="empty"))
    await store.remove_sfu("a", incarnation=1)


async def test_the_end_stands_on_a_line_of_its_own(
    redis_url: str, fleet: str, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(redis_url, fleet=fleet)
    await store.put_sfu(ONLINE)
    obedient = asyncio.create_task(obey(store))
    await drain("a", where=Where(redis=redis_url, fleet=fleet), watch=True, yes=True)
    await obedient
    await store.close()
    assert "a has ended" in capsys.readouterr().out.splitlines()
