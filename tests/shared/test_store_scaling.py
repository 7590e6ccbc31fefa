"""The autoscaler's keys on a real server: one leader, tokens that only grow, and no late write (A7, invariant 9)."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from typing import Any

import pytest
from redis.asyncio import Redis

from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.events import AnnounceCordoned, AnnounceUncordoned, CordonOrdered, Lease, UncordonOrdered
from sfu.core.drain.machine import DrainMachine
from shared.errors import BadRecord, Fenced, Refused
from shared.keys import Keys
from shared.records import CommandVerb
from shared.scaling_records import AUTOSCALER, ScaleAction, ScalingFigures, ScalingRecord, ScalingState
from shared.store.answers import Leader, Scaling
from shared.store.calls import WrongType
from shared.store.scaling import PATIENCE_S
from shared.store.store import Store

LEASE_S = 60.0
FAR_AHEAD = 2**50
"""A token that no clock reaches: of a server whose clock was wrong."""


class Server:
    """The server without the store in between: for tests only."""

    def __init__(self, url: str, fleet: str) -> None:
        self.keys = Keys(fleet)
        self.client: Redis = Redis.from_url(url)

    async def do(self, *command: Any) -> Any:
        return await self.client.execute_command(*command)  # type: ignore[no-untyped-call]

    async def ms(self) -> int:
        """Its clock [Unix ms]."""
        seconds, micros = await self.do("TIME")
        return int(seconds) * 1000 + int(micros) // 1000


@pytest.fixture
async def server(redis_url: str, fleet: str) -> AsyncIterator[Server]:
    made = Server(redis_url, fleet)
    yield made
    await made.client.aclose()


@pytest.fixture
async def store(redis_url: str, fleet: str) -> AsyncIterator[Store]:
    made = Store(redis_url, fleet=fleet, timeout_s=10.0)
    yield made
    await made.close()


async def lead(store: Store, controller: str = "a", *, seen: int = 0) -> int:
    """Take the lease, which must be free; the token."""
    term = await store.take_lease(controller, token=0, lease_s=LEASE_S, seen=seen)
    assert term.mine
    return term.leader.token


def record(action: ScaleAction = ScaleAction.SCALE_OUT, **fields: Any) -> ScalingRecord:
    return ScalingRecord(controller="a", action=action.value, **fields)


async def test_only_one_controller_leads(store: Store) -> None:
    token = await lead(store)
    other = await store.take_lease("b", token=0, lease_s=LEASE_S)
    assert not other.mine
    assert (other.leader.controller, other.leader.token) == ("a", token)
    assert 0 < other.leader.left_s <= LEASE_S


async def test_the_leader_renews_and_keeps_its_token(store: Store, server: Server) -> None:
    token = await lead(store)
    await server.do("PEXPIRE", server.keys.scaling_lease, 5000)
    renewed = await store.take_lease("a", token=token, lease_s=LEASE_S)
    assert renewed.mine
    assert renewed.leader == Leader("a", token, LEASE_S)


async def test_a_controller_of_the_same_name_that_has_started_again_is_not_the_leader(store: Store) -> None:
    await lead(store)
    assert not (await store.take_lease("a", token=0, lease_s=LEASE_S)).mine


async def test_each_term_has_a_greater_token(store: Store, server: Server) -> None:
    first = await lead(store)
    await server.do("DEL", server.keys.scaling_lease)
    second = await lead(store, "b")
    assert second > first
    late = await store.take_lease("a", token=first, lease_s=LEASE_S)
    assert not late.mine


async def test_a_token_is_not_given_twice_though_the_server_lost_its_data(store: Store, server: Server) -> None:
    seen = FAR_AHEAD
    await server.do("DEL", server.keys.scaling_lease, server.keys.scaling_token)
    assert await lead(store, seen=seen) > seen


async def test_a_controller_that_remembers_nothing_is_obeyed_by_an_sfu_that_has_seen_the_tokens_of_a_lost_past(
    store: Store, server: Server
) -> None:
    """Redis has lost its data and the controllers are new as well; the SFU has lived on and fences by what it saw."""
    token = 0
    for _ in range(3):
        await server.do("DEL", server.keys.scaling_lease)
        token = await lead(store)
    sfu = DrainMachine(DrainBounds(), rng=random.Random(7))
    lease = Lease(lease_s=3600.0)
    sfu.handle(CordonOrdered(command="c1", by=AUTOSCALER, lease=lease, token=token), now=0.0)
    assert sfu.handle(UncordonOrdered(command="u1", by=AUTOSCALER, token=token), now=1.0) == [AnnounceUncordoned()]
    await server.do("DEL", server.keys.scaling_lease, server.keys.scaling_token)
    while await server.ms() < token:  # three terms within one millisecond: no fleet's, but a test's
        pass
    fresh = await lead(store, "new")
    again = sfu.handle(CordonOrdered(command="c2", by=AUTOSCALER, lease=lease, token=fresh), now=2.0)
    assert again == [AnnounceCordoned()]


async def test_a_lease_that_was_given_back_is_free_at_once(store: Store) -> None:
    token = await lead(store)
    assert not await store.release_lease("b", token)
    assert not await store.release_lease("a", token + 1)
    assert await store.release_lease("a", token)
    assert await lead(store, "b") > token


async def test_a_lease_without_an_end_gets_one(store: Store, server: Server) -> None:
    await server.do("HSET", server.keys.scaling_lease, "controller", "x", "token", "what")
    answer = await store.take_lease("a", token=0, lease_s=LEASE_S)
    assert answer.leader.token == 0
    assert 0 < await server.do("PTTL", server.keys.scaling_lease) <= LEASE_S * 1000


@pytest.mark.parametrize("name", ["scaling_lease", "scaling_token"])
async def test_a_lease_or_token_of_another_type_is_no_leadership(store: Store, server: Server, name: str) -> None:
    key = getattr(server.keys, name)
    await server.do("LPUSH", key, "what")
    with pytest.raises(WrongType):
        await store.take_lease("a", token=0, lease_s=LEASE_S)
    assert await server.do("LRANGE", key, 0, -1) == [b"what"]
    assert store.counts["bad-record"] == 1


@pytest.mark.parametrize("token", ["seven", "-1", str(2**53), "9" * 400])
async def test_a_token_that_is_no_number_or_beyond_counting_is_no_leadership(
    store: Store, server: Server, token: str
) -> None:
    await server.do("SET", server.keys.scaling_token, token)
    with pytest.raises(WrongType):
        await store.take_lease("a", token=0, lease_s=LEASE_S)
    with pytest.raises(WrongType):
        await store.put_scaling(2**53, ScalingState())
    assert await server.do("GET", server.keys.scaling_token) == token.encode()


async def test_an_absurd_token_of_a_made_up_leader_is_not_heard_of(store: Store, server: Server) -> None:
    """Else the next real token would be the one after it, from where no leader can count on."""
    await server.do("HSET", server.keys.scaling_lease, "controller", "x", "token", "9" * 20)
    assert (await store.take_lease("a", token=0, lease_s=LEASE_S)).leader == Leader("x", 0, LEASE_S)


@pytest.mark.parametrize("made_up", [2**52 - 1, 2**52, 2**53 - 1, 10**16 - 1])
async def test_a_made_up_token_near_the_end_of_numbers_spoils_no_later_one(
    store: Store, server: Server, made_up: int
) -> None:
    await server.do("HSET", server.keys.scaling_lease, "controller", "x", "token", made_up)
    seen = (await store.take_lease("a", token=0, lease_s=LEASE_S)).leader.token
    await server.do("DEL", server.keys.scaling_lease)  # it ends
    token = await lead(store, seen=seen)
    assert (await store.read_scaling_state(token)).state == ScalingState()


@pytest.mark.parametrize(
    ("raw", "key"), [(b'{"launch":{"request":""}}', "launch"), (b'{"cooldown_left_s":1e999}', "cooldown")]
)
async def test_a_state_that_can_not_be_is_refused_as_a_whole(
    store: Store, server: Server, raw: bytes, key: str
) -> None:
    token = await lead(store)
    await server.do("SET", server.keys.scaling_state, raw)
    with pytest.raises(BadRecord, match=key):
        await store.read_scaling_state(token)


@pytest.mark.parametrize(
    "newest", [b'{"id":1e308,"at":1e300}', b'{"id":-1e400,"at":0}', b'{"id":1,"at":99999999999}', b'{"id":1.5}']
)
async def test_an_audit_whose_newest_record_is_absurd_goes_on_with_true_times(
    store: Store, server: Server, newest: bytes
) -> None:
    """A clock that was a year ahead for a moment must not date all records of that year."""
    token = await lead(store)
    await server.do("LPUSH", server.keys.scaling_audit, newest)
    before = await server.ms() / 1000
    await store.put_scaling(token, ScalingState(), [record(), record()])
    second, first = (await store.read_scaling(2)).records
    assert second.id == first.id + 1
    assert before <= first.at <= second.at < before + 600


async def test_a_lease_for_years_ends_like_any_other(store: Store, server: Server) -> None:
    await server.do("HSET", server.keys.scaling_lease, "controller", "x", "token", "5")
    await server.do("PEXPIRE", server.keys.scaling_lease, 10**12)
    await store.take_lease("a", token=0, lease_s=LEASE_S)
    assert 0 < await server.do("PTTL", server.keys.scaling_lease) <= LEASE_S * 1000
    await server.do("PEXPIRE", server.keys.scaling_lease, int(20 * LEASE_S * 1000))  # by other settings
    await store.take_lease("a", token=0, lease_s=LEASE_S)
    assert await server.do("PTTL", server.keys.scaling_lease) > 10 * LEASE_S * 1000


async def test_the_state_comes_back_and_is_new_at_first(store: Store) -> None:
    token = await lead(store)
    assert (await store.read_scaling_state(token)).state == ScalingState()
    state = ScalingState(tick=3, hits=(True, False), extra={"newer": [1]})
    await store.put_scaling(token, state)
    kept = await store.read_scaling_state(token)
    assert kept.state == state
    assert kept.at > 1_600_000_000


async def test_the_next_leader_goes_on_from_the_state(store: Store, server: Server) -> None:
    await store.put_scaling(await lead(store), ScalingState(tick=3))
    await server.do("DEL", server.keys.scaling_lease)
    assert (await store.read_scaling_state(await lead(store, "b"))).state.tick == 3


async def test_a_late_write_of_a_former_leader_changes_nothing(store: Store, server: Server) -> None:
    old = await lead(store)
    await server.do("DEL", server.keys.scaling_lease)
    new = await lead(store, "b")
    await store.put_scaling(new, ScalingState(tick=9))
    with pytest.raises(Fenced) as refused:
        await store.put_scaling(old, ScalingState(tick=1), [record()])
    assert (refused.value.token, refused.value.newest) == (old, new)
    with pytest.raises(Fenced):
        await store.read_scaling_state(old)
    with pytest.raises(Fenced):
        await store.command_fenced(CommandVerb.CORDON, "s", token=old)
    seen = await store.read_scaling(10)
    assert seen.state == ScalingState(tick=9)
    assert seen.records == ()
    assert await store.read_commands(["s"]) == []


async def test_a_token_of_a_lost_past_is_not_the_newest_either(store: Store, server: Server) -> None:
    old = await lead(store, seen=FAR_AHEAD)
    await server.do("DEL", server.keys.scaling_lease, server.keys.scaling_token)
    await lead(store, "b")
    with pytest.raises(Fenced):
        await store.put_scaling(old, ScalingState())


async def test_records_are_numbered_and_dated_by_the_server(store: Store) -> None:
    token = await lead(store)
    figures = ScalingFigures(mean_load=0.7, nodes=3)
    await store.put_scaling(
        token, ScalingState(), [record(reason="hot", figures=figures), record(ScaleAction.LAUNCHED)]
    )
    await store.put_scaling(token, ScalingState(), [record(ScaleAction.SCALE_IN)])
    records = (await store.read_scaling(10)).records
    assert [(each.id, each.action, each.token) for each in records] == [
        (3, "scale-in", token),
        (2, "launched", token),
        (1, "scale-out", token),
    ]
    assert records[2].figures == figures
    assert records[0].at >= records[1].at > 1_600_000_000
    assert len((await store.read_scaling(2)).records) == 2


async def test_the_audit_keeps_the_last_thousand(store: Store, server: Server) -> None:
    token = await lead(store)
    for _ in range(3):
        await store.put_scaling(token, ScalingState(), [record()] * 400)
    assert await server.do("LLEN", server.keys.scaling_audit) == 1000
    assert (await store.read_scaling(1)).records[0].id == 1200


@pytest.mark.parametrize("name", ["scaling_state", "scaling_audit"])
async def test_a_state_or_audit_of_another_type_is_not_written_over(store: Store, server: Server, name: str) -> None:
    token = await lead(store)
    key = getattr(server.keys, name)
    await server.do("SADD", key, "what")
    with pytest.raises(WrongType):
        await store.put_scaling(token, ScalingState(), [record()])
    assert await server.do("SMEMBERS", key) in ({b"what"}, [b"what"])
    other = server.keys.scaling_audit if name == "scaling_state" else server.keys.scaling_state
    assert await server.do("EXISTS", other) == 0
    seen = await store.read_scaling(10)
    assert seen.leader is not None
    assert seen.leader.token == token
    assert store.counts["bad-record"] == 2


async def test_a_state_that_can_not_be_read_is_an_error_for_the_leader_and_absent_for_others(
    store: Store, server: Server
) -> None:
    token = await lead(store)
    await server.do("SET", server.keys.scaling_state, '{"tick": "many"}')
    with pytest.raises(BadRecord):
        await store.read_scaling_state(token)
    assert (await store.read_scaling(5)).state is None


async def test_no_controller_has_scaled_yet(store: Store) -> None:
    assert await store.read_scaling(10) == Scaling()


async def test_a_command_carries_lease_deadline_and_token(store: Store) -> None:
    token = await lead(store)
    given = await store.command_fenced(
        CommandVerb.CORDON, "s", token=token, reason="scale-in", lease_s=3600.0, drain_max_s=1800.0
    )
    (read,) = await store.read_commands(["s"])
    assert read == given
    assert (read.by, read.verb, read.lease_s, read.drain_max_s, read.token) == (AUTOSCALER, "cordon", 3600, 1800, token)
    again = await store.command_fenced(CommandVerb.CORDON, "s", token=token)
    assert again.command != given.command


async def test_a_persons_command_that_may_not_have_arrived_yet_stands(store: Store, server: Server) -> None:
    token = await lead(store)
    order = await store.command_sfu("uncordon", "s", "kim", "")
    with pytest.raises(Refused, match="kim"):
        await store.command_fenced(CommandVerb.CORDON, "s", token=token)
    assert await store.read_commands(["s"]) == [order]
    old = b'{"command":"c","verb":"uncordon","sfu":"s","by":"kim","at":%f}' % (order.at - PATIENCE_S - 1)
    await server.do("HSET", server.keys.commands, "s", old)
    await store.command_fenced(CommandVerb.CORDON, "s", token=token)


async def test_a_persons_command_from_the_future_stands_no_longer_than_the_patience(
    store: Store, server: Server
) -> None:
    """The server's clock was set back: by a little it is a command of just now, by more it would stand for too long."""
    token = await lead(store)
    person = b'{"command":"c","verb":"uncordon","sfu":"s","by":"kim","at":%f}'
    now = await server.ms() / 1000
    await server.do("HSET", server.keys.commands, "s", person % (now + PATIENCE_S / 2))
    with pytest.raises(Refused, match="kim"):
        await store.command_fenced(CommandVerb.CORDON, "s", token=token)
    far = now + 30 * PATIENCE_S
    await server.do("HSET", server.keys.commands, "s", person % far)
    given = await store.command_fenced(CommandVerb.CORDON, "s", token=token)
    assert given.at == pytest.approx(far, abs=0.001), "and is never older than what it follows"
    assert await store.read_commands(["s"]) == [given]
