"""A controller's cordon (A6): it lapses unless renewed, asks at its deadline, ends nothing, and yields to people."""

from __future__ import annotations

import math
import random

import pytest

from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.events import (
    AnnounceCordoned,
    AnnounceUncordoned,
    AskPlayers,
    CordonOrdered,
    Effect,
    Lease,
    OccupancyChanged,
    RejectOrder,
    RunFinalSequence,
    SigtermReceived,
    TimePassed,
    UncordonOrdered,
)
from sfu.core.drain.machine import DrainMachine, DrainState
from sfu.core.drain.orders import event_of
from shared.messages.link import Cordon, Uncordon
from shared.records import Drain

NOW = 1000.0
HOUR = Lease(lease_s=3600.0, drain_max_s=600.0)


def machine(*players: str) -> DrainMachine:
    made = DrainMachine(DrainBounds(), rng=random.Random(7))
    made.handle(OccupancyChanged(players=frozenset(players)), now=NOW)
    return made


def order(command: str, *, lease: Lease = HOUR, token: int = 7) -> CordonOrdered:
    return CordonOrdered(command=command, by="autoscaler", reason="quiet", lease=lease, token=token)


def leased(*players: str) -> DrainMachine:
    drain = machine(*players)
    assert drain.handle(order("c1"), now=NOW) == [AnnounceCordoned()]
    return drain


def facts(drain: DrainMachine, now: float) -> Drain:
    found = drain.facts(now=now)
    assert found is not None
    return found


def run_to(drain: DrainMachine, until: float) -> list[tuple[float, Effect]]:
    done: list[tuple[float, Effect]] = []
    while (due := drain.next_deadline()) is not None and due <= until:
        done += [(due, effect) for effect in drain.handle(TimePassed(), now=due)]
        drain.check()
    return done


def test_it_says_whose_it_is_until_when_and_when_it_will_ask() -> None:
    seen = facts(leased("a"), NOW + 60)
    assert (seen.cause, seen.by, seen.token, seen.exit_when_empty) == ("operator", "autoscaler", 7, False)
    assert (seen.lease_left_s, seen.drain_max_s, seen.grace_s) == (3540.0, 600.0, None)


def test_it_never_ends_the_sfu_not_even_an_empty_one() -> None:
    drain = leased()
    assert drain.handle(OccupancyChanged(), now=NOW + 1) == []
    assert not any(isinstance(effect, RunFinalSequence) for _, effect in run_to(drain, NOW + 3599))
    assert drain.state is DrainState.CORDONED


def test_without_renewal_it_lapses_and_the_sfu_takes_work_again() -> None:
    drain = leased()
    run_to(drain, NOW + 3599.9)
    assert drain.state is DrainState.CORDONED
    assert run_to(drain, NOW + 3600)[-1] == (NOW + 3600, AnnounceUncordoned(lapsed="autoscaler"))
    assert drain.takes_new_work
    assert drain.facts(now=NOW + 3600) is None
    assert drain.next_deadline() is None


def test_renewed_it_holds_for_as_long_as_the_drain_goes_on() -> None:
    drain = leased("a")
    for n in range(1, 20):
        run_to(drain, NOW + n * 3000)
        assert drain.handle(order(f"r{n}"), now=NOW + n * 3000) == [], "no router is told: nothing changed"
    seen = facts(drain, NOW + 57_000)
    assert (seen.lease_left_s, seen.drain_max_s, seen.elapsed_s, seen.command) == (3600.0, 600.0, 57_000.0, "c1")


def test_a_renewal_that_comes_twice_counts_once() -> None:
    drain = leased("a")
    drain.handle(order("r1"), now=NOW + 1000)
    drain.handle(order("r1"), now=NOW + 2000)
    assert facts(drain, NOW + 2000).lease_left_s == 2600.0


def test_at_its_deadline_players_are_asked_at_the_pace_of_a_drain_for_as_long_as_it_holds() -> None:
    drain = leased(*(f"p{n}" for n in range(35)))
    assert run_to(drain, NOW + 599) == []
    asks = [effect for _, effect in run_to(drain, NOW + 3599) if isinstance(effect, AskPlayers)]
    assert all(len(ask.players) <= 10 for ask in asks)
    assert all(ask.within_s > 0 for ask in asks)
    assert {player for ask in asks for player in ask.players} == {f"p{n}" for n in range(35)}
    assert facts(drain, NOW + 3599).asking
    assert drain.state is DrainState.CORDONED, "asked, not cut"


def test_without_a_deadline_no_player_is_asked() -> None:
    drain = machine("a")
    drain.handle(order("c1", lease=Lease(lease_s=3600.0)), now=NOW)
    assert run_to(drain, NOW + 3599) == []


def test_a_later_renewal_does_not_move_the_deadline() -> None:
    drain = leased("a")
    drain.handle(order("r1", lease=Lease(lease_s=3600.0, drain_max_s=9999.0)), now=NOW + 500)
    ((when, effect), *_) = run_to(drain, NOW + 610)
    assert when == NOW + 600
    assert isinstance(effect, AskPlayers)


def test_when_it_lapses_the_asking_stops() -> None:
    drain = leased("a")
    run_to(drain, NOW + 3600)
    assert not drain.asking
    assert run_to(drain, NOW + 1e6) == []


def test_sigterm_keeps_it_from_lapsing() -> None:
    drain = leased("a")
    run_to(drain, NOW + 3000)
    assert drain.handle(SigtermReceived(), now=NOW + 3000) == [AnnounceCordoned()]
    seen = facts(drain, NOW + 3000)
    assert (seen.cause, seen.lease_left_s, seen.grace_s) == ("sigterm", None, 6600.0)
    done = run_to(drain, NOW + 6539)
    assert drain.state is DrainState.CORDONED
    assert not any(isinstance(effect, AnnounceUncordoned) for _, effect in done)
    assert drain.handle(order("r1"), now=NOW + 6539) == []
    assert facts(drain, NOW + 6539).lease_left_s is None


def test_sigterm_ends_an_empty_one_at_once() -> None:
    effects = leased().handle(SigtermReceived(), now=NOW + 9)
    assert isinstance(effects[-1], RunFinalSequence)


def test_a_persons_cordon_takes_it_over_for_good() -> None:
    drain = leased("a")
    run_to(drain, NOW + 700)
    assert drain.handle(CordonOrdered(command="h", by="ann", reason="disk"), now=NOW + 700) == [AnnounceCordoned()]
    assert drain.next_deadline() is None, "no lease, no asking, no end"
    (refused,) = drain.handle(order("r1"), now=NOW + 800)
    assert isinstance(refused, RejectOrder)
    seen = facts(drain, NOW + 1e6)
    assert (seen.by, seen.reason, seen.lease_left_s, seen.drain_max_s, seen.token) == ("ann", "disk", None, None, 0)


def test_a_persons_drain_takes_it_over_too() -> None:
    drain = leased("a")
    drain.handle(CordonOrdered(command="d", by="ann", exit_when_empty=True), now=NOW + 100)
    seen = facts(drain, NOW + 100)
    assert (seen.by, seen.exit_when_empty, seen.lease_left_s, seen.drain_max_s) == ("ann", True, None, 600.0)
    assert isinstance(drain.handle(OccupancyChanged(), now=NOW + 200)[-1], RunFinalSequence)


def test_what_a_person_holds_is_neither_leased_nor_taken_back_by_a_controller() -> None:
    drain = machine("a")
    drain.handle(CordonOrdered(command="h", by="ann"), now=NOW)
    assert [type(e) for e in drain.handle(order("c1"), now=NOW)] == [RejectOrder]
    assert [type(e) for e in drain.handle(UncordonOrdered(command="u", by="autoscaler", token=7), now=NOW)] == [
        RejectOrder
    ]
    assert facts(drain, NOW).by == "ann"
    assert drain.handle(UncordonOrdered(command="v", by="ann"), now=NOW) == [AnnounceUncordoned()]


def test_a_controller_takes_its_own_back_and_so_may_a_person() -> None:
    for taken_back in (UncordonOrdered(command="u", by="autoscaler", token=7), UncordonOrdered(command="u", by="ann")):
        assert leased("a").handle(taken_back, now=NOW + 1) == [AnnounceUncordoned()]


def test_a_replaced_controllers_orders_are_ignored() -> None:
    drain = leased("a")
    drain.handle(order("r1", token=8), now=NOW + 100)
    assert [type(e) for e in drain.handle(order("r2", token=7), now=NOW + 200)] == [RejectOrder]
    late = UncordonOrdered(command="u", by="autoscaler", token=7)
    assert [type(e) for e in drain.handle(late, now=NOW + 200)] == [RejectOrder]
    seen = facts(drain, NOW + 200)
    assert (seen.lease_left_s, seen.token) == (3500.0, 8)


def test_a_replaced_controller_begins_no_cordon_after_its_successor_took_one_back() -> None:
    drain = machine("a")
    drain.handle(UncordonOrdered(command="u", by="autoscaler", token=8), now=NOW)
    assert [type(e) for e in drain.handle(order("c1", token=7), now=NOW)] == [RejectOrder]
    assert drain.takes_new_work


def test_a_person_is_never_fenced() -> None:
    drain = leased("a")
    assert drain.handle(UncordonOrdered(command="u", by="ann"), now=NOW) == [AnnounceUncordoned()]
    assert drain.handle(CordonOrdered(command="h", by="ann"), now=NOW) == [AnnounceCordoned()]


def test_a_cordon_that_an_old_router_passed_on_without_its_lease_gets_one_at_the_next_renewal() -> None:
    drain = machine("a")
    drain.handle(CordonOrdered(command="c1", by="autoscaler"), now=NOW)
    assert drain.handle(order("r1"), now=NOW + 100) == []
    seen = facts(drain, NOW + 100)
    assert (seen.lease_left_s, seen.drain_max_s) == (3600.0, 600.0)
    drain.check()


@pytest.mark.parametrize(
    "lease",
    [
        Lease(lease_s=0.0),
        Lease(lease_s=-1.0),
        Lease(lease_s=math.nan),
        Lease(lease_s=math.inf),
        Lease(lease_s=1e9),
        Lease(lease_s=60.0, drain_max_s=-1.0),
        Lease(lease_s=60.0, drain_max_s=math.nan),
        Lease(lease_s=60.0, drain_max_s=math.inf),
    ],
)
def test_a_lease_that_cant_be_is_refused(lease: Lease) -> None:
    drain = machine("a")
    assert [type(e) for e in drain.handle(order("c1", lease=lease), now=NOW)] == [RejectOrder]
    assert drain.takes_new_work
    drain.check()


def test_messages_become_events_with_all_they_carry() -> None:
    cordon = Cordon(command="c1", by="autoscaler", reason="quiet", lease_s=3600.0, drain_max_s=600.0, token=7)
    assert event_of(cordon) == order("c1")
    assert event_of(Cordon(command="h", by="ann", exit_when_empty=True)) == CordonOrdered(
        command="h", by="ann", exit_when_empty=True
    )
    assert event_of(Uncordon(command="u", by="b", token=3)) == UncordonOrdered(command="u", by="b", token=3)
