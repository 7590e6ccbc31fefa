"""Readings of the store for the API: one for all who ask, few at a time, failures shared and not kept."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from router.shell import readings as readings_module
from router.shell.readings import AT_ONCE, FRESH_FOR_S, Readings
from router.shell.router import Router
from shared.errors import StoreUnavailable
from tests.fakes.store import FakeStore


class Source:
    """A slow store, and a clock that is turned by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.reads: list[str] = []
        self.under_way = self.most = 0
        self.go = asyncio.Event()
        self.failure: StoreUnavailable | None = None
        self.readings = Readings(self.read, clock=lambda: self.now, gate=asyncio.Semaphore(AT_ONCE))

    async def read(self, key: str) -> str:
        self.reads.append(key)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.go.wait()
        finally:
            self.under_way -= 1
        if self.failure is not None:
            raise self.failure
        return f"{key} at {self.now}"


@pytest.fixture
async def source() -> Source:
    return Source()


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_all_who_ask_within_half_a_second_share_one_reading(source: Source) -> None:
    waiting = [asyncio.create_task(source.readings.of("a")) for _ in range(50)]
    await settled()
    source.go.set()
    assert set(await asyncio.gather(*waiting)) == {"a at 100.0"}
    source.now += FRESH_FOR_S * 0.9
    assert await source.readings.of("a") == "a at 100.0"
    assert source.reads == ["a"]
    source.now += FRESH_FOR_S
    await source.readings.of("a")
    assert source.reads == ["a", "a"]


async def test_two_are_read_at_a_time_and_too_many_questions_are_refused(
    source: Source, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readings_module, "MOST_WAITING", 5)
    waiting = [asyncio.create_task(source.readings.of(f"room-{n}")) for n in range(5)]
    await settled()
    with pytest.raises(StoreUnavailable):
        await source.readings.of("one more")
    assert len(source.reads) == AT_ONCE
    source.go.set()
    await asyncio.gather(*waiting)
    assert (source.most, len(source.reads)) == (AT_ONCE, 5)


async def test_a_failure_is_shared_by_those_who_wait_and_forgotten(source: Source) -> None:
    source.failure = StoreUnavailable(operation="read", detail="away")
    waiting = [asyncio.create_task(source.readings.of("a")) for _ in range(3)]
    await settled()
    source.go.set()
    assert all(isinstance(each, StoreUnavailable) for each in await asyncio.gather(*waiting, return_exceptions=True))
    source.failure = None
    assert await source.readings.of("a") == "a at 100.0"


async def test_a_caller_that_gives_up_leaves_the_reading_to_the_others(source: Source) -> None:
    impatient, patient = (asyncio.create_task(source.readings.of("a")) for _ in range(2))
    await settled()
    impatient.cancel()
    source.go.set()
    assert await patient == "a at 100.0"
    assert source.reads == ["a"]


async def test_answers_kept_are_bounded(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readings_module, "MOST_KEPT", 2)
    source.go.set()
    for key in ("a", "b", "c", "a"):
        await source.readings.of(key)
    assert source.reads == ["a", "b", "c", "a"]


@pytest.mark.parametrize("path", ["/api/placements?last=40", "/api/placements?room=r", "/api/scaling", "/api/drains"])
async def test_many_pages_cost_the_store_one_reading(
    router: Router, store: FakeStore, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    frozen = router.state.mono() + 10
    router.state.mono = lambda: frozen
    reads: list[str] = []
    for name in ("read_placements", "read_scaling", "read_drain_reports"):
        monkeypatch.setattr(store, name, _counted(getattr(store, name), reads))
    async with aiohttp.ClientSession(router.state.announced_http) as http:

        async def ask() -> int:
            async with http.get(path) as answer:
                return answer.status

        assert set(await asyncio.gather(*(ask() for _ in range(20)))) == {200}
        assert await ask() == 200
    assert len(reads) == 1


def _counted(read, reads):  # type: ignore[no-untyped-def]
    async def counted(*args, **kwargs):  # type: ignore[no-untyped-def]
        reads.append(read.__name__)
        return await read(*args, **kwargs)

    return counted
