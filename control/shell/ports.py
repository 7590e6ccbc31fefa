"""Free ports on this host for the programs of a local fleet."""

from __future__ import annotations

import random
import socket

LOW, HIGH = 20_000, 32_000
"""Below Linux' ephemeral range (32768 on), so that no outgoing connection takes a port between our look and its use."""


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


class Ports:
    """Hands out free ports, each one once."""

    def __init__(self, *, rng: random.Random, host: str = "127.0.0.1") -> None:
        self._rng = rng
        self._host = host
        self._given: set[int] = set()

    def take(self, wanted: int | None = None) -> int:
        """A free port: `wanted` or the next free one after it, or any. Raises `OSError` when none is left."""
        for attempt in range(HIGH - LOW):
            port = self._rng.randrange(LOW, HIGH) if wanted is None else wanted + attempt
            if port < 65536 and port not in self._given and is_free(port, host=self._host):
                self._given.add(port)
                return port
        raise OSError(f"no free port on {self._host}")
