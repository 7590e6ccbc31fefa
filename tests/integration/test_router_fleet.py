"""Routers as real processes on a real Redis, with scripted SFUs and players: joining, draining, resuming, dying."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Iterator

import aiohttp
import pytest

from shared.keys import Keys
from shared.messages import link, player
from shared.records import ExitScope, Presence, PublicationRecord, SfuStatus
from shared.store.store import Store
from tests.router.actors import Player, RouterProcess, Sfu, until


class Fleet:
    """Two routers; SFU s1 is linked to both, s2 to the first only, so that the second knows it from Redis alone."""

    def __init__(self, a: RouterProcess, b: RouterProcess, s1: Sfu, s2: Sfu, store: Store) -> None:
        self.a, self.b, self.s1, self.s2, self.store = a, b, s1, s2, store
        self.room = f"room-{secrets.token_hex(3)}"

    async def sfu(self, router: RouterProcess, name: str) -> dict[str, object]:
        async with aiohttp.ClientSession() as session, session.get(f"{router.http}/api/sfus") as response:
            rows = (await response.json())["sfus"]
        return next((row for row in rows if row["sfu"] == name), {})

    async def knows(self, router: RouterProcess, name: str, **facts: object) -> None:
        """Wait until that router's view of the SFU is as given."""
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            row = await self.sfu(router, name)
            if row and all(row.get(key) == value for key, value in facts.items()):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{name} is {await self.sfu(router, name)}, not {facts}")


@pytest.fixture(scope="module")
def routers(redis_url: str) -> Iterator[tuple[RouterProcess, RouterProcess, str]]:
    """Two routers that all tests share which leave them alive."""
    yield from _two_routers(redis_url)


@pytest.fixture
def own_routers(redis_url: str) -> Iterator[tuple[RouterProcess, RouterProcess, str]]:
    """Two routers for one test, which may kill them."""
    yield from _two_routers(redis_url)


def _two_routers(redis_url: str) -> Iterator[tuple[RouterProcess, RouterProcess, str]]:
    name = f"test-{secrets.token_hex(6)}"
    started = [
        RouterProcess("a", redis=redis_url, fleet=name),
        RouterProcess("b", redis=redis_url, fleet=name, resume_window_s=2),
    ]
    try:
        a, b = (each.wait_up() for each in started)
        yield a, b, name
    finally:
        for each in started:
            each.kill()


@pytest.fixture
async def it(redis_url: str, routers: tuple[RouterProcess, RouterProcess, str]) -> AsyncIterator[Fleet]:
    async for fleet in _fleet(redis_url, *routers):
        yield fleet


@pytest.fixture
async def mortal(redis_url: str, own_routers: tuple[RouterProcess, RouterProcess, str]) -> AsyncIterator[Fleet]:
    async for fleet in _fleet(redis_url, *own_routers):
        yield fleet


async def _fleet(redis_url: str, a: RouterProcess, b: RouterProcess, name: str) -> AsyncIterator[Fleet]:
    store = Store(redis_url, fleet=name)
    s1 = await Sfu("s1", [a.ws, b.ws], load=0.1).start()
    s2 = await Sfu("s2", [a.ws], load=0.5, version="v2").start()
    fleet = Fleet(a, b, s1, s2, store)
    await fleet.knows(b, "s2", placeable=True, incarnation=s2.state.incarnation)
    await fleet.knows(a, "s1", placeable=True, incarnation=s1.state.incarnation)
    yield fleet
    await asyncio.gather(s1.stop(), s2.stop())
    await store.close()


async def test_a_room_has_one_sfu_on_all_routers_and_everybody_sees_everybody(it: Fleet) -> None:
    ann = await Player.join(it.a.ws, it.room, "ann")
    bob = await Player.join(it.b.ws, it.room, "bob")
    assert ann.sfu == bob.sfu == "s1"
    assert {p.identity for p in bob.welcome.snapshot.players} == {"ann", "bob"}
    await ann.hears(player.RoomUpdate, where=lambda m: any(p.identity == "bob" for p in m.players))
    await ann.say(player.Publish(publication="cam", kind="video", sfu="s1"))
    await bob.hears(player.RoomUpdate, where=lambda m: any(p.publication == "cam" for p in m.publications))
    await bob.say(player.RequestAccess(sfu="s1", request="visit"))
    assert (await bob.hears(player.SfuAccess)).request == "visit"
    await ann.say(player.Publish(publication="cam", kind="video", sfu="s2", generation=2))
    moved = await bob.hears(player.RoomUpdate, where=lambda m: any(p.generation == 2 for p in m.publications))
    assert moved.publications[0].sfu == "s2"
    await ann.say(player.Leave())
    assert await ann.ends() == 1000
    gone = await bob.hears(player.RoomUpdate, where=lambda m: bool(m.left))
    assert gone.left == (ann.welcome.player,)
    assert "cam" in gone.ended
    await bob.close()


async def test_a_cordon_reaches_players_of_linked_and_of_distant_routers_and_new_work_goes_elsewhere(it: Fleet) -> None:
    ann = await Player.join(it.a.ws, it.room, "ann", exclude=("s1",))
    bob = await Player.join(it.b.ws, it.room, "bob", exclude=("s1",))
    assert ann.sfu == bob.sfu == "s2"
    await it.s2.cordon()
    heard = [await each.hears(player.CordonedSfu) for each in (ann, bob)]
    assert {(h.sfu, h.ends_in_s) for h in heard} == {("s2", 3600.0)}
    assert heard[0].revision <= heard[1].revision, "the distant router may hear of it by a later report"
    answer = await bob.asks_for_sfu(
        leave="s2", incarnation=it.s2.state.incarnation, revision=heard[1].revision, reason="cordoned"
    )
    assert isinstance(answer, player.AssignedSfu)
    assert answer.sfu == "s1"
    await bob.say(player.Moved(sfu="s1", left="s2", audio_gap_ms=20.0))
    await ann.hears(player.RoomUpdate, where=lambda m: any(p.identity == "bob" and p.sfu == "s1" for p in m.players))
    late = await Player.join(it.b.ws, it.room, "late")
    assert late.sfu == "s1"
    assert [c.sfu for c in late.welcome.cordoned] == ["s2"]
    await it.s2.uncordon()
    await ann.hears(player.UncordonedSfu)
    for each in (ann, bob, late):
        await each.close()


async def test_a_router_that_lags_believes_the_player_about_the_cordon(it: Fleet) -> None:
    bob = await Player.join(it.b.ws, it.room, "bob", exclude=("s1",))
    revision = it.s2.state.revision + 60
    answer = await bob.asks_for_sfu(
        leave="s2", incarnation=it.s2.state.incarnation, revision=revision, reason="cordoned"
    )
    assert isinstance(answer, player.AssignedSfu)
    assert answer.sfu == "s1"
    assert (await it.sfu(it.b, "s2"))["placeable"], "a player's word counts for its own room only"
    await it.s2.report(revision=revision)
    await it.knows(it.b, "s2", placeable=True)
    await bob.close()


async def test_a_killed_routers_players_resume_on_another_router_with_their_room(mortal: Fleet) -> None:
    it = mortal
    ann = await Player.join(it.a.ws, it.room, "ann")
    bob = await Player.join(it.b.ws, it.room, "bob")
    await ann.say(player.Publish(publication="mic", kind="audio", sfu="s1"))
    await bob.hears(player.RoomUpdate, where=lambda m: bool(m.publications))
    it.a.kill()
    await ann.ends()
    again = await Player.resume(it.b.ws, ann, sfu="s1", presence=Presence(at_desk=False))
    assert again.welcome.resumed
    assert again.welcome.player == ann.welcome.player
    assert again.welcome.assignment is None, "its SFU is still right: media is not touched"
    assert [p.publication for p in again.welcome.snapshot.publications] == ["mic"]
    assert not [m for m in bob.heard if isinstance(m, player.RoomUpdate) and m.left]
    await again.close()
    await bob.close()


async def test_the_newest_session_of_an_identity_wins_on_whatever_router(it: Fleet) -> None:
    first = await Player.join(it.a.ws, it.room, "ann")
    second = await Player.join(it.b.ws, it.room, "ann")
    assert await first.ends() == 4001
    third = await Player.join(it.b.ws, it.room, "ann")
    assert await second.ends() == 4001
    await until(lambda: third.closed is None, what="the newest lives")
    watcher = await Player.join(it.a.ws, it.room, "bob")
    assert [p.player for p in watcher.welcome.snapshot.players if p.identity == "ann"] == [third.welcome.player]
    old = await Player.open(it.a.ws)
    await old.say(player.Resume(resume_token=first.welcome.resume_token))
    assert await old.ends() in (4001, 4009)
    await third.close()
    await watcher.close()


async def test_a_session_not_resumed_within_the_window_ends_and_cannot_be_resumed(it: Fleet) -> None:
    bob = await Player.join(it.b.ws, it.room, "bob")
    watcher = await Player.join(it.a.ws, it.room, "watcher")
    await bob.vanish()
    await watcher.hears(player.RoomUpdate, where=lambda m: bob.welcome.player in m.left)
    for router in (it.b, it.a):
        again = await Player.open(router.ws)
        await again.say(player.Resume(resume_token=bob.welcome.resume_token))
        assert await again.ends() == 4009
    await watcher.close()


async def test_a_session_moves_between_living_routers_without_leaving_the_room(it: Fleet) -> None:
    ann = await Player.join(it.a.ws, it.room, "ann")
    watcher = await Player.join(it.a.ws, it.room, "watcher")
    again = await Player.resume(it.b.ws, ann, sfu="s1")
    assert again.welcome.player == ann.welcome.player
    assert await ann.ends() == 4001
    await again.say(player.SetPresence(presence=Presence(at_desk=False)))
    await watcher.hears(
        player.RoomUpdate, where=lambda m: any(p.identity == "ann" and not p.presence.at_desk for p in m.players)
    )
    assert not [m for m in watcher.heard if isinstance(m, player.RoomUpdate) and m.left]
    await again.close()
    await watcher.close()


async def test_a_killed_sfu_is_told_to_its_players_on_every_router(it: Fleet) -> None:
    ann = await Player.join(it.a.ws, it.room, "ann")
    bob = await Player.join(it.b.ws, it.room, "bob")
    assert ann.sfu == bob.sfu == "s1"
    await it.s1.die()
    for each in (ann, bob):
        assert (await each.hears(player.SfuGone)).reason == "lost"
        answer = await each.asks_to_leave(it.s1.state, reason="lost")
        assert isinstance(answer, player.AssignedSfu)
        assert answer.sfu == "s2"
        await each.close()


async def test_a_drained_sfu_is_unregistered_everywhere_and_its_report_is_kept(it: Fleet) -> None:
    ann = await Player.join(it.a.ws, it.room, "ann", exclude=("s2",))
    version = f"v-{it.room}"
    await it.s1.cordon()
    await it.s1.report(link.TerminatingSfu, status=SfuStatus.TERMINATING.value)
    assert (await ann.hears(player.SfuGone)).reason == "terminating"
    await it.s1.be_quiet()
    report = link.DrainReport(sfu="s1", version=version, outcome="empty", to_exit_s=3.0)
    for each in it.s1.links:
        await each.say(link.Drained(report=report, state=link.pack_state(it.s1.state)))
        await each.hears(link.Registered)
    for router in (it.a, it.b):
        await it.knows(router, "s2", placeable=True)
        assert await it.sfu(router, "s1") == {}
    await until(lambda: ann.count(player.SfuGone) == 1, what="told once")
    deadline = time.monotonic() + 20
    while version not in [kept.version for kept in await it.store.read_drain_reports(5)]:
        assert time.monotonic() < deadline, "the report is not kept"
        await asyncio.sleep(0.05)
    assert [kept.version for kept in await it.store.read_drain_reports(5)].count(version) == 1
    async with aiohttp.ClientSession() as session, session.get(f"{it.a.http}/metrics") as response:
        assert f'sluice_router_drains_total{{outcome="empty",version="{version}"}} 1.0' in await response.text()
    await ann.close()


async def test_an_exit_order_reaches_only_cordoned_sfus_in_scope_and_only_once(it: Fleet) -> None:
    early = await it.store.order_exit(ExitScope.ALL_CORDONED, "", "test")
    await it.s1.cordon()
    await it.s2.cordon()
    for sfu in (it.s1, it.s2):
        await sfu.links[0].hears(link.Stamped, where=lambda m: m.cordoned_at is not None)
    stamped = next(m for m in it.s1.links[0].heard if isinstance(m, link.Stamped) and m.cordoned_at)
    assert stamped.cordoned_at is not None
    assert stamped.cordoned_at >= early.at
    order = await it.store.order_exit(ExitScope.VERSION, "v2", "test")
    exit_ = await it.s2.links[0].hears(link.Exit)
    assert exit_.at == order.at
    await it.store.order_exit(ExitScope.SFU, "s1", "test")
    await it.s1.links[0].hears(link.Exit)
    await it.s1.links[1].hears(link.Exit)
    await asyncio.sleep(0.6)  # three exchanges, in which nothing may be sent again
    assert [each.count(link.Exit) for each in (*it.s1.links, *it.s2.links)] == [1, 1, 1]


async def test_an_operators_command_reaches_the_sfu_but_not_one_started_later(it: Fleet) -> None:
    await it.s2.links[0].hears(link.Stamped, where=lambda m: m.started_at is not None)
    command = await it.store.command_sfu("drain", "s2", "olga", "maintenance")
    cordon = await it.s2.links[0].hears(link.Cordon)
    assert (cordon.command, cordon.by, cordon.exit_when_empty) == (command.command, "olga", True)
    await it.s2.stop()
    restarted = await Sfu("s2", [it.a.ws]).start()
    await restarted.links[0].hears(link.Stamped, where=lambda m: m.started_at is not None)
    await it.store.command_sfu("uncordon", "s2", "olga", "")
    await restarted.links[0].hears(link.Uncordon)
    assert restarted.links[0].count(link.Cordon) == 0
    await restarted.stop()


async def test_a_record_of_an_older_program_without_status_takes_players(it: Fleet, redis_url: str) -> None:
    from redis.asyncio import Redis

    keys = Keys(it.store.keys.fleet)
    client: Redis = Redis.from_url(redis_url)
    await client.set(keys.sfu("ws://old:1"), b'{"address":"ws://old:1","load":0.01,"flavour":"vanilla"}')
    await client.sadd(keys.sfus, "ws://old:1")  # type: ignore[misc]
    await it.knows(it.b, "ws://old:1", placeable=True, status="ONLINE")
    ann = await Player.join(it.b.ws, "old-room", "ann")
    assert ann.sfu == "ws://old:1"
    await client.set(keys.sfu("ws://old:1"), b'{"address":"ws://old:1","load":0.01,"status":"HIBERNATING"}')
    await it.knows(it.b, "ws://old:1", placeable=False, refused="unknown-status")
    await ann.close()
    await client.aclose()


async def test_a_router_that_gets_sigterm_sends_its_players_away_and_ends_with_status_0(mortal: Fleet) -> None:
    it = mortal
    ann = await Player.join(it.a.ws, it.room, "ann")
    end = asyncio.create_task(it.a.terminate())
    assert (await ann.hears(player.RouterClosing)).after_s <= 0.5
    again = await Player.resume(
        it.b.ws, ann, sfu="s1", publications=(PublicationRecord(publication="x", player="?", kind="audio", sfu="s1"),)
    )
    assert again.welcome.resumed
    assert await end == 0
    assert "a" not in [record.router for record in await it.store.read_routers()]
    await again.close()
