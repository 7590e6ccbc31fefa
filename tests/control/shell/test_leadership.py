"""A lease is believed no longer than it certainly lasts, by the controller's own clock."""

from __future__ import annotations

import time

import pytest

from control.shell.leadership import Leadership
from shared.errors import StoreUnavailable
from shared.store.answers import Leader, Term
from shared.store.lease import ScalingLease


class Lease(ScalingLease):
    """The store's lease as the test says it is; asking takes `takes_s` of the clock."""

    def __init__(self) -> None:
        self.at = 0.0
        self.takes_s = 0.0
        self.answer: Term | None = Term(True, Leader("me", 5, 10.0))
        self.asked: list[tuple[int, int]] = []
        self.released: list[int] = []

    async def take_lease(self, controller: str, *, token: int, lease_s: float, seen: int = 0) -> Term:
        self.asked.append((token, seen))
        self.at += self.takes_s
        if self.answer is None:
            raise StoreUnavailable(operation="take_lease", detail="away")
        return self.answer

    async def release_lease(self, controller: str, token: int) -> bool:
        self.released.append(token)
        return True


def made() -> tuple[Leadership, Lease]:
    lease = Lease()
    return Leadership(lease, "me", lease_s=10.0, clock=lambda: lease.at), lease


async def test_it_leads_until_the_lease_could_be_over() -> None:
    it, lease = made()
    assert it.token == 0
    lease.takes_s = 3.0
    await it.ask()
    lease.at = 9.9  # counted from the question, not from the answer at 3.0
    assert it.token == 5
    lease.at = 10.0
    assert it.token == 0


async def test_a_lease_ends_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the monotonic clock stands still, and Redis elsewhere goes on."""
    asleep_s = 0.0
    clocks = {time.CLOCK_BOOTTIME: lambda: 500.0 + asleep_s}
    monkeypatch.setattr(time, "clock_gettime", lambda clock: clocks[clock]())
    monkeypatch.setattr(time, "monotonic", lambda: 500.0)
    it = Leadership(Lease(), "me", lease_s=10.0)
    await it.ask()
    assert it.token == 5
    asleep_s = 10.0
    assert it.token == 0


async def test_without_such_a_clock_it_goes_by_the_monotonic_one(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 500.0
    monkeypatch.delattr(time, "CLOCK_BOOTTIME")
    monkeypatch.setattr(time, "monotonic", lambda: now)
    it = Leadership(Lease(), "me", lease_s=10.0)
    await it.ask()
    assert it.token == 5
    now = 510.0
    assert it.token == 0


async def test_an_outage_ends_no_lease_early_and_prolongs_none() -> None:
    it, lease = made()
    await it.ask()
    lease.at, lease.answer = 5.0, None
    await it.ask()
    assert it.token == 5
    lease.at = 10.0
    assert it.token == 0


async def test_a_renewal_goes_on_under_the_same_token() -> None:
    it, lease = made()
    await it.ask()
    lease.at = 6.0
    await it.ask()
    lease.at = 15.0
    assert it.token == 5
    assert lease.asked == [(0, 0), (5, 5)]


async def test_a_controller_that_hears_of_another_leader_stands_by_and_remembers_its_token() -> None:
    it, lease = made()
    await it.ask()
    lease.answer = Term(False, Leader("other", 8, 10.0))
    await it.ask()
    assert it.token == 0
    await it.ask()
    assert lease.asked[-1] == (0, 8)


async def test_a_refused_write_ends_the_leadership_at_once() -> None:
    it, _ = made()
    await it.ask()
    it.lost()
    assert it.token == 0


async def test_the_lease_is_given_back_once() -> None:
    it, lease = made()
    await it.release()
    await it.ask()
    await it.release()
    await it.release()
    assert lease.released == [5]
    assert it.token == 0
