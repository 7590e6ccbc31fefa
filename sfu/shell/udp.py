"""The one UDP port of an SFU: reads, sorts by kind, hands on, and drives the plane's timers."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import Counter, deque
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol

from sfu.core.ice_lite import IceDrop, IceLite
from sfu.core.streams import stream_number
from sfu.plane.api import Address, Event, Plane, SocketPlane
from sfu.plane.choice import make_plane as default_plane
from sfu.plane.drops import DropReason
from sfu.shell.pktinfo import CONTROL_BYTES, MAPPED, ask_for_it, asked, is_bound_to_all, sent_from
from sfu.shell.streams import MediaStreams
from shared.logs import OncePerMinute
from shared.patience import stalled_s
from shared.rtc.demux import MAX_DATAGRAM, Traffic, classify

log = logging.getLogger("sfu.media")

BATCH = 64
"""Datagrams read per wake-up, so that websockets get their turn under load."""

BUFFER_BYTES = 4 * 1024 * 1024
"""Asked of the kernel for each direction: half a second of 64 Mbit/s while the loop is busy. It may grant less."""

MAX_WAITING = 8192
"""STUN and DTLS datagrams that wait for us; beyond that the oldest are dropped, as by a socket's buffer."""

MAX_SLEEP_S = 0.05
"""Longest time between two looks at the plane, for what control calls have set going."""

CONSENT_EVERY_S = 1.0

_SO_SNDBUFFORCE, _SO_RCVBUFFORCE = 32, 33
"""Linux; Python's socket module has no names for them."""


class PortDrop(StrEnum):
    """Why the port dropped a datagram, besides `IceDrop`."""

    UNREADABLE = DropReason.UNREADABLE.value
    DTLS_UNKNOWN_ADDRESS = "dtls-unknown-address"
    SEND_BUFFER_FULL = DropReason.SEND_BUFFER_FULL.value
    SEND_FAILED = DropReason.SEND_FAILED.value
    RECEIVE_FAILED = "receive-failed"


def mapped(address: Address) -> tuple[str, int]:
    """How an IPv6 socket wants an IPv4 address written."""
    host, port = address[:2]
    return (host if ":" in host else MAPPED + host), port


def unmapped(source: tuple[str, int] | tuple[str, int, int, int]) -> tuple[str, int]:
    """The address a datagram came from, as the rest of the code knows it."""
    return source[0].removeprefix(MAPPED), source[1]


def widen(sock: socket.socket) -> None:
    """Ask for `BUFFER_BYTES` in both directions; past the system's limit where we may, else say how to raise that."""
    for option, force, limit in (
        (socket.SO_RCVBUF, _SO_RCVBUFFORCE, "net.core.rmem_max"),
        (socket.SO_SNDBUF, _SO_SNDBUFFORCE, "net.core.wmem_max"),
    ):
        try:
            sock.setsockopt(socket.SOL_SOCKET, force, BUFFER_BYTES)
        except OSError:
            sock.setsockopt(socket.SOL_SOCKET, option, BUFFER_BYTES)
        granted = sock.getsockopt(socket.SOL_SOCKET, option) // 2  # the kernel doubles it for its own bookkeeping
        if granted < BUFFER_BYTES // 2:
            log.warning(
                "[media] the media socket has a buffer of %d KiB, too little for a frame to hundreds of viewers: "
                "raise it with `sysctl -w %s=%d`",
                granted // 1024,
                limit,
                BUFFER_BYTES,
            )


class DatagramUser(Protocol):
    """What the port hands to a peer's transport; see `sfu.shell.peer`."""

    def dtls_received(self, datagram: bytes, address: Address) -> None: ...

    def consent_lost(self) -> None: ...


class MediaPort:
    """Open it with `MediaPort.open`, make peers with `sfu.shell.peer.PeerTransport`, end it with `close`."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        make_plane: Callable[[Callable[[bytes, Address], None]], Plane],
        on_events: Callable[[list[Event]], None],
        stream_socket: socket.socket | None = None,
    ) -> None:
        """`stream_socket` listens for media over TCP, and is closed with the port."""
        self._sock = sock
        self._six = sock.family == socket.AF_INET6
        self._bound_to_all = is_bound_to_all(sock)
        self._loop = asyncio.get_running_loop()
        self._on_events = on_events
        self._users: dict[int, DatagramUser] = {}
        self._waiting: deque[tuple[bytes, Address]] = deque(maxlen=MAX_WAITING)
        """STUN and DTLS that the thread has left for us, oldest first."""
        self._next_peer = 1
        self._trouble = OncePerMinute(log, clock=self._loop.time)
        self._timer: asyncio.Handle | None = None
        self._due = 0.0
        """When it fires; uvloop's handle of what is due at once does not say."""
        self._consent_at = self._loop.time() + CONSENT_EVERY_S
        self._closed = False
        self.drops: Counter[str] = Counter()
        """Datagrams dropped, by `PortDrop` and `IceDrop`; the plane counts its own."""
        self.ends: Counter[str] = Counter()
        """Peer connections that ended without our closing them, by `PeerEnd` or `DtlsFailure`."""
        self.streams = (
            MediaStreams(stream_socket, receive=self._receive_streamed, drops=self.drops) if stream_socket else None
        )
        """Media over TCP; None: there is none."""
        self.ice = IceLite()
        self.plane = make_plane(self.send)
        self._threaded = self.plane if isinstance(self.plane, SocketPlane) else None
        self._sends_runs = self._threaded is not None and self._threaded.gso
        if self._threaded is not None:
            self._threaded.start(sock.fileno())
            self._watch_runs()
            self._loop.add_reader(self._threaded.event_fd, self._told)
        else:
            self._loop.add_reader(sock.fileno(), self._readable)
        self._schedule()

    @classmethod
    def open(
        cls,
        host: str,
        port: int,
        *,
        on_events: Callable[[list[Event]], None],
        make_plane: Callable[[Callable[[bytes, Address], None]], Plane] | None = None,
        make_streams: Callable[[int], socket.socket] | None = None,
    ) -> MediaPort:
        """Bind (port 0: any free one); `host` `::` takes IPv4 as well. `on_events` gets the plane's facts.

        `make_streams` gets the port's number and returns the socket that listens for media over TCP.

        Raises `OSError` when the port is taken.
        """
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        try:
            if sock.family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            sock.setblocking(False)
            widen(sock)
            sock.bind((host, port))
            if is_bound_to_all(sock):
                ask_for_it(sock)
            stream_socket = make_streams(sock.getsockname()[1]) if make_streams is not None else None
        except OSError:
            sock.close()
            raise
        make_plane = make_plane or default_plane
        return cls(sock, make_plane=make_plane, on_events=on_events, stream_socket=stream_socket)

    @property
    def address(self) -> tuple[str, int]:
        """Where it is bound."""
        host, port = self._sock.getsockname()[:2]
        return host, port

    @property
    def now(self) -> float:
        """The clock of the plane and of everything on this port: monotonic seconds."""
        return self._loop.time()

    def close(self) -> None:
        """Stop reading and ticking; peers should have been closed before."""
        if self._closed:
            return
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self._threaded is not None:
            self._loop.remove_reader(self._threaded.event_fd)
            self._threaded.stop()
        else:
            self._loop.remove_reader(self._sock.fileno())
        if self.streams is not None:
            self.streams.close()
        self._sock.close()

    # -- peers

    def attach(self, user: DatagramUser) -> int:
        """A new peer id, known to the plane from now on."""
        peer, self._next_peer = self._next_peer, self._next_peer + 1
        self._users[peer] = user
        self.plane.add_peer(peer)
        return peer

    def detach(self, peer: int) -> None:
        """Forget a peer everywhere; safe twice."""
        self._users.pop(peer, None)
        if self.streams is not None:
            self.streams.forget(peer)
        self.ice.forget(peer)
        self.plane.remove_peer(peer)

    def ended(self, reason: str, detail: str) -> None:
        """Count and log the end of a peer connection."""
        self.ends[detail or reason] += 1
        if detail:
            self._trouble.warning(detail, "a peer's DTLS handshake failed")

    # -- datagrams

    def send(self, datagram: bytes, address: Address) -> None:
        """Send or drop: a full buffer is the network's business, and no peer may harm another."""
        if self.streams is not None and stream_number(address) is not None:
            self.streams.send(datagram, address)
            return
        try:
            to = mapped(address) if self._six else address[:2]
            if len(address) > 2:
                self._sock.sendmsg([datagram], sent_from(address[2], six=self._six), 0, to)
            else:
                self._sock.sendto(datagram, to)
        except (BlockingIOError, InterruptedError):
            self.drops[PortDrop.SEND_BUFFER_FULL] += 1
        except OSError as error:
            full = error.errno == errno.ENOBUFS
            self.drops[PortDrop.SEND_BUFFER_FULL if full else PortDrop.SEND_FAILED] += 1
            if not full and not self._closed:
                self._trouble.warning("send-failed", f"a datagram of {len(datagram)} bytes was not sent: {error}")

    def dropped(self, reason: str) -> int:
        """Datagrams dropped for a reason of `PortDrop`, `IceDrop` or the plane's `DropReason`, here or in the plane."""
        return self.drops[reason] + self.plane.snapshot().totals.drops.get(reason, 0)

    def _told(self) -> None:
        """The plane's thread has something for us."""
        assert self._threaded is not None
        idle = not self._waiting
        self._waiting.extend(self._threaded.datagrams())
        for datagram, address in self._threaded.streamed():
            self.send(datagram, address)
        self._deliver_events()
        if idle:
            self._take_waiting()

    def _take_waiting(self) -> None:
        """A batch of what the thread has left for us; the rest after others have had their turn."""
        now = self._loop.time()
        for _ in range(min(BATCH, len(self._waiting))):
            self._receive(*self._waiting.popleft(), now)
        self._deliver_events()
        if self._waiting and not self._closed:
            self._loop.call_soon(self._take_waiting)

    def _readable(self) -> None:
        now = self._loop.time()
        for _ in range(BATCH):
            try:
                datagram, address = self._receive_one()
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self.drops[PortDrop.RECEIVE_FAILED] += 1
                self._trouble.warning("receive-failed", f"reading the media port failed: {error}")
                break
            self._receive(datagram, address, now)
        self._deliver_events()
        self._schedule()

    def _receive_one(self) -> tuple[bytes, Address]:
        if not self._bound_to_all:
            datagram, source = self._sock.recvfrom(MAX_DATAGRAM + 1)
            return datagram, unmapped(source)
        datagram, ancillary, _, source = self._sock.recvmsg(MAX_DATAGRAM + 1, CONTROL_BYTES)
        ours = asked(ancillary)
        return datagram, unmapped(source) if ours is None else (*unmapped(source), ours)

    def _receive_streamed(self, datagrams: list[bytes], address: Address) -> None:
        """What came over one TCP connection."""
        assert self.streams is not None
        now = self._loop.time()
        for datagram in datagrams:
            if classify(datagram) is not Traffic.STUN and self.streams.is_stranger(address):
                self.streams.checked(address, None)
                return
            self._receive(datagram, address, now)
        self._deliver_events()
        self._schedule()

    def _receive(self, datagram: bytes, address: Address, now: float) -> None:
        match classify(datagram):
            case Traffic.MEDIA:
                self.plane.handle(datagram, address, now=now)
            case Traffic.STUN:
                self._stun(datagram, address, now)
            case Traffic.DTLS:
                peer = self.plane.peer_at(address)
                if peer is None:
                    self.drops[PortDrop.DTLS_UNKNOWN_ADDRESS] += 1
                else:
                    self._users[peer].dtls_received(datagram, address)
            case Traffic.OTHER:
                self.drops[PortDrop.UNREADABLE] += 1

    def _stun(self, datagram: bytes, address: Address, now: float) -> None:
        outcome = self.ice.receive(datagram, address[:2], now=now)
        if self.streams is not None:
            self.streams.checked(address, None if isinstance(outcome, IceDrop) else outcome.peer)
        if isinstance(outcome, IceDrop):
            self.drops[outcome] += 1
            if outcome not in (IceDrop.MALFORMED, IceDrop.INDICATION):
                self._trouble.warning(outcome.value, f"a connectivity check from {address[0]} was not answered")
            return
        if not outcome.role_conflict:
            self.plane.add_address(outcome.peer, address, nominated=outcome.nominated, now=now)
        self.send(outcome.reply, address)

    # -- time

    def _schedule(self) -> None:
        if self._closed:
            return
        now = self._loop.time()
        if self._threaded is not None:
            # The thread keeps its own time.
            self._timer = self._timer or self._loop.call_at(now + CONSENT_EVERY_S, self._tick)
            return
        deadline = self.plane.next_deadline()
        when = now + MAX_SLEEP_S if deadline is None else max(now, min(deadline, now + MAX_SLEEP_S))
        if self._timer is not None:
            if self._due <= when and not self._timer.cancelled():
                return
            self._timer.cancel()
        self._timer, self._due = self._loop.call_at(when, self._tick), when

    def _tick(self) -> None:
        self._timer = None
        try:
            self._look_around(self._loop.time())
        finally:
            self._schedule()

    def _look_around(self, now: float) -> None:
        self.plane.tick(now=now)
        if now >= self._consent_at:
            # Reading may have stood still with us, or only our part of it: what we missed waits in a queue.
            self.ice.grant(stalled_s(now - self._consent_at))
            self._consent_at = now + CONSENT_EVERY_S
            self._end_the_silent(now)
            self._watch_runs()
            if self.streams is not None:
                self.streams.sweep()
        self._deliver_events()

    def _watch_runs(self) -> None:
        """Say once that UDP GSO was given up."""
        if self._sends_runs and self._threaded is not None and not self._threaded.gso:
            self._sends_runs = False
            log.warning(
                "[media] UDP GSO is off: the kernel or the network device can't send runs of datagrams as one, so each "
                "datagram is a send, which costs more CPU"
            )

    def _end_the_silent(self, now: float) -> None:
        if self.ice.silent(now=now):
            for peer in self.plane.snapshot().peers:
                if peer.last_heard is not None:
                    self.ice.heard(peer.peer, at=peer.last_heard)
        for silent in self.ice.silent(now=now):
            if (user := self._users.get(silent)) is not None:
                user.consent_lost()

    def _deliver_events(self) -> None:
        events = self.plane.events()
        if not events:
            return
        try:
            self._on_events(events)
        except Exception:
            # The port outlives a fault of its listener: the media of all peers depends on it.
            log.exception("[media] handling %d events failed", len(events))
