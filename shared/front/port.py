"""A listening port's doorkeeper: seats each connection before any protocol reads of it, and turns the others away."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import time
from collections.abc import Callable
from typing import cast

from shared.front.address import counts_for, forwarded_for, is_among, read_address
from shared.front.metrics import FrontMetrics
from shared.front.seats import Seat, SeatBounds, Seating, Seats, Short
from shared.front.settings import FrontSettings
from shared.front.tls import HANDSHAKE_WITHIN_S
from shared.logs import OncePerMinute

STALLED_S = 30.0
"""A peer that reads nothing of an answer for so long is cut off. A phone in a lift is away for less."""
MOST_EARLY = 64 * 1024
"""Of bytes that come before TLS is spoken: a ClientHello is one or two KiB long."""
HALF_S = 0.05
"""A request that was read so long ago and is not being answered is not whole."""
RETRY_AFTER_S = 2
REFUSAL = b'{"error":"too-many-connections","fix":"try again in a few seconds, or another address"}'
NO_SEAT = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nCache-Control: no-store\r\n"
    b"Retry-After: %d\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (RETRY_AFTER_S, len(REFUSAL), REFUSAL)
)
TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
FIX = {
    Short.ADDRESS: "max_per_address bounds them; a proxy belongs into trusted_proxies",
    Short.ADDRESS_WAITING: "they have sent no token or request; a proxy belongs into trusted_proxies",
    Short.WAITING: "too many connections have sent no token or request",
    Short.FULL: "all are taken",
    Short.NARROW: "connections come faster than they can be answered",
}
SLOW = "slow"
"""The metric's word for a request that did not come in time."""
ORIGIN = "origin"
"""The metric's word for a page of an origin that is not allowed."""
log = logging.getLogger("front")

MakeProtocol = Callable[[], asyncio.Protocol]


class Doorkeeper:
    """Of one port. Make its protocols with `door`."""

    def __init__(
        self,
        name: str,
        bounds: SeatBounds,
        settings: FrontSettings,
        metrics: FrontMetrics,
        *,
        hint: str = "",
        within_s: float | None = None,
        goodbye: Callable[[asyncio.Protocol], bytes] = lambda _: NO_SEAT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`hint` is told when all seats are taken. `within_s`: how long a request may take to come, headers and TLS
        included; None: the protocol sees to that. `goodbye`: what is sent to a connection that loses its seat."""
        self.name = name
        self.seats = Seats(bounds)
        self.within_s = within_s
        self.goodbye = goodbye
        self.clock = clock
        self.certificate = settings.certificate()
        self._proxies = settings.proxies()
        self._metrics = metrics
        self._hint = hint
        self._doors: dict[Seat, SeatedConnection] = {}
        self._by_transport: dict[asyncio.BaseTransport, SeatedConnection] = {}
        self._once = OncePerMinute(log, clock=clock)
        metrics.open.labels(name).set_function(lambda: len(self._doors))
        for why in (*Short, SLOW, ORIGIN):
            metrics.refused.labels(name, str(why))

    def door(self, make: MakeProtocol) -> SeatedConnection:
        """The protocol of a connection that has just come; `make` is called when it gets a seat."""
        return SeatedConnection(self, make)

    def at(self, transport: asyncio.BaseTransport | None) -> SeatedConnection | None:
        """The door that a connection came through."""
        return None if transport is None else self._by_transport.get(transport)

    def seat(self, door: SeatedConnection) -> Seat | None:
        """A seat for a newcomer, or None."""
        peer = door.transport.get_extra_info("peername")
        address = read_address(str(peer[0])) if peer else None
        counted = not is_among(address, self._proxies)
        seating = self.seats.take(counts_for(address), counted=counted, now=self.clock(), silent=self._silent)
        self._settle(seating, counts_for(address))
        if seating.seat is not None:
            self._doors[seating.seat] = door
            self._by_transport[door.transport] = door
        return seating.seat

    def secured(self, door: SeatedConnection, transport: asyncio.Transport) -> None:
        """It speaks TLS from now on, through this transport."""
        self._by_transport.pop(door.transport, None)
        door.transport = transport
        self._by_transport[transport] = door

    def forwarded(self, door: SeatedConnection, header: str | None) -> bool:
        """Count a proxy's connection for the address that its `X-Forwarded-For` names. False: that has no seat left."""
        seat = door.seat
        if header is None or seat is None or seat.counted:
            return True
        address = forwarded_for(header, trusted=self._proxies)
        if address is None:
            return True
        seating = self.seats.move(seat, counts_for(address), now=self.clock())
        self._settle(seating, counts_for(address))
        return seating.short is None or seating.evicted is not None

    def left(self, door: SeatedConnection) -> None:
        """The connection has ended."""
        self._by_transport.pop(door.transport, None)
        if door.seat is not None:
            del self._doors[door.seat]
            self.seats.release(door.seat)
            door.seat = None

    def too_slow(self) -> None:
        """A request did not come in time."""
        self._metrics.refused.labels(self.name, SLOW).inc()

    def wrong_origin(self, origin: str) -> None:
        """A page of this origin may not connect here."""
        self._metrics.refused.labels(self.name, ORIGIN).inc()
        fix = "pages of other hosts need their origin in allowed_origins"
        self._once.warning(f"front-{self.name}-{ORIGIN}", f"a page of {origin[:200]} is refused: {fix}")

    def _settle(self, seating: Seating, address: str) -> None:
        if seating.evicted is not None:
            self._doors.pop(seating.evicted).evict()
        if seating.short is not None:
            self._metrics.refused.labels(self.name, seating.short.value).inc()
            self._once.warning(f"front-{self.name}-{seating.short}", self._sentence(seating, address))

    def _sentence(self, seating: Seating, address: str) -> str:
        """Names what is short, for whom, and what to set."""
        act = "makes room for another" if seating.evicted is not None else "is refused"
        whose = f"of {address} " if seating.short in (Short.ADDRESS, Short.ADDRESS_WAITING) else ""
        fix = FIX[seating.short] if seating.short is not None else ""
        hint = f"; {self._hint}" if self._hint and not whose else ""
        return (
            f"the {self.name} port is short of connections: one {whose}{act}; {self.seats.taken} are open, "
            f"{self.seats.waiting} of them wait: {fix}{hint}"
        )

    def _silent(self, seat: Seat) -> bool:
        return self._doors[seat].is_silent()


class SeatedConnection(asyncio.Protocol):
    """Stands between a connection's transport and the protocol that serves it, once that has a seat."""

    __slots__ = (
        "_early",
        "_heard_at",
        "_inner",
        "_keeper",
        "_make",
        "_securing",
        "_served",
        "_timer",
        "seat",
        "transport",
    )

    transport: asyncio.Transport

    def __init__(self, keeper: Doorkeeper, make: MakeProtocol) -> None:
        self._keeper = keeper
        self._make = make
        self._inner: asyncio.Protocol | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._heard_at: float | None = None
        self._served = False
        self._early: bytearray | None = bytearray() if keeper.certificate is not None else None
        """What came before TLS was spoken, or before its protocol was there to read it."""
        self._securing: asyncio.Task[None] | None = None
        self.seat: Seat | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for a seat; without one the answer is 503 at once."""
        self.transport = cast(asyncio.Transport, transport)
        self.seat = self._keeper.seat(self)
        certificate = self._keeper.certificate
        if self.seat is None:
            self._end(NO_SEAT if certificate is None else b"")
            return
        self._expect_request()
        if certificate is None:
            self._begin()
        else:
            self._securing = asyncio.get_running_loop().create_task(self._secure(certificate.context()))

    def _begin(self) -> None:
        self._inner = self._make()
        self._inner.connection_made(self.transport)

    async def _secure(self, context: ssl.SSLContext) -> None:
        """Speak TLS, inside the seat: `create_server(ssl=…)` would not say of a connection before its handshake."""
        loop, plain = asyncio.get_running_loop(), self.transport
        try:
            starting = loop.create_task(
                loop.start_tls(plain, self, context, server_side=True, ssl_handshake_timeout=HANDSHAKE_WITHIN_S)
            )
            for _ in range(2):
                await asyncio.sleep(0)  # until it reads from the connection, in our place
            self._hand_over(plain)
            secure = await starting
        except (OSError, RuntimeError, TimeoutError, asyncio.CancelledError):  # cancelled by `_end`
            secure = None
        if secure is None or self.seat is None:
            (secure or plain).abort()
            self.connection_lost(None)
            return
        self._keeper.secured(self, secure)
        since, self._early, self._heard_at = self._early, None, None
        self._begin()
        if since:  # the first request came with the end of the handshake
            self.data_received(bytes(since))

    def _hand_over(self, plain: asyncio.Transport) -> None:
        """Give the bytes that came before it to the protocol that speaks TLS."""
        if plain.get_protocol() is self:
            return  # it has ended
        tls = cast(asyncio.BufferedProtocol, plain.get_protocol())  # uvloop's is one that does not say so
        while self._early:
            buffer = tls.get_buffer(len(self._early))
            part = self._early[: memoryview(buffer).nbytes]
            memoryview(buffer)[: len(part)] = part
            tls.buffer_updated(len(part))
            del self._early[: len(part)]

    def data_received(self, data: bytes) -> None:
        """Pass on what has come."""
        if self.transport.is_closing():
            return
        if self._heard_at is None:
            self._heard_at = self._keeper.clock()
            self._expect_request()
        if self._inner is None:
            self._keep(data)
            return
        self._inner.data_received(data)

    def _keep(self, data: bytes) -> None:
        if self._early is not None:
            self._early += data
            if len(self._early) > MOST_EARLY:
                self.transport.abort()

    def eof_received(self) -> bool | None:
        """Pass on that nothing more will come."""
        return None if self._inner is None else self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the peer does not read, and watch for how long."""
        if self._inner is not None:
            self._inner.pause_writing()
            if self._keeper.within_s is not None:
                self._arm(STALLED_S, self.transport.abort)

    def resume_writing(self) -> None:
        """Pass on that it reads again."""
        if self._inner is not None:
            self._disarm()
            self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the seat back."""
        self._disarm()
        self._keeper.left(self)
        if self._inner is not None:
            inner, self._inner = self._inner, None
            inner.connection_lost(exc)

    def hold(self) -> None:
        """It has shown a token, or sent a request."""
        self._disarm()
        self._served = True
        if self.seat is not None:
            self._keeper.seats.hold(self.seat)

    def rest(self) -> None:
        """Its request is answered, and another one may follow."""
        self._heard_at = None
        if self.seat is not None:
            self._keeper.seats.rest(self.seat, now=self._keeper.clock())

    def evict(self) -> None:
        """Say so, and close: another connection has got the seat."""
        self.seat = None
        self._end(b"" if self._inner is None or self._served else self._keeper.goodbye(self._inner))

    def is_silent(self) -> bool:
        """It has sent no whole request: neither is one on its way to be read, nor was one read just now."""
        if _has_unread(self.transport):
            return False
        return self._heard_at is None or self._keeper.clock() - self._heard_at > HALF_S

    def _expect_request(self) -> None:
        if self._keeper.within_s is not None:
            self._arm(self._keeper.within_s, self._too_slow)

    def _too_slow(self) -> None:
        self._keeper.too_slow()
        self._end(TOO_SLOW if self._heard_at is not None and self._inner is not None else b"")

    def _end(self, last_words: bytes) -> None:
        self._disarm()
        if self.transport.is_closing():
            return
        if self._securing is not None and not self._securing.done():
            self._securing.cancel()
            return
        if last_words:
            self.transport.write(last_words)
        self.transport.close()
        self._arm(RETRY_AFTER_S, self.transport.abort)

    def _arm(self, wait_s: float, act: Callable[[], None]) -> None:
        self._disarm()
        self._timer = asyncio.get_running_loop().call_later(wait_s, act)

    def _disarm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _has_unread(transport: asyncio.Transport) -> bool:
    """Whether the kernel holds something that the loop has not read yet."""
    described = transport.get_extra_info("socket")
    if described is None or described.fileno() < 0:
        return False
    peeked = socket.socket(fileno=described.fileno())
    try:
        return bool(peeked.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT))
    except OSError:
        return False
    finally:
        peeked.detach()
