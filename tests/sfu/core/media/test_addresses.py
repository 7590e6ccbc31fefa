"""Where a peer is: what earns an address the traffic, when it moves, and how many addresses are kept."""

from __future__ import annotations

import itertools

from sfu.core.media.addresses import MAX_ADDRESSES, MOVE_EVERY_S, OWNED_S, QUIET_S, KnownAddress, PeerAddresses


def at(number: int, *, seen_at: float = 0.0) -> KnownAddress:
    return KnownAddress(("192.0.2.1", number), seen_at)


def peer(*known: KnownAddress) -> PeerAddresses:
    """Sent to at the first of these, since 0 s."""
    addresses = PeerAddresses()
    for one in known:
        addresses.add(one)
    assert addresses.heard(known[0], now=0.0)
    return addresses


def test_the_first_that_is_heard_gets_the_traffic_and_a_check_alone_gets_nothing() -> None:
    addresses, home, away = PeerAddresses(), at(1), at(2)
    addresses.add(home)
    addresses.add(away)
    addresses.nominated = away
    assert addresses.sending is None
    assert addresses.heard(home, now=1.0)
    assert addresses.sending is home


def test_a_nominated_address_gets_it_once_heard() -> None:
    home, away = at(1), at(2)
    addresses = peer(home, away)
    addresses.nominated = away
    addresses.heard(home, now=5.0)
    assert addresses.sending is home
    assert addresses.heard(away, now=5.0)
    assert addresses.sending is away


def test_another_one_takes_over_when_that_in_use_is_quiet() -> None:
    home, away = at(1), at(2)
    addresses = peer(home, away)
    addresses.heard(home, now=5.0)
    assert not addresses.heard(away, now=5.0 + QUIET_S - 0.01)
    assert addresses.heard(away, now=5.0 + QUIET_S)


def test_two_that_both_send_do_not_flap() -> None:
    """Whatever is nominated: nothing moves more than once a second, and without a nomination nothing moves at all."""
    for nominations in (0, 1, 2):
        home, away = at(1), at(2)
        addresses = peer(home, away)
        moves = [0.0]
        for tick in range(1, 1000):
            now = tick / 100
            if nominations:
                addresses.nominated = (home, away)[tick % nominations]
            moves += [now for one in (home, away) if addresses.heard(one, now=now)]
        assert all(later - earlier >= MOVE_EVERY_S for earlier, later in itertools.pairwise(moves))
        assert nominations == 2 or len(moves) == 1


def test_the_one_seen_longest_ago_is_evicted_but_never_that_in_use() -> None:
    known = [at(number, seen_at=100.0 - number) for number in range(1, MAX_ADDRESSES + 1)]
    addresses = peer(known[-1], *known[:-1])
    assert addresses.add(at(99, seen_at=0.0)) is known[-2]
    assert len(addresses.known) == MAX_ADDRESSES
    assert addresses.sending is known[-1]


def test_with_new_keys_an_address_earns_the_traffic_again() -> None:
    home, away = at(1), at(2)
    addresses = peer(home, away)
    addresses.start_again()
    assert addresses.sending is None
    assert addresses.heard(away, now=0.1)


def test_what_is_forgotten_is_not_sent_to() -> None:
    home = at(1)
    addresses = peer(home)
    addresses.nominated = home
    addresses.remove(home)
    assert (addresses.sending, addresses.nominated, addresses.known) == (None, None, [])


def test_an_address_belongs_to_the_peer_that_was_just_seen_there() -> None:
    known = at(1, seen_at=10.0)
    assert known.is_owned(now=10.0 + OWNED_S - 0.01)
    assert not known.is_owned(now=10.0 + OWNED_S)
