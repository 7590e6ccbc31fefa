"""Ports that are handed out are free, and handed out once."""

from __future__ import annotations

import random
import socket

import pytest

from shared.errors import BadSetting, NoPort
from shared.host.ports import HIGH, LOW, Ports, check_host, check_port, in_any_order, is_free


def test_ports_are_distinct_and_below_the_ephemeral_range() -> None:
    ports = Ports()
    taken = [ports.take() for _ in range(50)]
    assert len(set(taken)) == 50
    assert all(LOW <= port < HIGH for port in taken)


def test_a_wanted_port_that_is_taken_gives_the_next_free_one() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as busy:
        wanted = Ports().take()
        busy.bind(("127.0.0.1", wanted))
        busy.listen()
        assert not is_free(wanted)
        assert Ports().take(wanted) > wanted


def test_a_port_whose_udp_side_is_taken_is_not_free() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as busy:
        busy.bind(("127.0.0.1", 0))
        assert not is_free(busy.getsockname()[1])


def test_a_wanted_port_is_looked_for_up_to_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shared.host.ports.is_free", lambda port, *, host: False)
    with pytest.raises(NoPort, match="no port from 65000 to 65535 is free"):
        Ports().take(65_000)
    with pytest.raises(NoPort, match=f"no port from {LOW} to {HIGH - 1} is free"):
        Ports().take()


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_what_is_no_port_is_a_bad_setting(port: int) -> None:
    with pytest.raises(BadSetting, match="--port: must be 0 to 65535"):
        check_port(port)


@pytest.mark.parametrize(
    ("host", "fix"),
    [
        ("203.0.113.9", "no address of this machine"),
        ("localhost", "no IPv4 address in numbers"),
        ("::1", "no IPv4 address in numbers"),
        ("0.0.0.0", "at which they reach this machine"),
    ],
)
def test_an_address_at_which_players_reach_no_program_is_a_bad_setting(host: str, fix: str) -> None:
    with pytest.raises(BadSetting, match=fix):
        check_host(host)


def test_loopback_addresses_and_ports_at_the_bounds_are_allowed() -> None:
    check_host("127.0.0.1")
    check_port(0)
    check_port(65_535)


def test_two_programs_with_one_seed_draw_ports_apart() -> None:
    """As in okteto/okteto issue 2973, where test runs with one seed took each other's ports."""
    drawn = []
    for _ in range(2):
        random.seed(1)
        drawn.append(in_any_order(range(100), but={7}))
    assert drawn[0] != drawn[1]
    assert sorted(drawn[0]) == [port for port in range(100) if port != 7]
