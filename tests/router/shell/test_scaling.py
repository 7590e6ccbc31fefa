"""`/api/scaling`: what the autoscaler has decided, with every field, and nothing that depends on a controller."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from router.shell.router import Router
from shared.scaling_records import Launching, ScalingFigures, ScalingRecord, ScalingState
from shared.store.answers import Leader, Scaling
from tests.fakes.store import FakeStore


@pytest.fixture
async def http(router: Router) -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(router.state.announced_http) as session:
        yield session


def store_of(router: Router) -> FakeStore:
    assert isinstance(router.state.store, FakeStore)
    return router.state.store


async def test_leader_state_and_records_are_told_with_their_defaults(
    router: Router, http: aiohttp.ClientSession
) -> None:
    records = tuple(ScalingRecord(id=id_, action="held", reason="cooldown") for id_ in (3, 2, 1))
    state = ScalingState(launch=Launching(request="r"), hits=(True, False), extra={"newer": 1})
    store_of(router).core.scaling = Scaling(Leader("ann", 7, 4.5), state, records)
    async with http.get("/api/scaling?last=2") as answer:
        body = await answer.json()
    assert body["leader"] == {"controller": "ann", "token": 7, "left_s": 4.5}
    assert body["state"]["hits"] == [True, False]
    assert body["state"]["launch"]["stages"] == []
    assert "extra" not in body["state"]
    assert [record["id"] for record in body["records"]] == [3, 2]
    assert set(body["records"][0]["figures"]) == set(ScalingFigures.__struct_fields__)
    assert body["records"][0]["figures"]["mean_load"] is None


async def test_a_fleet_without_controllers_has_no_leader_and_no_state(
    router: Router, http: aiohttp.ClientSession
) -> None:
    async with http.get("/api/scaling") as answer:
        assert await answer.json() == {"leader": None, "state": None, "records": []}


@pytest.mark.parametrize(("query", "status"), [("last=x", 400), ("last=-5", 200), ("last=99999999", 200)])
async def test_how_many_is_a_bounded_number(
    router: Router, http: aiohttp.ClientSession, query: str, status: int
) -> None:
    store_of(router).core.scaling = Scaling(records=tuple(ScalingRecord(id=id_) for id_ in range(1500)))
    async with http.get(f"/api/scaling?{query}") as answer:
        assert answer.status == status
        assert len((await answer.json()).get("records", [])) in (0, 1000)


async def test_while_redis_is_away_it_says_so(router: Router, http: aiohttp.ClientSession) -> None:
    store_of(router).down = True
    async with http.get("/api/scaling") as answer:
        assert (answer.status, await answer.json()) == (503, {"error": "store-unavailable"})
