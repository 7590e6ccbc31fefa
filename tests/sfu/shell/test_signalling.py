"""Where players' websockets are listened for."""

from __future__ import annotations

import socket

import pytest

from sfu.shell.signalling import listen


@pytest.mark.parametrize(
    ("host", "reached"), [("127.0.0.1", ("127.0.0.1",)), ("::1", ("::1",)), ("::", ("::1", "127.0.0.1"))]
)
def test_a_socket_listens_where_it_is_told_and_the_unspecified_ipv6_address_takes_ipv4_as_well(
    host: str, reached: tuple[str, ...]
) -> None:
    with listen(host, 0) as sock:
        for address in reached:
            socket.create_connection((address, sock.getsockname()[1]), timeout=5).close()


def test_a_port_that_is_taken_is_an_error() -> None:
    with listen("127.0.0.1", 0) as sock, pytest.raises(OSError, match="in use"):
        listen("127.0.0.1", sock.getsockname()[1])
