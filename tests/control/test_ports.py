"""Ports that are handed out are free, and handed out once."""

from __future__ import annotations

import random
import socket

from control.shell.ports import HIGH, LOW, Ports, is_free


def test_ports_are_distinct_and_below_the_ephemeral_range() -> None:
    ports = Ports(rng=random.Random(1))
    taken = [ports.take() for _ in range(50)]
    assert len(set(taken)) == 50
    assert all(LOW <= port < HIGH for port in taken)


def test_a_wanted_port_that_is_taken_gives_the_next_free_one() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as busy:
        wanted = Ports(rng=random.Random()).take()
        busy.bind(("127.0.0.1", wanted))
        busy.listen()
        assert not is_free(wanted)
        assert Ports(rng=random.Random()).take(wanted) > wanted


def test_a_port_whose_udp_side_is_taken_is_not_free() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as busy:
        busy.bind(("127.0.0.1", 0))
        assert not is_free(busy.getsockname()[1])
