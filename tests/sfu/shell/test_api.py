"""What an SFU's HTTP side gives scripts: every field, whatever its value."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from aiohttp.test_utils import TestClient, TestServer
from prometheus_client import CollectorRegistry

from sfu.shell.api import make_api
from sfu.shell.parts import SfuParts
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from sfu.shell.warm_up import WarmUp
from shared.records import Drain, SfuState

FIELDS = set(SfuState.__struct_fields__) - {"extra"}


async def state_given(state: SfuState) -> dict[str, Any]:
    none = SimpleNamespace()
    app = make_api(
        cast(SfuParts, none),
        cast(Reporting, SimpleNamespace(state=state, healthy=True)),
        cast(RouterLinks, none),
        cast(WarmUp, none),
        registry=CollectorRegistry(),
    )
    async with TestClient(TestServer(app)) as client:
        body: dict[str, Any] = await (await client.get("/api/state")).json()
        return body


async def test_what_is_false_or_not_known_is_given_as_well() -> None:
    body = await state_given(SfuState(address="ws://a", sfu="a"))
    assert set(body) == FIELDS
    assert (body["warmed_up"], body["drain"], body["players"]) == (False, None, None)
    assert body["load_parts"]["cpu"] is None


async def test_a_drain_is_given_with_all_its_fields() -> None:
    body = await state_given(SfuState(address="ws://a", drain=Drain(cause="sigterm")))
    assert (body["drain"]["asking"], body["drain"]["elapsed_s"], body["drain"]["grace_s"]) == (False, 0.0, None)
