"""SFU links: which versions of the protocol a router takes, and what it skips."""

from __future__ import annotations

import asyncio
import logging
import random
import time

import aiohttp
import pytest
from prometheus_client import CollectorRegistry
from websockets.asyncio.client import connect

from router.shell.router import Router
from sfu.shell.metrics import SfuMetrics
from sfu.shell.router_link import RouterLinks
from shared.messages import OLDEST_VERSION, PROTOCOL_VERSION, link
from shared.messages.codes import CloseCode
from shared.records import SfuState
from shared.tokens import LinkClaims, issue
from tests.fakes import sfu_process
from tests.fakes.link_router import LinkRouter
from tests.router.actors import SECRET, Peer, Sfu, until

STATE = link.pack_state(SfuState(address="ws://s1", sfu="s1", incarnation=1))


def hello(protocol: int, *, secret: str = SECRET) -> link.Hello:
    token = issue(LinkClaims(sfu="s1"), secret=secret, now_at=time.time(), ttl_s=60)
    return link.Hello(token=token, boot="b", state=STATE, protocol=protocol)


class OtherSfu:
    """An SFU of another release."""

    def __init__(self, protocol: int) -> None:
        self.protocol = protocol

    def hello(self) -> link.Hello:
        return hello(self.protocol, secret=sfu_process.SECRET)

    def linked(self, message: link.Linked) -> None:
        return None

    def ordered(self, message: link.ToSfu, *, router: str) -> None:
        pass


@pytest.mark.parametrize("protocol", [OLDEST_VERSION - 1, PROTOCOL_VERSION + 1, 2**62])
async def test_a_version_that_it_does_not_speak_is_refused_with_both_named(
    router: Router, caplog: pytest.LogCaptureFixture, protocol: int
) -> None:
    peer = Peer(await connect(f"{router.state.announced_ws}/sfu", compression=None), link.to_sfu)
    await peer.say(hello(protocol))
    assert await peer.ends() == CloseCode.WRONG_PROTOCOL
    said = f"the SFU speaks protocol version {protocol}, this router {PROTOCOL_VERSION}: run releases that share one"
    assert peer.reason == said
    assert any(said in record.getMessage() for record in caplog.records)
    assert router.links.ids == ()
    assert router.state.directory.state("s1") is None
    async with aiohttp.ClientSession(router.state.announced_http) as http, http.get("/metrics") as metrics:
        assert 'sluice_router_refused_total{code="wrong-protocol",peer="sfu"} 1.0' in await metrics.text()


async def test_an_sfu_that_is_refused_says_so_and_stays_with_the_routers_that_take_it(
    router: Router, caplog: pytest.LogCaptureFixture
) -> None:
    older = await LinkRouter("older").start()
    metrics = SfuMetrics(CollectorRegistry(), version="v")
    refusing = router.state.announced_ws
    links = RouterLinks(routers=[refusing, older.url], count=2, metrics=metrics, rng=random.Random(1))
    with caplog.at_level(logging.WARNING, logger="sfu.link"):
        links.start(OtherSfu(PROTOCOL_VERSION + 1))
        await until(lambda: refusing in links.refused_at and links.urls == [older.url])
    said = [record.getMessage() for record in caplog.records if record.name == "sfu.link"]
    assert len(said) == 1
    assert "router refused this SFU: the SFU speaks protocol version 2, this router 1" in said[0]
    assert links.choose() is None, "the one that refused is left alone"
    assert metrics.trouble.labels("wrong-protocol")._value.get() == 1
    await links.stop()
    await older.stop()


async def test_the_withdrawn_bye_is_skipped(router: Router, sfu: Sfu) -> None:
    (peer,) = sfu.links
    await peer.connection.send('{"type":"bye"}')
    revision = sfu.state.revision
    await until(lambda: (known := router.state.directory.state("s1")) and known.revision > revision + 1)
    await asyncio.sleep(0)
    assert router.links.ids == ("s1",)
    assert peer.closed is None
