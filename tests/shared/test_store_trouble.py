"""The store when Redis is down, stuck, restarted or says no: a typed error soon, and all is well afterwards."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from shared.embedded import EmbeddedRedis
from shared.errors import StoreUnavailable
from shared.keys import Keys
from shared.records import PlayerRecord, RouterRecord, SfuState
from shared.store.answers import Gap, Wake, WakeKind
from shared.store.calls import MAX_IN_FLIGHT
from shared.store.store import Store
from tests.shared.worlds import wish

DEADLINE_S = 60.0
"""Far beyond any bound of the store: what doesn't come by then hangs."""


@pytest.fixture(scope="module")
def server() -> Iterator[EmbeddedRedis]:
    """A server that these tests may stop, freeze and start again."""
    server = EmbeddedRedis()
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


@pytest.fixture
async def store(server: EmbeddedRedis, fleet: str) -> AsyncIterator[Store]:
    await server.start()
    store = Store(server.url, fleet=fleet)
    yield store
    await store.close()


async def do(url: str, *command: Any) -> Any:
    client: Redis = Redis.from_url(url, decode_responses=True)
    try:
        return await client.execute_command(*command)  # type: ignore[no-untyped-call]
    finally:
        await client.aclose()


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not await true():  # noqa: ASYNC110 - what we wait for happens in another process
            await asyncio.sleep(0.02)


async def works(store: Store) -> bool:
    try:
        await store.ping()
    except StoreUnavailable:
        return False
    return True


async def clients_of(url: str) -> int:
    """How many connections others than the one that asks have."""
    return len((await do(url, "CLIENT", "LIST")).splitlines()) - 1


# --- outages ---


async def test_a_stopped_server_is_a_typed_error_and_everything_works_after_it_is_back(
    server: EmbeddedRedis, store: Store
) -> None:
    await store.enter_room("room", PlayerRecord(player="p1", identity="bob"))
    await server.stop()
    async with asyncio.timeout(DEADLINE_S):
        for _ in range(20):
            with pytest.raises(StoreUnavailable) as caught:
                await store.read_room("room")
    assert caught.value.operation == "read_room"
    assert store.counts["unavailable"] == 20
    healthy_meanwhile = store.healthy

    await server.start()
    await until(lambda: works(store))
    assert (healthy_meanwhile, store.healthy) == (False, True)
    # The server has forgotten the scripts with everything else.
    assert (await store.put_sfu(SfuState(address="ws://a"))).accepted
    assert (await store.read_room("room")).players == {}
    assert await clients_of(server.url) <= 2


async def test_a_stuck_server_is_a_typed_error_and_no_answer_goes_to_the_wrong_call(
    server: EmbeddedRedis, store: Store
) -> None:
    await store.put_router(RouterRecord(router="r1"))
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(DEADLINE_S):
            calls = [store.read_routers() for _ in range(3 * MAX_IN_FLIGHT)]
            answers = await asyncio.gather(*calls, return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreUnavailable}
        assert "within 1 s" in str(answers[0])
    finally:
        os.kill(server.pid, signal.SIGCONT)
    await until(lambda: works(store))
    for _ in range(10):
        routers, room = await asyncio.gather(store.read_routers(), store.read_room("room"))
        assert [router.router for router in routers] == ["r1"]
        assert room.placement is None


async def test_a_burst_of_calls_stays_within_the_bound_of_connections(server: EmbeddedRedis, fleet: str) -> None:
    await server.start()
    # Time is not what this is about.
    store = Store(server.url, fleet=fleet, timeout_s=DEADLINE_S)
    before = await clients_of(server.url)
    rooms = [f"room-{i}" for i in range(500)]
    placements = await asyncio.gather(*(store.place_room(room, wish("a")) for room in rooms))
    assert {placed.placement.sfu for placed in placements} == {"a"}
    assert await clients_of(server.url) - before <= MAX_IN_FLIGHT
    await store.close()
    await until(lambda: _equals(clients_of(server.url), before))


async def _equals(number: Awaitable[int], wanted: int) -> bool:
    return await number == wanted


async def test_flushed_scripts_are_sent_again(server: EmbeddedRedis, store: Store) -> None:
    await store.place_room("room", wish("a"))
    await do(server.url, "SCRIPT", "FLUSH")
    assert (await store.place_room("room", wish("a", "b"))).placement.sfu == "a"


async def test_a_cancelled_call_leaves_no_answer_behind(server: EmbeddedRedis, store: Store) -> None:
    await store.place_room("room", wish("a"))
    assert server.pid is not None
    os.kill(server.pid, signal.SIGSTOP)
    try:
        task = asyncio.create_task(store.place_room("other", wish("b")))
        await asyncio.sleep(0)
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    finally:
        os.kill(server.pid, signal.SIGCONT)
    await until(lambda: works(store))
    for _ in range(5):
        assert (await store.place_room("room", wish("a"))).placement.sfu == "a"


# --- servers that say no ---


@asynccontextmanager
async def answering(answer: bytes | None) -> AsyncIterator[str]:
    """A server that greets properly and then answers everything with `answer`; None: never."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.read(65536):
                greeting = b"CLIENT" in request.upper() or b"HELLO" in request.upper()
                if greeting:
                    writer.write(b"+OK\r\n" * request.upper().count(b"SETINFO"))
                elif answer == b"":
                    break
                elif answer is not None:
                    writer.write(answer)
                await writer.drain()
        except ConnectionError:
            return
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}/0"
    finally:
        listener.close()


@pytest.mark.parametrize(
    "answer",
    [
        b"-LOADING Redis is loading the dataset in memory\r\n",
        b"-READONLY You can't write against a read only replica.\r\n",
        b"-CLUSTERDOWN The cluster is down\r\n",
        b"-MASTERDOWN Link with MASTER is down\r\n",
        b"-BUSY Redis is busy running a script\r\n",
        b"-OOM command not allowed when used memory > 'maxmemory'.\r\n",
        b"-NOAUTH Authentication required.\r\n",
        b"-NOPERM this user has no permissions\r\n",
        b"-MISCONF Redis is configured to save RDB snapshots\r\n",
        b"-ERR something else\r\n",
        b"HTTP/1.1 400 Bad Request\r\n\r\n",
        b"\x00\xff\xfe\r\n",
        b"$999999999999\r\n",
        b"",
        None,
    ],
)
async def test_a_server_that_does_not_do_it_is_a_typed_error(answer: bytes | None) -> None:
    async with answering(answer) as url, asyncio.timeout(DEADLINE_S):
        store = Store(url, timeout_s=0.3)
        for call in (store.read_sfus, store.now, store.ping, lambda: store.place_room("room", wish("a"))):
            with pytest.raises(StoreUnavailable):
                await call()
        assert not store.healthy
        await store.close()


# --- hints ---


async def test_a_subscription_that_was_cut_says_so_and_goes_on(server: EmbeddedRedis, store: Store) -> None:
    hint = Wake(WakeKind.ROOM, "room")
    async with asyncio.timeout(DEADLINE_S), aclosing(store.wakes(rng=random.Random(1))) as heard:
        assert await anext(heard) == Gap()
        await do(server.url, "CLIENT", "KILL", "TYPE", "pubsub")
        assert await anext(heard) == Gap()
        await server.stop()
        again = asyncio.ensure_future(anext(heard))
        await server.start()
        assert await again == Gap()
        await until(lambda: works(store))
        await store.wake(hint)
        assert await anext(heard) == hint
    assert store.counts["resubscribed"] >= 2
    await until(lambda: _equals(_subscribers(server.url), 0))


async def _subscribers(url: str) -> int:
    return len((await do(url, "CLIENT", "LIST", "TYPE", "pubsub")).splitlines())


async def test_a_reader_that_stops_listening_leaves_no_connection(server: EmbeddedRedis, store: Store) -> None:
    async def listen() -> None:
        async for _ in store.wakes(rng=random.Random(1)):
            subscribed.set()

    subscribed = asyncio.Event()
    task = asyncio.create_task(listen())
    async with asyncio.timeout(DEADLINE_S):
        await subscribed.wait()
    assert await _subscribers(server.url) == 1
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await until(lambda: _equals(_subscribers(server.url), 0))


async def test_a_subscription_that_went_silent_is_noticed(fleet: str) -> None:
    """The far end confirms the subscription and then swallows everything, as a dead peer behind a router does."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while request := await reader.read(65536):
                if b"SETINFO" in request.upper():
                    writer.write(b"+OK\r\n" * request.upper().count(b"SETINFO"))
                elif b"SUBSCRIBE" in request.upper():
                    channel = Keys(fleet).wake.encode()
                    writer.write(b"*3\r\n$9\r\nsubscribe\r\n$%d\r\n%s\r\n:1\r\n" % (len(channel), channel))
        except ConnectionError:
            return
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    store = Store(f"redis://127.0.0.1:{listener.sockets[0].getsockname()[1]}/0", fleet=fleet)
    store.ping_every_s = 0.05
    async with asyncio.timeout(DEADLINE_S), aclosing(store.wakes(rng=random.Random(1))) as heard:
        assert [await anext(heard) for _ in range(3)] == [Gap()] * 3
    await store.close()
    listener.close()


async def test_a_quiet_subscription_is_kept_while_the_server_answers_pings(server: EmbeddedRedis, store: Store) -> None:
    store.ping_every_s = 0.2
    hint = Wake(WakeKind.EXIT)
    async with asyncio.timeout(DEADLINE_S), aclosing(store.wakes(rng=random.Random(1))) as heard:
        assert await anext(heard) == Gap()
        waiting = asyncio.ensure_future(anext(heard))
        await until(lambda: _pinged(server.url))
        await store.wake(hint)
        assert await waiting == hint
    assert store.counts["resubscribed"] == 0


async def _pinged(url: str) -> bool:
    return "cmd=ping" in await do(url, "CLIENT", "LIST", "TYPE", "pubsub")


@pytest.mark.parametrize("raw", [b"", b"nonsense", b"sfu-1", b"\xff\xfe \x00", b"melt sfu-1", b"room " + b"x" * 5000])
async def test_a_hint_that_can_t_be_read_is_counted_and_skipped(
    server: EmbeddedRedis, store: Store, raw: bytes
) -> None:
    hint = Wake(WakeKind.COMMAND, "sfu-1")
    async with asyncio.timeout(DEADLINE_S), aclosing(store.wakes(rng=random.Random(1))) as heard:
        assert await anext(heard) == Gap()
        await do(server.url, "PUBLISH", store.keys.wake, raw)
        await store.wake(hint)
        assert await anext(heard) == hint
    assert store.counts["bad-hint"] == 1


# --- keys that hold what they should not ---


async def test_keys_of_the_wrong_type_concern_no_other(server: EmbeddedRedis, store: Store) -> None:
    keys = store.keys
    await store.put_sfu(SfuState(address="ws://good", sfu="good", incarnation=1))
    await store.place_room("good", wish("good"))
    for key in (keys.room("bad"), keys.exits, keys.commands, keys.routers, keys.drain_reports):
        await do(server.url, "SET", key, "x")
    await do(server.url, "LPUSH", keys.sfu("bad"), "x")
    await do(server.url, "SADD", keys.sfus, "bad")
    await do(server.url, "SET", keys.sfu_stamps("good"), "x")

    assert [state.sfu for state in await store.read_sfus()] == ["good"]
    versions = await store.room_versions(["bad", "good"])
    assert versions["bad"] == 0
    assert versions["good"] > 0
    assert (await store.read_room("bad")).version == 0
    assert not any((await store.read_exits(), await store.read_commands(["good"]), await store.read_routers()))
    assert await store.read_drain_reports(5) == []
    with pytest.raises(StoreUnavailable):
        await store.place_room("bad", wish("good"))
    assert store.healthy
    assert store.counts["bad-record"] >= 6
    assert (await store.place_room("good", wish("good"))).placement.sfu == "good"


@pytest.mark.parametrize(
    "raw",
    [
        '{"sfu":"a","generation":"x"}',
        '{"sfu":"a","generation":1.5}',
        '{"sfu":7}',
        "nonsense",
        '{"sfu":"a","generation":-1}',
    ],
)
async def test_a_bad_placement_is_replaced(server: EmbeddedRedis, store: Store, raw: str) -> None:
    await do(server.url, "HSET", store.keys.room("room"), "place", raw)
    assert (await store.place_room("room", wish("a"))).placement.generation >= 1
    assert (await store.place_room("room", wish("b", refuse=("a",)))).placement.sfu == "b"


async def test_bad_stamps_and_versions_and_sessions_are_replaced(server: EmbeddedRedis, store: Store) -> None:
    await do(
        server.url, "HSET", store.keys.sfu_stamps("a"), "incarnation", "x", "revision", "-1", "started_at", "never"
    )
    put = await store.put_sfu(SfuState(address="ws://a", sfu="a", incarnation=1, revision=1))
    assert put.accepted
    assert put.started_at is not None
    await do(server.url, "HSET", store.keys.room("room"), "version", "x", "e:bob", "y", "o:p1", "{", "p:p1", "[]")
    assert (await store.enter_room("room", PlayerRecord(player="p1", identity="bob"))).epoch > 0
    assert set((await store.read_room("room")).players) == {"p1"}


# --- lifetimes ---


async def test_every_record_has_a_lifetime(server: EmbeddedRedis, store: Store) -> None:
    await store.put_sfu(SfuState(address="ws://a", sfu="a", incarnation=1))
    await store.enter_room("room", PlayerRecord(player="p1", identity="bob"))
    await store.place_room("placed", wish("a"))
    await store.put_router(RouterRecord(router="r1"))
    await store.order_exit("sfu", "a", "ann")
    await store.command_sfu("cordon", "a", "ann", "")
    keys = set(await do(server.url, "KEYS", f"{{{store.keys.fleet}}}:*"))
    without = {key for key in keys if await do(server.url, "TTL", key) < 0}
    assert len(keys) >= 9
    # An index holds only ids, and drops those whose record is gone when it is read; since: one for each fleet.
    assert without == {store.keys.sfus, store.keys.routers, store.keys.since}


async def test_ids_without_a_record_leave_the_index_when_it_is_read(server: EmbeddedRedis, store: Store) -> None:
    keys = store.keys
    await store.put_sfu(SfuState(address="ws://a", sfu="a", incarnation=1))
    await store.put_router(RouterRecord(router="r1"))
    for index in (keys.sfus, keys.routers):
        await do(server.url, "SADD", index, *(f"gone-{number}" for number in range(300)))
    assert [state.sfu for state in await store.read_sfus()] == ["a"]
    assert [router.router for router in await store.read_routers()] == ["r1"]
    assert await do(server.url, "SCARD", keys.sfus) == await do(server.url, "SCARD", keys.routers) == 1


async def test_orders_that_are_over_are_not_read_and_go_at_the_next_one(server: EmbeddedRedis, store: Store) -> None:
    key = store.keys.exits
    await do(server.url, "HSET", key, "sfu:a", '{"scope":"sfu","target":"a","at":1000.5}', "sfu:b", "nonsense")
    assert await store.read_exits() == []
    order = await store.order_exit("sfu", "c", "ann")
    assert await store.read_exits() == [order]
    assert await do(server.url, "HKEYS", key) == ["sfu:c"]


async def test_an_order_is_never_dated_before_the_one_it_replaces(server: EmbeddedRedis, store: Store) -> None:
    later = await store.now() + 100.5
    await do(server.url, "HSET", store.keys.exits, "sfu:a", f'{{"scope":"sfu","target":"a","at":{later:.6f}}}')
    assert (await store.order_exit("sfu", "a", "ann")).at == pytest.approx(later, abs=1e-5)
