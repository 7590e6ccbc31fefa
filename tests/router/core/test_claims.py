"""What players say of cordons this router has not heard of: for their room, as far as it can be true."""

from __future__ import annotations

import random

import pytest

from router.core.assignment import Assigner
from router.core.claims import AHEAD, AHEAD_PER_S, MAX_A_ROOM, MAX_ROOMS, Claims
from router.core.directory import LOST_AFTER_S, Directory
from router.core.plan import Ask
from router.core.selector.node_selector import NodeSelector
from shared.placing import PlacedRoom
from shared.records import RoomPlacement, SfuState, SfuStatus


def state(revision: int, *, sfu: str = "s", incarnation: int = 1, status: str = SfuStatus.ONLINE.value) -> SfuState:
    return SfuState(sfu=sfu, address=f"ws://{sfu}", incarnation=incarnation, revision=revision, status=status)


@pytest.fixture
def directory() -> Directory:
    it = Directory()
    it.hear(state(1), now=0.0)
    return it


@pytest.fixture
def claims(directory: Directory) -> Claims:
    return Claims(directory)


def test_a_claim_holds_for_its_room_until_the_sfu_has_caught_up(claims: Claims, directory: Directory) -> None:
    claims.heed("r", "s", (1, 9), now=0.0)
    claims.heed("r", "s", (1, 7), now=0.0)
    assert claims.doubted("r", now=0.0) == {"s"}
    assert claims.doubted("other", now=0.0) == frozenset()
    directory.hear(state(8), now=0.0)
    assert claims.doubted("r", now=0.0) == {"s"}
    directory.hear(state(9), now=0.0)
    assert claims.doubted("r", now=0.0) == frozenset()


@pytest.mark.parametrize("version", [(1, 1), (1, 0), (0, 5), (0, 0)])
def test_a_claim_about_the_past_is_ignored(claims: Claims, version: tuple[int, int]) -> None:
    claims.heed("r", "s", version, now=0.0)
    assert claims.doubted("r", now=0.0) == frozenset()


@pytest.mark.parametrize("version", [(1, 1 + AHEAD + 1), (1, 100_000), (2, 1), (1 << 50, 1)])
def test_a_claim_that_the_sfu_cannot_have_reached_is_ignored(claims: Claims, version: tuple[int, int]) -> None:
    claims.heed("r", "s", version, now=0.0)
    assert claims.doubted("r", now=0.0) == frozenset()


def test_an_sfu_that_was_silent_here_can_have_come_further(claims: Claims, directory: Directory) -> None:
    directory.lose_store(now=0.0)
    far = (1, 1 + AHEAD + 600 * AHEAD_PER_S)
    claims.heed("r", "s", far, now=599.0)
    assert claims.doubted("r", now=599.0) == frozenset()
    claims.heed("r", "s", far, now=600.0)
    assert claims.doubted("r", now=600.0) == {"s"}, "ten minutes without Redis"


def test_a_claim_about_an_sfu_that_is_not_known_yet_counts_when_an_older_state_comes(directory: Directory) -> None:
    it = Directory()
    claims = Claims(it)
    claims.heed("r", "s", (1, 9), now=0.0)
    it.read_back([state(8)], now=0.5)
    assert claims.doubted("r", now=0.5) == {"s"}
    it.read_back([state(9)], now=1.0)
    assert claims.doubted("r", now=1.0) == frozenset(), "it has caught up, and was online again by then"


def test_a_claim_outlives_an_entry_that_was_lost(claims: Claims, directory: Directory) -> None:
    claims.heed("r", "s", (1, 9), now=0.0)
    directory.link("s", now=0.0)
    directory.unlink("s", now=1.0)
    assert directory.tick(now=1.0 + LOST_AFTER_S)
    directory.hear(state(8), now=5.0, direct=False)
    assert claims.doubted("r", now=5.0) == {"s"}


def test_claims_are_bounded_by_room_and_in_all(claims: Claims) -> None:
    for number in range(MAX_A_ROOM + 1):
        claims.heed("r", f"s{number}", (1, 9), now=0.0)
    assert claims.doubted("r", now=0.0) == {f"s{number}" for number in range(1, MAX_A_ROOM + 1)}
    for number in range(MAX_ROOMS):
        claims.heed(f"r{number}", "s", (1, 9), now=0.0)
    assert claims.doubted("r", now=0.0) == frozenset(), "the oldest was forgotten"
    assert claims.doubted("r0", now=0.0) == {"s"}


# --- what they do to placements ---


class World:
    def __init__(self) -> None:
        self.directory = Directory()
        for sfu in "abc":
            self.directory.hear(state(1, sfu=sfu), now=0.0)
        self.assigner = Assigner(self.directory, NodeSelector())

    def chosen(self, room: str, *, had: str = "", leave: str = "", reason: str = "cordoned") -> str | None:
        ask = Ask(room=room, leave=leave, leave_version=(1, 5), reason=reason if leave else "")
        plan = self.assigner.plan(ask, room_had=had, now=0.0, rng=random.Random(1))
        sfu = plan.keep.sfu if plan.keep else plan.eligible[0] if plan.eligible else ""
        placed = PlacedRoom(placement=RoomPlacement(sfu=sfu)) if sfu else None
        decision = self.assigner.settle(plan, placed, carrying=(), now=0.0)
        assert decision is not None
        return decision.chosen


def test_a_dozen_claims_take_no_sfu_from_other_rooms() -> None:
    it = World()
    for sfu in "abc":
        it.chosen("liars", leave=sfu)
    assert {it.chosen("others", had=sfu) for sfu in "abc"} == set("abc")


def test_a_claim_never_takes_the_last_sfu_that_takes_work() -> None:
    it = World()
    assert it.chosen("r", leave="a", had="a") in {"b", "c"}
    assert it.chosen("r", had="a") in {"b", "c"}, "the room leaves it too"
    it.chosen("r", leave="b")
    assert it.chosen("r", had="a") == "c"
    assert it.chosen("r", leave="c", had="c") in {"a", "b"}, "all are claimed: none of the claims counts"
    assert it.chosen("r", had="c") == "c"


def test_the_player_that_heard_of_the_cordon_is_not_sent_back_even_to_the_last() -> None:
    it = World()
    for sfu in "bc":
        it.directory.hear(state(2, sfu=sfu, status=SfuStatus.CORDONED.value), now=0.0)
    assert it.chosen("r", leave="a", had="a") is None
    assert it.chosen("r", had="a") == "a", "another of the room is better off there than nowhere"


def test_a_claim_that_comes_while_the_store_is_asked_is_heeded() -> None:
    it = World()
    plan = it.assigner.plan(Ask(room="r"), room_had="a", now=0.0, rng=random.Random(1))
    it.assigner.claims.heed("r", "a", (1, 5), now=0.0)
    placed = PlacedRoom(placement=RoomPlacement(sfu="a"))
    assert it.assigner.settle(plan, placed, carrying=(), now=0.0) is None, "plan again"


def test_the_decision_says_why_the_doubted_one_was_passed_over() -> None:
    it = World()
    it.assigner.claims.heed("r", "a", (1, 5), now=0.0)
    plan = it.assigner.plan(Ask(room="r"), room_had="", now=0.0, rng=random.Random(1))
    assert [(each.sfu, each.why) for each in plan.rejected] == [("a", "treated-as-cordoned")]
