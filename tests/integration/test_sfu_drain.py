"""A real SFU process through its drains: signals, orders from a router, bounds, exit statuses (D2, D6-D8, D12)."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator

import pytest

from shared.messages.codes import CloseCode, Refusal
from shared.messages.link import (
    Cordon,
    CordonReport,
    Drained,
    Exit,
    SfuReport,
    Stamped,
    TerminatingSfu,
    Uncordon,
    UncordonReport,
    unpack_state,
)
from shared.messages.media import Closing, Enter, LeaveSfu, PleaseMove, PublicationFlowing
from shared.messages.player import Failed, Ping, Pong
from shared.records import SfuStatus
from tests.fakes.link_router import LinkRouter
from tests.fakes.media_player import MediaPlayer, media_token
from tests.fakes.sfu_process import SfuProcess, until


class World:
    """A scripted router, SFU processes and players, all ended with the test."""

    def __init__(self) -> None:
        self.routers: list[LinkRouter] = []
        self.processes: list[SfuProcess] = []
        self.players: list[MediaPlayer] = []

    async def router(self, **how: object) -> LinkRouter:
        self.routers.append(await LinkRouter(**how).start())  # type: ignore[arg-type]
        return self.routers[-1]

    async def sfu(self, *routers: LinkRouter, **settings: object) -> SfuProcess:
        self.processes.append(await SfuProcess.start(routers=[router.url for router in routers], **settings))
        for router in routers:
            await router.wait(SfuReport)
        return self.processes[-1]

    async def player(self, sfu: SfuProcess, name: str = "alice", *, publishes: str = "") -> MediaPlayer:
        player = MediaPlayer(sfu.address, name)
        self.players.append(player)
        await player.enter(publish=bool(publishes))
        if publishes:
            await player.publish(video=publishes)
            await player.send_until(lambda: bool(player.of(PublicationFlowing)))
        return player


@pytest.fixture
async def world() -> AsyncIterator[World]:
    world = World()
    yield world
    for process in world.processes:
        await process.kill()
    for player in world.players:
        await player.close()
    for router in world.routers:
        await router.stop()


async def test_it_tells_every_router_what_it_is_and_everybody_when_it_cant_be_reached(world: World) -> None:
    floor = 2**50
    one, two = await world.router(floor=floor), await world.router(name="router-u")
    sfu = await world.sfu(one, two)
    await world.player(sfu, publishes="cam")
    await until(lambda: any((state.players, state.producers) == (1, 1) for state in one.states()))
    await until(lambda: len(two.of(SfuReport)) >= 2)
    await until(lambda: one.states()[-1].warmed_up and one.states()[-1].load is not None)
    state = one.states()[-1]
    assert (state.sfu, state.address, state.status) == ("sfu-t", sfu.address, "ONLINE")
    assert state.load is not None
    assert state.load_parts.cpu is not None
    assert (state.load_parts.rooms, state.load_parts.clients, state.load_parts.tracks) == (1, 1, 1)
    assert one.states()[0].load is None, "unknown is not zero"
    versions = [(state.incarnation, state.revision) for state in one.states()]
    assert versions == sorted(set(versions)), "each report is newer than the one before"
    assert versions[-1][0] == floor + 1, "raised above another boot's"
    assert (await sfu.get("/api/players"))[1]["reachable"] is True
    assert (state.warmed_up, state.probe_failure) == (True, "")
    ways = (state.milestones.healthy_s, state.milestones.linked_s, state.milestones.first_packet_s)
    assert all(way is not None and way > 0 for way in ways)
    assert one.states()[0].milestones.linked_s is None


async def test_the_probe_call_shows_nowhere_as_load_or_as_a_player(world: World) -> None:
    router = await world.router()
    sfu = await world.sfu(router)
    await until(lambda: any(state.warmed_up and state.load is not None for state in router.states()))
    for state in router.states():
        assert (state.players, state.producers, state.consumers) == (0, 0, 0)
        assert state.load_parts.egress_bps in (None, 0.0)
        assert state.load_parts.streams == state.load_parts.rooms == state.load_parts.clients == 0
    metrics = (await sfu.get("/metrics"))[1]
    assert "sluice_sfu_media_forwarded_total 0.0" not in metrics, "a packet did go through the plane"
    assert "sluice_sfu_warmed_up 1.0" in metrics
    sfu.signal(signal.SIGTERM)
    assert await sfu.exit_status() == 0
    assert router.of(Drained)[0].report.outcome == "empty"


async def test_a_node_that_reaches_itself_nowhere_says_why_it_is_no_capacity(world: World) -> None:
    router = await world.router()
    sfu = await world.sfu(router, announced_udp_port=9)
    await until(lambda: any(state.probe_failure for state in router.states()))
    state = router.states()[-1]
    assert (state.warmed_up, state.probe_failure) == (False, "no-answer")
    assert "sluice_sfu_warmed_up 0.0" in (await sfu.get("/metrics"))[1]


async def test_a_leased_cordon_lapses_when_its_controller_falls_silent(world: World) -> None:
    router = await world.router()
    sfu = await world.sfu(router)
    await router.say(Cordon(command="c1", by="autoscaler", lease_s=2.0, drain_max_s=60.0, token=3))
    drain = unpack_state((await router.wait(CordonReport)).state).drain
    assert drain is not None
    assert (drain.by, drain.token, drain.exit_when_empty, drain.drain_max_s) == ("autoscaler", 3, False, 60.0)
    await router.say(Cordon(command="r1", by="autoscaler", lease_s=3.0, token=3))
    await router.say(Cordon(command="r2", by="autoscaler", lease_s=1.0, token=2))  # of a replaced controller
    state = unpack_state((await router.wait(UncordonReport)).state)
    assert (state.status, state.drain) == ("ONLINE", None)
    await until(lambda: "lease_lapsed_of=autoscaler" in sfu.log)
    assert "cordon refused: it comes from a controller that was replaced" in sfu.log


async def test_an_announced_address_that_does_not_answer_is_said_loudly_and_ends_nothing(world: World) -> None:
    sfu = await world.sfu(announced_udp_port=9)
    await until(lambda: "UNREACHABLE: 127.0.0.1:9" in sfu.log)
    assert (await sfu.get("/readyz"))[0] == 200
    assert "sluice_sfu_announced_reachable 0.0" in (await sfu.get("/metrics"))[1]
    assert (await sfu.get("/api/players"))[1]["reachable"] is False
    sfu.signal(signal.SIGTERM)
    assert await sfu.exit_status() == 0, "no router is needed to end"


async def test_sigterm_without_players_ends_at_once_with_status_0(world: World) -> None:
    router = await world.router()
    sfu = await world.sfu(router)
    sfu.signal(signal.SIGTERM)
    assert await sfu.exit_status() == 0
    kinds = [type(message) for message in router.heard if not isinstance(message, SfuReport)][1:]
    assert kinds == [CordonReport, TerminatingSfu, Drained]
    report = router.of(Drained)[0].report
    assert (report.outcome, report.cause, report.players_at_exit, report.evicted) == ("empty", "sigterm", 0, 0)
    assert "[drain] done" in sfu.log


async def test_sigterm_with_players_cordons_keeps_media_and_ends_with_the_last_of_them(world: World) -> None:
    router = await world.router()
    sfu = await world.sfu(router)
    alice = await world.player(sfu, publishes="cam")
    bob = await world.player(sfu, "bob")
    await bob.subscribe("cam")
    await alice.send_until(lambda: bob.received > 0)
    health = [await sfu.get("/healthz"), await sfu.get("/readyz")]
    sfu.signal(signal.SIGTERM)
    state = unpack_state((await router.wait(CordonReport)).state)
    assert (state.status, state.players) == ("CORDONED", 2)
    assert state.drain is not None
    assert (state.drain.cause, state.drain.drain_max_s, state.drain.grace_s) == ("sigterm", 1800, 3600)
    assert [await sfu.get("/healthz"), await sfu.get("/readyz")] == health
    assert (await sfu.state())["status"] == "CORDONED"
    sfu.signal(signal.SIGTERM)  # changes nothing
    before = bob.received
    await alice.send_until(lambda: bob.received > before + 20)
    assert len(router.of(CordonReport)) == 1
    await router.say(Uncordon(command="c1"))
    await until(lambda: "uncordon refused" in sfu.log)
    router.heard.clear()
    await router.links[0].close()
    state = unpack_state((await router.wait(CordonReport)).state)
    assert state.status == "CORDONED", "a link that comes back says at once what may have been missed"
    await alice.say(LeaveSfu())
    await until(lambda: any(state.players == 1 for state in router.states()))
    assert sfu.process.returncode is None, "bob only subscribes, and counts"
    await bob.say(LeaveSfu())
    assert await sfu.exit_status() == 0
    report = router.of(Drained)[0].report
    assert (report.outcome, report.players_at_cordon, report.evicted) == ("empty", 2, 0)
    assert len(report.conversations_s) == 2
    assert report.last_move_s is not None


async def test_a_hand_cordon_refuses_new_homes_lets_visits_in_is_taken_back_and_becomes_a_drain(
    world: World,
) -> None:
    router = await world.router()
    sfu = await world.sfu(router)
    alice = await world.player(sfu, publishes="cam")
    await router.say(Cordon(command="c1", by="ann", reason="why not"))
    await router.wait(CordonReport)
    newcomer, stranger = MediaPlayer(sfu.address, "new"), MediaPlayer(sfu.address, "stranger")
    world.players += [newcomer, stranger]
    await newcomer.open()
    await newcomer.say(Enter(token=media_token("new")))
    assert (await newcomer.wait(Failed)).code == Refusal.SFU_CORDONED
    assert await newcomer.wait_closed() == CloseCode.REFUSED
    await stranger.open()
    await stranger.say(Enter(token=media_token("stranger", room="elsewhere", publish=False)))
    assert await stranger.wait_closed() == CloseCode.REFUSED
    visitor = await world.player(sfu, "visitor")
    assert visitor.heard[0].status == "CORDONED"  # type: ignore[union-attr]
    await visitor.say(Enter(token=media_token("visitor")))
    assert (await visitor.wait(Failed)).code == Refusal.SFU_CORDONED, "no visit becomes a home now"
    await visitor.subscribe("cam")
    await alice.send_until(lambda: visitor.received > 0)
    await alice.drop_websocket()
    await alice.enter()  # who is here may come back
    await router.say(Cordon(command="c1"))  # the same again, from another router
    await router.say(Uncordon(command="c2"))
    state = unpack_state((await router.wait(UncordonReport)).state)
    assert (state.status, state.drain) == ("ONLINE", None)
    later = await world.player(sfu, "later", publishes="other")
    assert len(router.of(CordonReport)) == 1
    for player in (alice, visitor, later):
        await player.say(LeaveSfu())
    await router.say(Cordon(command="c3"))
    await until(lambda: router.states()[-1].players == 0 and router.states()[-1].drain is not None)
    assert sfu.process.returncode is None, "a hand cordon holds"
    await router.say(Cordon(command="c4", exit_when_empty=True, by="ann"))
    assert await sfu.exit_status() == 0
    assert router.of(Drained)[0].report.cause == "operator"


async def test_exit_forces_a_cordoned_sfu_and_no_other(world: World) -> None:
    router = await world.router()
    sfu = await world.sfu(router)
    alice = await world.player(sfu, publishes="cam")
    await router.say(Exit(at=50.0))
    await until(lambda: "exit refused" in sfu.log)
    await router.say(Cordon(command="c1"))
    await router.wait(CordonReport)
    await router.say(Stamped(started_at=1.0, cordoned_at=100.0))
    await until(lambda: router.states()[-1].drain is not None and router.states()[-1].drain.since_at == 100.0)
    assert router.states()[-1].started_at == 1.0
    await router.say(Exit(at=99.0))  # given before the cordon
    await until(lambda: sfu.log.count("exit refused") == 2)
    await alice.say(Ping())
    await alice.wait(Pong)
    await router.say(Exit(at=101.0, by="ann"))
    await alice.wait(Closing)
    assert await alice.wait_closed() == CloseCode.TERMINATING
    assert alice.sending is not None
    assert alice.sending.closed_by_sfu, "the transport was closed with close_notify"
    assert await sfu.exit_status() == 0
    report = router.of(Drained)[0].report
    assert (report.outcome, report.evicted, report.producers_at_exit) == ("forced", 1, 1)
    assert unpack_state(router.of(TerminatingSfu)[0].state).status == SfuStatus.TERMINATING


async def test_drain_max_asks_and_the_last_moment_comes_before_the_kill(world: World) -> None:
    router = await world.router()
    sfu = await world.sfu(router, drain_max_s=1, grace_s=8)
    alice = await world.player(sfu, publishes="cam")
    started = asyncio.get_running_loop().time()
    sfu.signal(signal.SIGTERM)
    asked = await alice.wait(PleaseMove)
    assert asked.sfu == "sfu-t"
    assert 0 < asked.within_s <= 6
    await alice.say(Ping())
    await alice.wait(Pong)
    assert alice.of(Closing) == [], "asking cuts no player"
    await until(lambda: any(state.drain is not None and state.drain.asking for state in router.states()))
    assert await sfu.exit_status() == 0
    assert asyncio.get_running_loop().time() - started >= 6.0, "it used its time"
    report = router.of(Drained)[0].report
    assert (report.outcome, report.asked, report.evicted) == ("grace", 1, 1)


async def test_the_final_sequence_ends_though_routers_and_players_hang(world: World) -> None:
    silent = await world.router(answers_goodbye=False)
    sfu = await world.sfu(silent, drain_max_s=0, grace_s=4)
    alice = await world.player(sfu, publishes="cam")
    assert alice.websocket is not None
    alice.websocket.transport.pause_reading()  # type: ignore[attr-defined]
    sfu.signal(signal.SIGTERM)
    assert await sfu.exit_status() == 0
    assert "did not say registered" in sfu.log
    alice.websocket.transport.abort()
