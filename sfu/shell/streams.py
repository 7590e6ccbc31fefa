"""Media over TCP, for networks that let no UDP through: connections in and out of the one event loop.

The plane's thread knows nothing of it but the address: what it sends there comes to us, what comes here goes to it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Callable

from sfu.core.media.addresses import Address
from sfu.core.stream_queue import StreamQueue
from sfu.core.streams import MAX_STRANGER_BYTES, StreamEnd, StreamTable, stream_address, stream_number
from sfu.shell.pktinfo import MAPPED
from shared.errors import BadPacket
from shared.host.files import file_shares
from shared.rtc.framing import Deframer, framed

log = logging.getLogger("sfu.media")

ACCEPTED_AT_ONCE = 16
READ_BYTES = 32 * 1024
"""At one look: a fast sender leaves others their turn."""

SEND_BUFFER_BYTES = 128 * 1024
"""Of the kernel for each connection; what it holds can't be dropped any more when it is late."""

UNACKNOWLEDGED_MS = 15_000
"""The other end has not acknowledged for so long: the connection is dead."""

ACCEPT_AGAIN_S = 1.0
"""After there was no file left for another connection."""

STREAM_FULL = "stream-full"
"""Why a datagram was dropped: its reader is too slow."""

STREAM_GONE = "stream-gone"
"""Why a datagram was dropped: the connection is closed."""


def listen_for_streams(host: str, port: int) -> socket.socket:
    """A socket that listens; `::` takes IPv4 as well. Port 0: any free one. Raises `OSError` when the port is taken."""
    six = ":" in host
    family = socket.AF_INET6 if six else socket.AF_INET
    sock = socket.create_server((host, port), family=family, dualstack_ipv6=six, backlog=128)
    sock.setblocking(False)
    return sock


class _Connection:
    """One accepted connection."""

    __slots__ = ("address", "deframer", "number", "queue", "sock", "taken", "waits_for_room")

    def __init__(self, number: int, sock: socket.socket, address: Address) -> None:
        self.number = number
        self.sock = sock
        self.address = address
        self.deframer = Deframer()
        self.queue = StreamQueue()
        self.taken = 0
        """Bytes that it has brought."""
        self.waits_for_room = False


class MediaStreams:
    """All connections of one listening socket, which it closes in the end."""

    def __init__(
        self, sock: socket.socket, *, receive: Callable[[list[bytes], Address], None], drops: Counter[str]
    ) -> None:
        """`receive` gets what one look at a connection brought. `drops` counts datagrams, and connections refused."""
        self._sock = sock
        self._receive = receive
        self._drops = drops
        self._loop = asyncio.get_running_loop()
        self._table = StreamTable(most=file_shares().media)
        self._open: dict[int, _Connection] = {}
        self._later: asyncio.TimerHandle | None = None
        self._listen()

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._sock.getsockname()[1]
        return port

    @property
    def count(self) -> int:
        """Connections that are open."""
        return len(self._open)

    def close(self) -> None:
        """Close everything."""
        if self._later is not None:
            self._later.cancel()
        self._loop.remove_reader(self._sock.fileno())
        self._sock.close()
        for connection in list(self._open.values()):
            self._close(connection)

    # -- connections

    def _listen(self) -> None:
        self._later = None
        self._loop.add_reader(self._sock.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                sock, source = self._sock.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("[media] no more media connections over TCP for now: %s", error)
                self._loop.remove_reader(self._sock.fileno())
                self._later = self._loop.call_later(ACCEPT_AGAIN_S, self._listen)
                return
            host = source[0].removeprefix(MAPPED)
            admitted = self._table.admit(host, now=self._loop.time())
            if isinstance(admitted, StreamEnd):
                self._drops[admitted] += 1
                sock.close()
                continue
            _prepare(sock)
            self._open[admitted] = connection = _Connection(admitted, sock, stream_address(host, source[1], admitted))
            self._loop.add_reader(sock.fileno(), self._readable, connection)

    def checked(self, address: Address, peer: int | None) -> None:
        """The connection brought a check: an authentic one of this peer, or none."""
        number = stream_number(address)
        if number is None:
            return
        if peer is not None:
            evicted = self._table.proved(number, peer, now=self._loop.time())
            if evicted is not None:
                self._end(self._open[evicted], StreamEnd.EVICTED)
        elif self._table.is_stranger(number) and number in self._open:
            self._end(self._open[number], StreamEnd.NO_CHECK)

    def is_stranger(self, address: Address) -> bool:
        """Its connection has shown no authentic check: nothing else is taken from it."""
        number = stream_number(address)
        return number is not None and self._table.is_stranger(number)

    def forget(self, peer: int) -> None:
        """The peer is closed, its connections with it."""
        for number in self._table.of(peer):
            self._close(self._open[number])

    def sweep(self) -> None:
        """Close those that have shown nothing for too long."""
        for number, end in self._table.due(now=self._loop.time()):
            self._end(self._open[number], end)

    def _end(self, connection: _Connection, end: StreamEnd) -> None:
        self._drops[end] += 1
        self._close(connection)

    def _close(self, connection: _Connection) -> None:
        if self._open.pop(connection.number, None) is None:
            return
        self._table.forget(connection.number)
        self._loop.remove_reader(connection.sock.fileno())
        self._loop.remove_writer(connection.sock.fileno())
        connection.sock.close()

    # -- datagrams

    def _readable(self, connection: _Connection) -> None:
        try:
            data = connection.sock.recv(READ_BYTES if connection.taken > MAX_STRANGER_BYTES else MAX_STRANGER_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._close(connection)
            return
        try:
            datagrams = connection.deframer.feed(data)
        except BadPacket:
            self._end(connection, StreamEnd.BAD_FRAME)
            return
        connection.taken += len(data)
        if datagrams:
            self._table.heard(connection.number, now=self._loop.time())
            self._receive(datagrams, connection.address)
        if connection.taken > MAX_STRANGER_BYTES and self._table.is_stranger(connection.number):
            self.checked(connection.address, None)

    def send(self, datagram: bytes, address: Address) -> None:
        """Send, keep for a moment, or drop; never raises."""
        connection = self._open.get(stream_number(address) or 0)
        if connection is None:
            self._drops[STREAM_GONE] += 1
            return
        if not connection.queue.put(framed(datagram), now=self._loop.time()):
            self._drops[STREAM_FULL] += 1
        if not connection.waits_for_room:
            self._write(connection)

    def _write(self, connection: _Connection) -> None:
        self._drops[STREAM_FULL] += connection.queue.expire(now=self._loop.time())
        try:
            while head := connection.queue.head():
                connection.queue.written(connection.sock.sendmsg(head, [], socket.MSG_NOSIGNAL))
        except (BlockingIOError, InterruptedError):
            self._wait_for_room(connection, True)
            return
        except OSError:
            self._close(connection)
            return
        self._wait_for_room(connection, False)

    def _wait_for_room(self, connection: _Connection, waits: bool) -> None:
        if waits == connection.waits_for_room:
            return
        connection.waits_for_room = waits
        if waits:
            self._loop.add_writer(connection.sock.fileno(), self._write, connection)
        else:
            self._loop.remove_writer(connection.sock.fileno())


def _prepare(sock: socket.socket) -> None:
    sock.setblocking(False)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNACKNOWLEDGED_MS)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
