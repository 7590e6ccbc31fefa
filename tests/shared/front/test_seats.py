"""Who gets a connection of a port when they are short: bounded, those that have shown something first."""

from __future__ import annotations

import random

import pytest

from shared.front.seats import SETTLED_S, Seat, SeatBounds, Seating, Seats, Short

BOUNDS = SeatBounds(most=10, per_address=6, waiting=8, waiting_per_address=4, narrow=2)


class Port:
    """Seats, and a clock."""

    def __init__(self, **bounds: int) -> None:
        known = {name: getattr(BOUNDS, name) for name in BOUNDS.__slots__}
        self.seats = Seats(SeatBounds(**(known | bounds)))
        self.now = 100.0
        self.loud: set[Seat] = set()

    def come(self, address: str, *, counted: bool = True) -> Seating:
        return self.seats.take(address, counted=counted, now=self.now, silent=lambda seat: seat not in self.loud)

    def seated(self, address: str, *, held: bool = False, counted: bool = True) -> Seat:
        seating = self.come(address, counted=counted)
        assert seating.seat is not None
        assert not seating.seat.narrow
        assert seating.evicted is None
        if held:
            self.seats.hold(seating.seat)
        return seating.seat


def test_idle_connections_of_one_address_leave_room_for_all_others() -> None:
    port = Port()
    for _ in range(4):
        port.seated("a")
    refused = port.come("a")
    assert (refused.short, refused.evicted) == (Short.ADDRESS_WAITING, None)
    assert refused.seat is not None
    assert refused.seat.narrow
    port.seated("b")


def test_one_that_waited_a_second_gives_way_to_a_newcomer_of_its_own_address() -> None:
    port = Port()
    first, *_ = [port.seated("a") for _ in range(4)]
    port.now += SETTLED_S
    again = port.come("a")
    assert again.evicted is first
    assert again.seat is not None
    assert not again.seat.narrow


def test_a_connection_with_a_token_loses_its_seat_to_none() -> None:
    port = Port()
    for _ in range(6):
        port.seated("a", held=True)
    port.now += 3600
    assert port.come("a").short is Short.ADDRESS
    for _ in range(4):
        port.seated("b", held=True)
    full = port.come("c")
    assert (full.short, full.evicted) == (Short.FULL, None)


def test_where_all_wait_the_address_with_most_of_them_makes_room_at_once() -> None:
    port = Port()
    first, *_ = [port.seated("flood") for _ in range(4)]
    for number in range(4):
        port.seated(f"honest-{number}")
    newcomer = port.come("late")
    assert (newcomer.short, newcomer.evicted) == (Short.WAITING, first)


def test_a_crowd_of_addresses_is_not_cut_off_by_itself() -> None:
    port = Port()
    for number in range(8):
        port.seated(f"honest-{number}")
    assert port.come("late").evicted is None
    port.now += SETTLED_S
    assert port.come("later").evicted is not None


def test_narrow_seats_are_few_and_the_silent_ones_go_first() -> None:
    port = Port(most=1)
    port.seated("a", held=True)
    silent, asking = port.come("x").seat, port.come("x").seat
    assert silent is not None
    assert asking is not None
    port.loud.add(asking)
    third = port.come("health")
    assert third.evicted is silent
    port.loud.add(third.seat)  # type: ignore[arg-type]
    assert port.come("x") == Seating(None, None, Short.NARROW)
    assert port.seats.narrow == 2
    port.seats.release(asking)
    assert port.come("x").seat is not None


def test_a_proxy_stands_for_many_and_its_connections_count_for_whom_it_names() -> None:
    port = Port(waiting=100, most=100)
    behind = [port.seated("proxy", counted=False) for _ in range(20)]
    for seat in behind[:4]:
        assert port.seats.move(seat, "a", now=port.now).short is None
    no = port.seats.move(behind[4], "a", now=port.now)
    assert (no.short, no.evicted) == (Short.ADDRESS_WAITING, None)
    assert behind[4].address == "proxy"
    port.now += SETTLED_S
    assert port.seats.move(behind[4], "a", now=port.now).evicted is behind[0]
    assert port.seats.move(behind[5], "b", now=port.now).short is None


def test_a_request_that_is_answered_waits_again() -> None:
    port = Port(per_address=1)
    seat = port.seated("a", held=True)
    port.now += 5
    port.seats.rest(seat, now=port.now)
    assert port.come("a").evicted is None, "its time begins again"
    port.now += SETTLED_S
    assert port.come("a").evicted is seat


@pytest.mark.parametrize("seed", range(20))
def test_whatever_happens_bounds_hold_and_all_is_given_back(seed: int) -> None:
    rng, port = random.Random(seed), Port()
    alive: list[Seat] = []
    for _ in range(2000):
        port.now += rng.choice([0.0, 0.01, 0.6])
        act = rng.random()
        if act < 0.5:
            seating = port.come(rng.choice("abcdefghijkl"), counted=rng.random() < 0.8)
            if seating.evicted is not None:
                alive.remove(seating.evicted)
            if seating.seat is not None:
                alive.append(seating.seat)
        elif alive:
            seat = rng.choice(alive)
            if act < 0.6:
                port.seats.hold(seat)
            elif act < 0.7:
                port.seats.rest(seat, now=port.now)
            elif act < 0.8 and not seat.counted:
                moved = port.seats.move(seat, rng.choice("abc"), now=port.now)
                if moved.evicted is not None:
                    alive.remove(moved.evicted)
            else:
                alive.remove(seat)
                port.seats.release(seat)
        full = [seat for seat in alive if not seat.narrow]
        assert port.seats.taken == len(full) <= BOUNDS.most
        assert port.seats.waiting == sum(not seat.held for seat in full)
        assert port.seats.narrow == len(alive) - len(full) <= BOUNDS.narrow
    for seat in alive:
        port.seats.release(seat)
    assert (port.seats.taken, port.seats.waiting, port.seats.narrow) == (0, 0, 0)
    assert not port.seats._addresses
    assert not port.seats._waiting_at
