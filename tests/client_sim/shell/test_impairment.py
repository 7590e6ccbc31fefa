"""The impairment proxy over real sockets: both directions, one upstream address per player, its counts."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from client_sim.core.impairment import Impairment
from client_sim.shell import impairment
from client_sim.shell.impairment import ImpairmentProxy

WITHIN_S = 20.0


@contextmanager
def udp() -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.bind(("127.0.0.1", 0))
        yield sock


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with udp() as sock:
        yield sock


async def receive(sock: socket.socket) -> tuple[bytes, tuple[str, int]]:
    async with asyncio.timeout(WITHIN_S):
        return await asyncio.get_running_loop().sock_recvfrom(sock, 2048)


async def test_each_player_has_an_address_of_its_own_and_gets_its_answers(server: socket.socket) -> None:
    proxy = ImpairmentProxy.open(server.getsockname())
    with udp() as alice, udp() as bob:
        seen = {}
        for player, word in ((alice, b"alice"), (bob, b"bob"), (alice, b"alice")):
            player.sendto(word, proxy.address)
            datagram, address = await receive(server)
            assert datagram == word
            assert seen.setdefault(word, address) == address
        assert len(set(seen.values())) == 2
        for word, address in seen.items():
            server.sendto(b"to " + word, address)
        assert (await receive(alice))[0] == b"to alice"
        assert (await receive(bob))[0] == b"to bob"
    counts = proxy.counts()
    assert (counts["up"].taken, counts["down"].taken) == (3, 2)
    proxy.close()
    assert proxy.counts() == counts


async def test_directions_are_impaired_apart(server: socket.socket) -> None:
    proxy = ImpairmentProxy.open(server.getsockname(), up=Impairment(duplicate=1.0), down=Impairment(loss=1.0))
    with udp() as player:
        player.sendto(b"x", proxy.address)
        first, second = await receive(server), await receive(server)
        assert first == second
        server.sendto(b"y", first[1])
        async with asyncio.timeout(WITHIN_S):
            while not proxy.counts()["down"].lost:  # noqa: ASYNC110 - a socket is watched
                await asyncio.sleep(0.01)
    assert proxy.too_many == 0
    proxy.close()


async def test_a_jittered_path_delivers_everything_out_of_order(server: socket.socket) -> None:
    proxy = ImpairmentProxy.open(server.getsockname(), up=Impairment(jitter_s=0.05), seed=3)
    with udp() as player:
        for number in range(50):
            player.sendto(bytes((number,)), proxy.address)
        arrived = [(await receive(server))[0][0] for _ in range(50)]
    assert arrived != sorted(arrived)
    assert sorted(arrived) == list(range(50))
    assert proxy.counts()["up"].overtook > 0
    proxy.close()


async def test_a_change_is_for_those_who_are_there_too(server: socket.socket) -> None:
    proxy = ImpairmentProxy.open(server.getsockname())
    with udp() as player:
        player.sendto(b"x", proxy.address)
        await receive(server)
        proxy.impair(up=Impairment(duplicate=1.0))
        player.sendto(b"y", proxy.address)
        assert (await receive(server))[0] == (await receive(server))[0] == b"y"
    proxy.close()


async def test_without_a_target_nothing_is_passed_on_and_it_can_be_given_later(server: socket.socket) -> None:
    proxy = ImpairmentProxy.open()
    with udp() as player:
        player.sendto(b"early", proxy.address)
        async with asyncio.timeout(WITHIN_S):
            while not proxy.nowhere:  # noqa: ASYNC110 - a socket is watched
                await asyncio.sleep(0.01)
        proxy.target = server.getsockname()
        player.sendto(b"late", proxy.address)
        assert (await receive(server))[0] == b"late"
    proxy.close()
    proxy.close()


async def test_the_player_heard_least_recently_makes_room(
    server: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(impairment, "MAX_CLIENTS", 2)
    proxy = ImpairmentProxy.open(server.getsockname())
    with udp() as one, udp() as two, udp() as three:
        first = {}
        for player in (one, two, one, three, one, two):
            player.sendto(b"x", proxy.address)
            _, address = await receive(server)
            first.setdefault(player, address)
            kept = address == first[player]
    assert not kept, "the second was forgotten for the third, and came back as a new one"
    assert proxy.counts()["up"].taken == 6
    proxy.close()
