"""Router links: a router that hangs holds up no other, and one that is gone is replaced."""

from __future__ import annotations

import asyncio
import random

import pytest
from prometheus_client import CollectorRegistry
from websockets.asyncio.server import ServerConnection, serve

from sfu.shell.metrics import SfuMetrics
from sfu.shell.router_link import RouterLinks
from shared.messages.link import CordonReport, Drained, Hello, Linked, SfuReport, ToRouter, ToSfu, pack_state
from shared.records import DrainReport, SfuState
from shared.tokens import LinkClaims, issue
from tests.fakes.link_router import LinkRouter
from tests.fakes.sfu_process import SECRET, until

STATE = pack_state(SfuState(address="ws://sfu", sfu="s", incarnation=1))


class Owner:
    """The program's part."""

    def __init__(self) -> None:
        self.orders: list[ToSfu] = []

    def hello(self) -> Hello:
        token = issue(LinkClaims(sfu="s"), secret=SECRET, now_at=0.0, ttl_s=60.0)
        return Hello(token=token, boot="b", state=STATE)

    def linked(self, message: Linked) -> ToRouter | None:
        return None

    def ordered(self, message: ToSfu, *, router: str) -> None:
        self.orders.append(message)


def links_to(*routers: str, count: int = 2) -> RouterLinks:
    metrics = SfuMetrics(CollectorRegistry(), version="v")
    return RouterLinks(routers=routers, count=count, metrics=metrics, rng=random.Random(1))


async def test_a_router_that_never_answers_holds_up_no_other() -> None:
    async def dumb(websocket: ServerConnection) -> None:
        await websocket.wait_closed()

    sound = await LinkRouter().start()
    async with serve(dumb, "127.0.0.1", 0) as server:
        links = links_to(f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}", sound.url)
        links.start(Owner())
        await until(lambda: links.up == 1)
        links.send(CordonReport(state=STATE))
        await sound.wait(CordonReport)
        await links.stop()
    await sound.stop()


@pytest.mark.process
async def test_a_router_that_reads_nothing_costs_only_its_own_reports() -> None:
    stuck, sound = await LinkRouter("stuck").start(), await LinkRouter("sound").start()
    links = links_to(stuck.url, sound.url)
    links.start(Owner())
    await until(lambda: links.up == 2 and bool(stuck.links))
    stuck.links[0].transport.pause_reading()
    big = SfuReport(state=pack_state(SfuState(address="x" * 60_000)))
    for number in range(400):
        links.send(big)
        await until(lambda number=number: len(sound.of(SfuReport)) > number)  # type: ignore[misc]
    assert all(len(link._outbox) <= 1 for link in links._links), "reports to a stuck router replace each other"
    assert links.metrics.link_dropped._value.get() > 0
    links.send(CordonReport(state=STATE))
    await sound.wait(CordonReport)
    await links.stop()
    for router in (stuck, sound):
        for link in list(router.links):
            link.transport.abort()
        await router.stop()


async def test_a_router_that_is_gone_is_replaced_by_another() -> None:
    routers = [await LinkRouter(f"router-{n}").start() for n in range(2)]
    links = links_to(*(router.url for router in routers), count=1)
    links.start(Owner())
    await until(lambda: links.up == 1)
    first = next(router for router in routers if router.links)
    other = next(router for router in routers if router is not first)
    await first.stop()
    await until(lambda: links.urls == [other.url])
    assert other.links
    await links.stop()
    await other.stop()


async def test_the_goodbye_waits_for_registered_but_not_for_ever() -> None:
    polite, rude = await LinkRouter().start(), await LinkRouter(answers_goodbye=False).start()
    goodbye = Drained(report=DrainReport(sfu="s"), state=STATE)
    for router, answered in ((polite, True), (rude, False)):
        links = links_to(router.url)
        links.start(Owner())
        await until(lambda links=links: links.up == 1)  # type: ignore[misc]
        within_s = 20.0 if answered else 0.2
        assert await links.say_goodbye(goodbye, within_s=within_s) is answered
        await links.stop()
        await router.stop()
    assert await links_to("ws://127.0.0.1:9").say_goodbye(goodbye, within_s=1.0), "no link to wait for"
    await asyncio.sleep(0)
