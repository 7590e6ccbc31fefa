"""A UDP proxy that is a bad network: between players and the one UDP port of an SFU, in both directions.

Let the SFU announce the proxy's address instead of its own (`announced_ip`, `announced_udp_port`). Each address that
sends to the proxy gets an upstream socket of its own, so that the SFU tells players apart as it would without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections.abc import Callable
from dataclasses import dataclass

from client_sim.core.impairment import ImpairedPath, Impairment, PathCounts

Address = tuple[str, int]

MAX_CLIENTS = 1000
"""Addresses known at a time; the least recently heard one makes room."""
MAX_WAITING = 50_000
"""Datagrams under way at a time, both directions together: what would exceed it is dropped."""
BATCH = 64
"""Datagrams read in one go, before others get their turn."""
BUFFER_BYTES = 1 << 20
MAX_DATAGRAM = 65_535


@dataclass(slots=True)
class _Client:
    """One address of the players' side."""

    address: Address
    upstream: socket.socket
    up: ImpairedPath
    down: ImpairedPath


class ImpairmentProxy:
    """Open it with `ImpairmentProxy.open`, end it with `close`; it may be given its `target` after it was opened.

    `up` is from players to the SFU. Each address and direction has a random source of its own, made of `seed` and the
    address' turn, so that one player's traffic does not change what another one meets.
    """

    def __init__(self, sock: socket.socket, *, up: Impairment, down: Impairment, seed: int) -> None:
        self.up = up.check()
        self.down = down.check()
        self.target: Address | None = None
        self.nowhere = 0
        """Datagrams dropped because there was no target."""
        self.too_many = 0
        """Datagrams dropped for `MAX_WAITING` or a full socket: the test bed's own loss, which is to be 0."""
        self._seed = seed
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._clients: dict[Address, _Client] = {}
        self._made = 0
        self._waiting = 0
        self._gone = {"up": PathCounts(), "down": PathCounts()}
        self._closed = False
        self._loop.add_reader(sock.fileno(), self._from_players)

    @classmethod
    def open(
        cls,
        target: Address | None = None,
        *,
        up: Impairment | None = None,
        down: Impairment | None = None,
        seed: int = 1,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> ImpairmentProxy:
        """Listen on `host`:`port` (0: any free one) and pass on to `target`; call it in a running event loop.

        Raises `OSError` when the port is taken, `BadSetting` for impairments that can't be.
        """
        sock = _socket()
        try:
            sock.bind((host, port))
            proxy = cls(sock, up=up or Impairment(), down=down or Impairment(), seed=seed)
        except BaseException:
            sock.close()
            raise
        proxy.target = target
        return proxy

    @property
    def address(self) -> Address:
        """Where players are to send to."""
        host, port = self._sock.getsockname()
        return host, port

    def impair(self, *, up: Impairment | None = None, down: Impairment | None = None) -> None:
        """Change a direction from now on, for all players; what is under way comes out as it was decided."""
        self.up, self.down = (up or self.up).check(), (down or self.down).check()
        for client in self._clients.values():
            client.up.impairment, client.down.impairment = self.up, self.down

    def counts(self) -> dict[str, PathCounts]:
        """What has become of all datagrams so far, by direction: `up`, `down`."""
        total = {way: PathCounts() for way in self._gone}
        for way, sum_ in total.items():
            for each in (self._gone[way], *(getattr(client, way).counts for client in self._clients.values())):
                _add(sum_, each)
        return total

    def close(self) -> None:
        """Stop; what is under way is lost. Safe twice."""
        if self._closed:
            return
        self._closed = True
        for client in list(self._clients.values()):
            self._forget(client)
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()

    # --- inside ---

    def _from_players(self) -> None:
        for _ in range(BATCH):
            try:
                datagram, address = self._sock.recvfrom(MAX_DATAGRAM)
            except OSError:
                return
            client = self._client(address)
            if client is not None:
                self._pass_on(client.up, datagram, client.upstream.send)

    def _from_sfu(self, client: _Client) -> None:
        for _ in range(BATCH):
            try:
                datagram = client.upstream.recv(MAX_DATAGRAM)
            except OSError:  # nothing more, or the SFU's port is closed, which is its business
                return
            self._pass_on(client.down, datagram, lambda data: self._sock.sendto(data, client.address))

    def _pass_on(self, path: ImpairedPath, datagram: bytes, send: Callable[[bytes], object]) -> None:
        now = self._loop.time()
        for at in path.take(len(datagram), now=now):
            if at <= now:
                self._send(datagram, send)
            elif self._waiting >= MAX_WAITING:
                self.too_many += 1
            else:
                self._waiting += 1
                self._loop.call_at(at, self._arrive, datagram, send)

    def _arrive(self, datagram: bytes, send: Callable[[bytes], object]) -> None:
        self._waiting -= 1
        if not self._closed:
            self._send(datagram, send)

    def _send(self, datagram: bytes, send: Callable[[bytes], object]) -> None:
        try:
            send(datagram)
        except BlockingIOError:
            self.too_many += 1
        except OSError:
            pass  # the other side is gone, or this address was forgotten while the datagram was under way

    def _client(self, address: Address) -> _Client | None:
        client = self._clients.pop(address, None) or self._new_client(address)
        if client is not None:
            self._clients[address] = client  # the last in the dict is the one heard last
        return client

    def _new_client(self, address: Address) -> _Client | None:
        if self.target is None:
            self.nowhere += 1
            return None
        if len(self._clients) >= MAX_CLIENTS:
            self._forget(next(iter(self._clients.values())))
        upstream = _socket()
        try:
            upstream.connect(self.target)
        except OSError:
            upstream.close()
            return None
        self._made += 1
        rngs = [random.Random(f"{self._seed}/{self._made}/{way}") for way in ("up", "down")]
        up, down = ImpairedPath(self.up, rng=rngs[0]), ImpairedPath(self.down, rng=rngs[1])
        client = _Client(address, upstream, up, down)
        self._loop.add_reader(upstream.fileno(), self._from_sfu, client)
        return client

    def _forget(self, client: _Client) -> None:
        self._clients.pop(client.address, None)
        _add(self._gone["up"], client.up.counts)
        _add(self._gone["down"], client.down.counts)
        self._loop.remove_reader(client.upstream.fileno())
        client.upstream.close()


def _socket() -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.setblocking(False)
    for option in (socket.SO_RCVBUF, socket.SO_SNDBUF):
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
    return sock


def _add(total: PathCounts, more: PathCounts) -> None:
    for name in PathCounts.__slots__:
        setattr(total, name, getattr(total, name) + getattr(more, name))
