"""SFU links: which versions of the protocol a router takes, and what it skips."""

from __future__ import annotations

import asyncio
import logging
import random
import time

import aiohttp
import msgspec
import pytest
from prometheus_client import CollectorRegistry
from websockets.asyncio.client import connect

from router.shell import sfu_links
from router.shell.router import Router
from sfu.shell.metrics import SfuMetrics
from sfu.shell.router_link import RouterLinks
from shared.messages import OLDEST_VERSION, PROTOCOL_VERSION, link
from shared.messages.codes import CloseCode
from shared.records import SfuState
from shared.store.answers import PutSfu
from shared.tokens import LinkClaims, issue
from tests.fakes import sfu_process
from tests.fakes.link_router import LinkRouter
from tests.router.actors import SECRET, Peer, ScriptedLink, Sfu, until

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


# --- two processes with one id ---


def same(incarnation: int, revision: int = 1) -> SfuState:
    return SfuState(address=f"ws://{incarnation}", sfu="s1", incarnation=incarnation, revision=revision)


async def refused(ws: str, boot: str) -> Peer:
    peer = Peer(await connect(f"{ws}/sfu", compression=None), link.to_sfu)
    token = issue(LinkClaims(sfu="s1"), secret=SECRET, now_at=time.time(), ttl_s=60)
    await peer.say(link.Hello(token=token, boot=boot, state=link.pack_state(same(9))))
    assert await peer.ends() == CloseCode.NAME_TAKEN
    return peer


async def test_a_second_process_with_the_same_id_is_refused_by_name_while_the_first_is_alive(
    router: Router, caplog: pytest.LogCaptureFixture
) -> None:
    ws = router.state.announced_ws
    first = await ScriptedLink.open(ws, same(1), boot="first")
    said = "another SFU named 's1' is alive: give each process an id of its own (--sfu)"
    assert (await refused(ws, "second")).reason == said
    assert any(said in record.getMessage() for record in caplog.records)
    known = router.state.directory.state("s1")
    assert known is not None
    assert (known.incarnation, known.boot, first.closed) == (1, "first", None)
    again = await ScriptedLink.open(ws, same(1), boot="first")
    assert await first.ends() == CloseCode.REPLACED, "the same process on a new link is no other"
    async with aiohttp.ClientSession(router.state.announced_http) as http, http.get("/metrics") as metrics:
        assert 'sluice_router_refused_total{code="name-taken",peer="sfu"} 1.0' in await metrics.text()
    await again.close()


async def test_a_restarted_sfu_is_linked_at_once_when_the_old_process_is_dead(router: Router) -> None:
    first = await ScriptedLink.open(router.state.announced_ws, same(1), boot="first")
    await first.vanish()
    await until(lambda: router.links.ids == ())
    second = await ScriptedLink.open(router.state.announced_ws, same(2), boot="second")
    assert router.links.ids == ("s1",)
    await second.close()


async def test_a_process_that_hangs_gives_its_id_up_and_does_not_get_it_back(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    ws = router.state.announced_ws
    first = await ScriptedLink.open(ws, same(1), boot="first")
    monkeypatch.setattr(sfu_links, "ALIVE_S", 0.0)
    second = await ScriptedLink.open(ws, same(2), boot="second")
    assert await first.ends() == CloseCode.REPLACED
    monkeypatch.undo()
    await refused(ws, "first")
    await second.close()


async def test_an_sfu_that_other_routers_hear_of_is_no_free_name(router: Router) -> None:
    directory, now = router.state.directory, router.state.mono
    for revision in (1, 2):
        alive = msgspec.structs.replace(same(1, revision), boot="first")
        directory.hear(alive, now=now(), direct=False)
    await refused(router.state.announced_ws, "second")
    mine = await ScriptedLink.open(router.state.announced_ws, same(1, 3), boot="first")
    await mine.close()


async def test_when_two_got_in_at_once_the_one_that_redis_refuses_has_to_go(
    router: Router, monkeypatch: pytest.MonkeyPatch
) -> None:
    loser = await ScriptedLink.open(router.state.announced_ws, same(2), boot="second")
    router.links.stamp("s1", PutSfu(False, incarnation=1, taken=True))
    assert loser.closed is None, "Redis may take its dead predecessor for alive for a moment"
    monkeypatch.setattr(sfu_links, "TAKEN_WITHIN_S", 0.0)
    router.links.stamp("s1", PutSfu(False, incarnation=1, taken=True))
    assert await loser.ends() == CloseCode.NAME_TAKEN


async def test_an_sfu_whose_name_is_taken_says_so_and_goes_on_trying(
    router: Router, caplog: pytest.LogCaptureFixture
) -> None:
    first = await ScriptedLink.open(router.state.announced_ws, same(1), boot="first")
    metrics = SfuMetrics(CollectorRegistry(), version="v")
    links = RouterLinks(routers=[router.state.announced_ws], count=1, metrics=metrics, rng=random.Random(1))
    links.start(SecondProcess())
    await until(lambda: metrics.trouble.labels("name-taken")._value.get() >= 1)
    assert "router refused this SFU: another SFU named 's1' is alive" in caplog.text
    await first.vanish()
    await until(lambda: links.up == 1)
    await links.stop()


class SecondProcess(OtherSfu):
    """Another boot of `s1`."""

    def __init__(self) -> None:
        super().__init__(PROTOCOL_VERSION)

    def hello(self) -> link.Hello:
        token = issue(LinkClaims(sfu="s1"), secret=SECRET, now_at=time.time(), ttl_s=60)
        return link.Hello(token=token, boot="second", state=link.pack_state(same(2)))
