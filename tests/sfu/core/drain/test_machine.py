"""The drain: what ends an SFU, what does not, and in which order (D2, D6, D7, D8, D12; invariants 6 and 7)."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sfu.core.drain.bounds import DrainBounds
from sfu.core.drain.events import (
    AnnounceCordoned,
    AnnounceUncordoned,
    AskPlayers,
    CordonOrdered,
    CordonStamped,
    Effect,
    Event,
    ExitOrdered,
    ExitProcess,
    FinalSequenceDone,
    InterruptedAtTerminal,
    Lease,
    OccupancyChanged,
    Outcome,
    RejectOrder,
    RunFinalSequence,
    SigtermReceived,
    TimePassed,
    UncordonOrdered,
)
from sfu.core.drain.machine import DrainMachine, DrainState
from shared.records import DrainCause, SfuStatus
from tests.budget import examples

BOUNDS = DrainBounds()
NOW = 1000.0
FINAL = RunFinalSequence


def machine(*players: str, bounds: DrainBounds = BOUNDS) -> DrainMachine:
    made = DrainMachine(bounds, rng=random.Random(7))
    made.handle(OccupancyChanged(players=frozenset(players)), now=NOW)
    return made


def run_to(drain: DrainMachine, until: float) -> list[tuple[float, Effect]]:
    """Let time pass, deadline by deadline, as the shell does."""
    done: list[tuple[float, Effect]] = []
    while (due := drain.next_deadline()) is not None and due <= until:
        done += [(due, effect) for effect in drain.handle(TimePassed(), now=due)]
        drain.check()
    return done


def test_sigterm_cordons_and_cuts_no_player() -> None:
    drain = machine("a")
    assert drain.handle(SigtermReceived(), now=NOW) == [AnnounceCordoned()]
    assert drain.status is SfuStatus.CORDONED
    assert not drain.takes_new_work
    facts = drain.facts(now=NOW + 5)
    assert facts is not None
    assert (facts.cause, facts.by, facts.elapsed_s) == ("sigterm", "signal", 5.0)
    assert (facts.drain_max_s, facts.grace_s, facts.exit_when_empty) == (1800.0, 3600.0, True)


def test_an_empty_sfu_ends_at_once_after_the_word_is_out() -> None:
    assert machine().handle(SigtermReceived(), now=NOW) == [AnnounceCordoned(), FINAL(Outcome.EMPTY, 10.0)]


def test_it_ends_when_the_last_player_pipe_and_job_have_gone() -> None:
    drain = machine("a", "visitor")
    drain.handle(SigtermReceived(), now=NOW)
    assert drain.handle(OccupancyChanged(players=frozenset({"visitor"})), now=NOW + 1) == []
    assert drain.handle(OccupancyChanged(pipes=1, jobs=1), now=NOW + 2) == []
    assert drain.handle(OccupancyChanged(jobs=1), now=NOW + 3) == []
    assert drain.handle(OccupancyChanged(), now=NOW + 4) == [FINAL(Outcome.EMPTY, 10.0)]
    assert drain.handle(FinalSequenceDone(), now=NOW + 5) == [ExitProcess(0)]
    assert drain.state is DrainState.ENDED


def test_a_second_sigterm_changes_nothing() -> None:
    drain = machine("a")
    drain.handle(SigtermReceived(), now=NOW)
    deadline = drain.next_deadline()
    assert drain.handle(SigtermReceived(), now=NOW + 100) == []
    assert drain.next_deadline() == deadline


def test_drain_max_asks_without_cutting() -> None:
    drain = machine("a", "b")
    drain.handle(SigtermReceived(), now=NOW)
    assert run_to(drain, NOW + 1799) == []
    ((when, effect),) = run_to(drain, NOW + 1800)
    assert when == NOW + 1800
    assert isinstance(effect, AskPlayers)
    assert sorted(effect.players) == ["a", "b"]
    assert effect.within_s > 0
    assert drain.state is DrainState.CORDONED
    facts = drain.facts(now=when)
    assert facts is not None
    assert facts.asking


def test_asking_is_bounded_in_rate_and_everybody_is_asked_in_the_first_half_of_the_tail_or_so() -> None:
    players = frozenset(f"p{n}" for n in range(305))
    drain = machine(*players)
    drain.handle(SigtermReceived(), now=NOW)
    asks = [(when, e) for when, e in run_to(drain, NOW + 3539) if isinstance(e, AskPlayers)]
    assert all(len(effect.players) <= 10 for _, effect in asks)
    gaps = [later - earlier for (earlier, _), (later, _) in pairwise(asks)]
    assert min(gaps) >= 1.0
    assert len(set(gaps)) > 10, "jittered"
    first_asks: dict[str, float] = {}
    for when, effect in asks:
        for player in effect.players:
            first_asks.setdefault(player, when)
    assert set(first_asks) == players
    assert max(first_asks.values()) <= NOW + 1800 + 0.65 * 1740
    assert drain.asked == 305


def test_a_player_that_stays_is_asked_again_but_not_soon() -> None:
    drain = machine("a")
    drain.handle(SigtermReceived(), now=NOW)
    times = [when for when, e in run_to(drain, NOW + 3539) if isinstance(e, AskPlayers)]
    assert len(times) > 2
    assert min(b - a for a, b in pairwise(times)) >= 60


def test_the_last_moment_runs_the_final_sequence_before_the_kill() -> None:
    drain = machine("a")
    drain.handle(SigtermReceived(), now=NOW)
    when, effect = run_to(drain, NOW + 3540)[-1]
    assert when == NOW + 3540
    assert effect == FINAL(Outcome.GRACE, 10.0)
    assert drain.status is SfuStatus.TERMINATING


def test_a_final_sequence_that_hangs_still_ends() -> None:
    drain = machine()
    drain.handle(SigtermReceived(), now=NOW)
    assert run_to(drain, NOW + 9.9) == []
    assert run_to(drain, NOW + 10) == [(NOW + 10, ExitProcess(0))]


def test_a_hand_cordon_holds_for_ever() -> None:
    drain = machine()
    assert drain.handle(CordonOrdered(command="c1", by="ann"), now=NOW) == [AnnounceCordoned()]
    assert drain.next_deadline() is None
    assert drain.handle(TimePassed(), now=NOW + 1e6) == []
    facts = drain.facts(now=NOW)
    assert facts is not None
    assert (facts.cause, facts.by, facts.exit_when_empty, facts.grace_s) == (DrainCause.OPERATOR, "ann", False, None)


def test_a_hand_drain_has_the_bounds_of_sigterm() -> None:
    drain = machine("a")
    drain.handle(CordonOrdered(command="c1", exit_when_empty=True), now=NOW)
    assert run_to(drain, NOW + 3540)[-1] == (NOW + 3540, FINAL(Outcome.GRACE, 10.0))


def test_uncordon_takes_a_cordon_and_a_drain_back() -> None:
    for exit_when_empty in (False, True):
        drain = machine("a")
        drain.handle(CordonOrdered(command="c1", exit_when_empty=exit_when_empty), now=NOW)
        run_to(drain, NOW + 1900)
        assert drain.handle(UncordonOrdered(command="c2"), now=NOW + 1900) == [AnnounceUncordoned()]
        assert drain.takes_new_work
        assert drain.facts(now=NOW) is None
        assert not drain.asking
        assert drain.next_deadline() is None
        drain.check()


def test_uncordon_is_refused_after_sigterm() -> None:
    drain = machine("a")
    drain.handle(CordonOrdered(command="c1"), now=NOW)
    assert drain.handle(SigtermReceived(), now=NOW + 1) == [AnnounceCordoned()]
    (refused,) = drain.handle(UncordonOrdered(command="c2"), now=NOW + 2)
    assert isinstance(refused, RejectOrder)
    assert drain.status is SfuStatus.CORDONED


def test_sigterm_upgrades_a_hand_cordon_and_counts_its_bounds_from_the_signal() -> None:
    drain = machine("a")
    drain.handle(CordonOrdered(command="c1", by="ann"), now=NOW)
    drain.handle(SigtermReceived(), now=NOW + 500)
    facts = drain.facts(now=NOW + 500)
    assert facts is not None
    assert (facts.cause, facts.exit_when_empty, facts.elapsed_s) == ("sigterm", True, 500.0)
    assert (facts.drain_max_s, facts.grace_s) == (2300.0, 4100.0)


def test_a_held_sfu_can_be_told_to_drain_but_not_to_hold_again() -> None:
    drain = machine("a")
    drain.handle(CordonOrdered(command="c1"), now=NOW)
    assert drain.handle(CordonOrdered(command="c2", exit_when_empty=True), now=NOW) == [AnnounceCordoned()]
    assert drain.handle(CordonOrdered(command="c3"), now=NOW) == []
    facts = drain.facts(now=NOW)
    assert facts is not None
    assert facts.exit_when_empty


def test_a_command_that_comes_again_late_changes_nothing() -> None:
    drain = machine("a")
    cordon, uncordon = CordonOrdered(command="c1"), UncordonOrdered(command="c2")
    drain.handle(cordon, now=NOW)
    drain.handle(uncordon, now=NOW)
    assert drain.handle(cordon, now=NOW) == []
    assert drain.takes_new_work
    drain.handle(CordonOrdered(command="c3"), now=NOW)
    assert drain.handle(uncordon, now=NOW) == []
    assert not drain.takes_new_work


def test_exit_touches_only_a_cordoned_sfu_and_only_once() -> None:
    drain = machine("a")
    (refused,) = drain.handle(ExitOrdered(), now=NOW)
    assert isinstance(refused, RejectOrder)
    drain.handle(CordonOrdered(command="c1"), now=NOW)
    assert drain.handle(ExitOrdered(), now=NOW) == [FINAL(Outcome.FORCED, 10.0)]
    assert drain.handle(ExitOrdered(), now=NOW + 1) == []


def test_exit_does_not_touch_what_was_cordoned_after_it() -> None:
    drain = machine("a")
    drain.handle(CordonOrdered(command="c1"), now=NOW)
    drain.handle(CordonStamped(since_at=5000.0), now=NOW)
    (refused,) = drain.handle(ExitOrdered(at=4999.0), now=NOW)
    assert isinstance(refused, RejectOrder)
    assert drain.handle(ExitOrdered(at=5001.0), now=NOW) == [FINAL(Outcome.FORCED, 10.0)]


def test_ctrl_c_is_sigterm_and_twice_is_force() -> None:
    drain = machine("a")
    assert drain.handle(InterruptedAtTerminal(), now=NOW) == [AnnounceCordoned()]
    facts = drain.facts(now=NOW)
    assert facts is not None
    assert facts.cause == DrainCause.SIGTERM
    assert drain.handle(InterruptedAtTerminal(), now=NOW + 1) == [FINAL(Outcome.FORCED, 10.0)]


class AnyHistory(RuleBasedStateMachine):
    """Random histories: whatever comes in whatever order, the machine ends for one of three reasons only."""

    def __init__(self) -> None:
        super().__init__()
        self.bounds = DrainBounds(drain_max_s=20, grace_s=60, final_lead_s=8)
        self.drain = DrainMachine(self.bounds, rng=random.Random(1))
        self.now = 0.0
        self.occupancy = OccupancyChanged()
        self.sigterms: list[float] = []
        self.drains: list[float] = []
        self.leases: list[float] = []
        self.renewed = 0.0
        self.token = 0
        self.interrupts = 0
        self.last: Event = TimePassed()
        self.finals: list[FINAL] = []
        self.exits = 0

    def do(self, event: Event) -> list[Effect]:
        """Feed an event and judge what came of it."""
        before = self.drain.state
        effects = self.drain.handle(event, now=self.now)
        for effect in effects:
            if isinstance(effect, FINAL):
                self.finals.append(effect)
                self.judge_end(effect.outcome, event)
            if isinstance(effect, ExitProcess):
                self.exits += 1
                assert self.finals, "no exit without a final sequence"
            if isinstance(effect, AskPlayers):
                assert set(effect.players) <= self.occupancy.players
                assert self.now >= min(
                    [t + 20 for t in self.sigterms[:1] + self.drains] + [t + 15 for t in self.leases]
                )
        if any(isinstance(e, AnnounceUncordoned) and e.lapsed for e in effects):
            assert self.now >= self.renewed + 40, "a lease lapsed that had been renewed"
        if self.sigterms and before is not DrainState.ONLINE:
            assert self.drain.state is not DrainState.ONLINE, "nothing takes SIGTERM back"
        return effects

    def judge_end(self, outcome: Outcome, event: Event) -> None:
        match outcome:
            case Outcome.EMPTY:
                assert self.occupancy.empty
                assert self.sigterms or self.drains
            case Outcome.GRACE:
                first_kill = min(t + 60 for t in self.sigterms[:1] + self.drains)
                assert first_kill - 8 <= self.now
            case Outcome.FORCED:
                assert isinstance(event, ExitOrdered) or (
                    isinstance(event, InterruptedAtTerminal) and self.interrupts > 1
                )

    @rule()
    def sigterm(self) -> None:
        self.sigterms.append(self.now)
        assert self.do(SigtermReceived()) != [AnnounceUncordoned()]

    @rule()
    @precondition(lambda self: self.sigterms)
    def sigterm_again(self) -> None:
        deadline = self.drain.next_deadline()
        state = self.drain.state
        effects = self.do(SigtermReceived())
        if deadline is None or self.now < deadline:
            assert effects == []
            assert (self.drain.next_deadline(), self.drain.state) == (deadline, state)

    @rule()
    def interrupt(self) -> None:
        self.interrupts += 1
        self.sigterms.append(self.now)
        self.do(InterruptedAtTerminal())

    @rule(command=st.sampled_from(["", "c1", "c2", "c3"]), ends=st.booleans())
    def cordon(self, command: str, ends: bool) -> None:
        if ends:
            self.drains.append(self.now)
        self.do(CordonOrdered(command=command, by="ann", exit_when_empty=ends))

    @rule(command=st.sampled_from(["", "l1", "l2"]), token=st.integers(1, 3))
    def leased_cordon(self, command: str, token: int) -> None:
        applied = not command or command not in self.drain._commands
        self.leases.append(self.now)
        before = self.drain.facts(now=self.now)
        held = before is not None and (before.exit_when_empty or before.lease_left_s is None)
        self.do(CordonOrdered(command=command, by="a", lease=Lease(lease_s=40, drain_max_s=15), token=token))
        if applied and token >= self.token:
            self.renewed = self.now
        if applied:
            self.token = max(self.token, token)
        after = self.drain.facts(now=self.now)
        if held and after is not None:
            assert after.lease_left_s is None, "a lease on what a person holds or a signal ends"

    @rule(token=st.integers(1, 3))
    def controllers_uncordon(self, token: int) -> None:
        before = self.drain.facts(now=self.now)
        effects = self.do(UncordonOrdered(by="a", token=token))
        self.token = max(self.token, token)
        if AnnounceUncordoned() in effects:
            assert before is not None
            assert before.lease_left_s is not None, "a controller takes back no more than its own"

    @rule(command=st.sampled_from(["", "u1", "u2"]))
    def uncordon(self, command: str) -> None:
        self.do(UncordonOrdered(command=command))

    @rule()
    def exit_order(self) -> None:
        cordoned = self.drain.state is DrainState.CORDONED
        effects = self.do(ExitOrdered())
        assert any(isinstance(e, FINAL) for e in effects) == cordoned

    @rule(players=st.frozensets(st.sampled_from("abc")), pipes=st.integers(0, 1), jobs=st.integers(0, 1))
    def occupy(self, players: frozenset[str], pipes: int, jobs: int) -> None:
        self.occupancy = OccupancyChanged(players=players, pipes=pipes, jobs=jobs)
        self.do(self.occupancy)

    @rule(seconds=st.sampled_from([0.0, 0.5, 5.0, 30.0]))
    def time(self, seconds: float) -> None:
        """The shell wakes at each deadline on the way."""
        until = self.now + seconds
        while (due := self.drain.next_deadline()) is not None and due <= until:
            self.now = max(self.now, due)
            self.do(TimePassed())
        self.now = until

    @rule()
    @precondition(lambda self: self.drain.state is DrainState.TERMINATING)
    def final_sequence_done(self) -> None:
        assert self.do(FinalSequenceDone()) == [ExitProcess(0)]

    @invariant()
    def keeps_its_own_promises(self) -> None:
        self.drain.check()
        assert len(self.finals) <= 1
        assert self.exits <= 1
        if self.drain.state is DrainState.CORDONED and self.sigterms:
            assert self.now < self.sigterms[0] + 60 - 8, "SIGTERM's last moment was missed"


TestAnyHistory = AnyHistory.TestCase
TestAnyHistory.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)


@pytest.mark.parametrize("players", [0, 1, 5000])
def test_even_a_full_sfu_is_asked_no_faster_than_ten_a_second(players: int) -> None:
    drain = machine(*(f"p{n}" for n in range(players)), bounds=DrainBounds(drain_max_s=2, grace_s=12))
    drain.handle(CordonOrdered(exit_when_empty=True, command="c"), now=NOW)
    asks = [e for _, e in run_to(drain, NOW + 8.9) if isinstance(e, AskPlayers)]
    assert sum(len(e.players) for e in asks) <= 10 * 7
