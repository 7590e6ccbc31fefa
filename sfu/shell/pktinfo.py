"""Which of this host's addresses a datagram was sent to, and sending from that one (ip(7), RFC 3542 section 6)."""

from __future__ import annotations

import socket
import struct

_IP_PKTINFO = 8
"""Linux; Python's socket module has no name for it before 3.12."""

_FOUR = struct.Struct("=I4s4s")
"""`in_pktinfo`: interface, our address, address in the datagram's header."""

_SIX = struct.Struct("=16sI")
"""`in6_pktinfo`: our address, interface."""

CONTROL_BYTES = 128
"""Room for what the kernel tells with a datagram."""

MAPPED = "::ffff:"
"""Before an IPv4 address on an IPv6 socket (RFC 4291 section 2.5.5.2)."""

Ancillary = list[tuple[int, int, bytes]]


def is_bound_to_all(sock: socket.socket) -> bool:
    """The socket takes what is sent to any address of this host."""
    return sock.getsockname()[0] in ("0.0.0.0", "::")


def ask_for_it(sock: socket.socket) -> None:
    """Have the kernel tell with each datagram which address it was sent to."""
    if sock.family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)


def asked(ancillary: Ancillary) -> str | None:
    """Our address that the datagram was sent to, as the kernel has told."""
    for level, kind, data in ancillary:
        if (level, kind) == (socket.IPPROTO_IP, _IP_PKTINFO):
            return socket.inet_ntop(socket.AF_INET, _FOUR.unpack_from(data)[1])
        if (level, kind) == (socket.IPPROTO_IPV6, socket.IPV6_PKTINFO):
            return socket.inet_ntop(socket.AF_INET6, _SIX.unpack_from(data)[0]).removeprefix(MAPPED)
    return None


def sent_from(ours: str, *, six: bool) -> Ancillary:
    """What has a datagram sent from this address of ours, on an IPv6 socket or an IPv4 one."""
    if not six:
        return [(socket.IPPROTO_IP, _IP_PKTINFO, _FOUR.pack(0, socket.inet_aton(ours), bytes(4)))]
    packed = socket.inet_pton(socket.AF_INET6, ours if ":" in ours else MAPPED + ours)
    return [(socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, _SIX.pack(packed, 0))]
