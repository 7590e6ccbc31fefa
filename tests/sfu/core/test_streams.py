"""Which TCP connections are let in: strangers are few and soon gone, each player is bounded alone."""

from __future__ import annotations

from sfu.core.streams import (
    FIRST_CHECK_WITHIN_S,
    IDLE_S,
    MAX_OF_PEER,
    MAX_STRANGERS,
    MAX_STRANGERS_OF_ADDRESS,
    StreamEnd,
    StreamTable,
    stream_address,
    stream_number,
)


def admitted(table: StreamTable, host: str = "192.0.2.1", *, now: float = 0.0) -> int:
    number = table.admit(host, now=now)
    assert not isinstance(number, StreamEnd)
    return number


def test_strangers_of_one_address_are_few_and_leave_the_others_room() -> None:
    table = StreamTable()
    for _ in range(MAX_STRANGERS_OF_ADDRESS):
        admitted(table)
    assert table.admit("192.0.2.1", now=0.0) is StreamEnd.TOO_MANY
    admitted(table, "192.0.2.2")


def test_strangers_of_many_addresses_are_bounded_and_players_are_not_counted_among_them() -> None:
    table = StreamTable()
    for peer in range(1000):
        assert table.proved(admitted(table), peer, now=0.0) is None, "an office behind one address"
    for number in range(MAX_STRANGERS):
        admitted(table, f"198.51.100.{number}")
    assert table.admit("203.0.113.1", now=0.0) is StreamEnd.TOO_MANY


def test_who_shows_no_check_in_time_goes_and_makes_room() -> None:
    table = StreamTable()
    number = admitted(table)
    table.heard(number, now=3.0)
    assert table.due(now=FIRST_CHECK_WITHIN_S - 0.1) == []
    assert table.due(now=FIRST_CHECK_WITHIN_S) == [(number, StreamEnd.NO_CHECK)], "other bytes buy no time"
    table.forget(number)
    table.forget(number)
    assert len(table) == 0
    for _ in range(MAX_STRANGERS_OF_ADDRESS):
        admitted(table)


def test_a_silent_player_goes_and_a_speaking_one_stays() -> None:
    table = StreamTable()
    silent, speaking = admitted(table), admitted(table)
    for number in (silent, speaking):
        table.proved(number, number, now=1.0)
    table.heard(speaking, now=20.0)
    assert table.due(now=1.0 + IDLE_S) == [(silent, StreamEnd.IDLE)]


def test_a_player_with_too_many_loses_the_one_heard_longest_ago() -> None:
    table = StreamTable()
    numbers = [admitted(table, now=float(n)) for n in range(MAX_OF_PEER + 1)]
    for number in numbers[:-1]:
        assert table.proved(number, 7, now=float(number)) is None
    table.heard(numbers[0], now=100.0)
    assert table.proved(numbers[-1], 7, now=101.0) == numbers[1]
    assert table.proved(numbers[-1], 8, now=102.0) is None, "a connection is one player's"
    assert numbers[-1] in table.of(7)


def test_the_name_of_a_connection_is_no_address_of_udp() -> None:
    address = stream_address("192.0.2.1", 5000, 17)
    assert stream_number(address) == 17
    assert address != ("192.0.2.1", 5000)
    assert stream_number(("192.0.2.1", 5000)) is None
    assert stream_number(("192.0.2.1", 5000, "192.0.2.9")) is None
