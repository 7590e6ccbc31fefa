"""Free ports on this host for the programs of a local fleet, and addresses they can listen on."""

from __future__ import annotations

import ipaddress
import random
import socket
from collections.abc import Collection, Iterator

from shared.errors import BadSetting, NoPort

LOW, HIGH = 20_000, 32_000
"""Below Linux' ephemeral range (32768 on), so that no outgoing connection takes a port between our look and its use."""
MOST_PORT = 65_535
_CHANCE = random.SystemRandom()
"""Not an argument: two programs that draw alike get in each other's way."""


def check_host(host: str) -> None:
    """Raise `BadSetting` unless programs here can listen on this address and players can be sent to it."""
    try:
        address = ipaddress.IPv4Address(host)
    except ValueError:
        detail = f"{host!r} is no IPv4 address in numbers, such as 127.0.0.1"
        raise BadSetting(setting="--host", detail=detail[:200]) from None
    if address.is_unspecified:
        detail = f"players can't be sent to {host}; give the address at which they reach this machine"
        raise BadSetting(setting="--host", detail=detail)
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:
            detail = f"{host} is no address of this machine; `ip address` lists those, and 127.0.0.1 always is one"
            raise BadSetting(setting="--host", detail=detail) from None


def check_port(port: int) -> None:
    """Raise `BadSetting` unless it is a port, or 0 for any free one."""
    if not 0 <= port <= MOST_PORT:
        raise BadSetting(setting="--port", detail=f"must be 0 to {MOST_PORT}; 0 takes any free one")


def is_free(port: int, *, host: str = "127.0.0.1") -> bool:
    """Whether both TCP and UDP can be bound there right now."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as probe:
            if kind == socket.SOCK_STREAM:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                return False
    return True


def in_any_order(ports: range, *, but: Collection[int]) -> list[int]:
    """These ports but those, drawn."""
    return [port for port in _CHANCE.sample(ports, len(ports)) if port not in but]


class Ports:
    """Hands out free ports, each one once."""

    def __init__(self, *, host: str = "127.0.0.1") -> None:
        self._host = host
        self._given: set[int] = set()

    def take(self, wanted: int | None = None) -> int:
        """A free port: `wanted` or the next free one after it, or any. Raises `NoPort` when none is left."""
        least, most = (LOW, HIGH - 1) if wanted is None else (wanted, MOST_PORT)
        for port in range(least, most + 1) if wanted is not None else self._drawn():
            if port not in self._given and is_free(port, host=self._host):
                self._given.add(port)
                return port
        raise NoPort(host=self._host, least=least, most=most)

    def _drawn(self) -> Iterator[int]:
        for _ in range(HIGH - LOW):
            yield _CHANCE.randrange(LOW, HIGH)
