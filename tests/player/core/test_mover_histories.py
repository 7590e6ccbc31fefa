"""The mover under random histories: it never lets go of the last link with a publication, and finds a live SFU."""

from __future__ import annotations

import random

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from player.core import moves as m
from player.core.behaviour import RuleBox, decide
from player.core.mover import Mover
from player.core.phases import Phase
from player.core.rules import safe_to_move
from shared.records import Presence
from tests.budget import examples

SFUS = ("a", "b", "c", "d")
TRACKS = ("sound", "picture")
some_sfu = st.sampled_from(SFUS)


class World(RuleBasedStateMachine):
    """SFUs that are cordoned and die, a router that answers or not, links that come up, flow, break."""

    @initialize(seed=st.integers(0, 2**16), tracks=st.sampled_from([TRACKS, ("sound",), ()]))
    def begin(self, seed: int, tracks: tuple[str, ...]) -> None:
        box = RuleBox(safe_to_move)
        self.now = 0.0
        self.mover = Mover(
            identity="ann",
            room="r",
            publications=tracks,
            decide=lambda facts, asked: decide(facts, box, asked=asked),
            rng=random.Random(seed),
            spread_s=0.5,
        )
        self.revision = 0
        self.cordoned: set[str] = set()
        self.dead: set[str] = set()
        self.links: dict[int, str] = {}
        """Open links and their SFUs."""
        self.cut: set[int] = set()
        """Links whose media the world has cut."""
        self.flowing: dict[int, set[str]] = {}
        self.questions: list[m.AskRouter] = []
        self.step(m.Joined(assigned=True))
        self.step(m.Assigned(sfu="a", address="ws://a", token="t", incarnation=1, revision=self.next_revision()))
        self.all_goes_well(None)

    def step(self, event: m.Event | None) -> None:
        before = self.carried()
        timed_out = {old.link.number for old in self.mover.links.olds if old.until <= self.now}
        effects = self.mover.tick(now=self.now) if event is None else self.mover.handle(event, now=self.now)
        for effect in effects:
            self.carry_out(effect)
        after = self.carried()
        for publication, numbers in before.items():
            assert publication in after or numbers <= self.cut | timed_out, (
                f"no link was left that carries {publication}"
            )

    def carried(self) -> dict[str, set[int]]:
        """Publications, and the open links that carry each and that the world has not cut."""
        carried: dict[str, set[int]] = {}
        for number in set(self.links) - self.cut:
            for publication in self.flowing.get(number, set()):
                carried.setdefault(publication, set()).add(number)
        return carried

    def carry_out(self, effect: m.Effect) -> None:
        match effect:
            case m.AskRouter():
                self.questions.append(effect)
            case m.OpenLink():
                assert effect.link not in self.links
                self.links[effect.link] = effect.sfu
            case m.LetGo() | m.Abandon():
                self.links.pop(effect.link, None)
            case m.Announce():
                assert any(
                    sfu == effect.sfu and effect.publication in self.flowing.get(number, set())
                    for number, sfu in self.links.items()
                ), "announced where it does not flow"

    def next_revision(self) -> int:
        self.revision += 1
        return self.revision

    # --- the SFUs ---

    @rule(sfu=some_sfu)
    def an_sfu_is_cordoned(self, sfu: str) -> None:
        self.cordoned.add(sfu)
        self.step(m.CordonHeard(sfu=sfu, incarnation=1, revision=self.next_revision()))

    @rule(sfu=some_sfu)
    def a_cordon_is_taken_back(self, sfu: str) -> None:
        self.cordoned.discard(sfu)
        self.step(m.CordonTakenBack(sfu=sfu, incarnation=1, revision=self.next_revision()))

    @rule(sfu=some_sfu, told=st.booleans())
    def an_sfu_dies(self, sfu: str, told: bool) -> None:
        self.dead.add(sfu)
        dying = [number for number, where in self.links.items() if where == sfu]
        self.cut.update(dying)
        if told:
            self.step(m.SfuEnded(sfu=sfu, reason="lost"))
        for number in dying:
            self.step(m.LinkDown(link=number, reason="refused", cut=True))

    @rule(sfu=some_sfu)
    def an_sfu_comes_up(self, sfu: str) -> None:
        self.dead.discard(sfu)
        self.cordoned.discard(sfu)

    @rule(within_s=st.floats(0, 30))
    def the_home_asks(self, within_s: float) -> None:
        home = self.mover.links.home
        if home is not None:
            self.cordoned.add(home.sfu)
            self.step(m.AskedToMove(sfu=home.sfu, within_s=within_s, incarnation=1, revision=self.next_revision()))

    # --- the router ---

    @precondition(lambda self: self.questions)
    @rule(sfu=some_sfu)
    def the_router_answers(self, sfu: str) -> None:
        question = self.questions.pop()
        if sfu == question.leave or sfu in self.cordoned:
            self.step(m.Unassigned(request=question.request, code="no-sfu", retry_after_s=1.0))
        else:
            self.answer(question, sfu)

    def answer(self, question: m.AskRouter, sfu: str) -> None:
        self.step(
            m.Assigned(
                sfu=sfu,
                address="ws://x",
                token="t",
                incarnation=1,
                revision=self.next_revision(),
                request=question.request,
            )
        )

    @rule()
    def the_router_is_lost(self) -> None:
        self.questions.clear()
        self.step(m.RouterLost())

    @rule(resumed=st.booleans())
    def the_router_is_back(self, resumed: bool) -> None:
        self.step(m.RouterBack() if resumed else m.Joined(assigned=False))

    @rule(sfu=st.none() | some_sfu)
    def all_goes_well(self, sfu: str | None) -> None:
        """The router answers, if it was asked, and the link comes up, if one is being opened."""
        if self.questions and sfu is not None and sfu not in self.cordoned and sfu != self.questions[-1].leave:
            self.answer(self.questions.pop(), sfu)
        self.come_up_in_full()

    # --- the links ---

    @precondition(lambda self: self.mover.links.target)
    @rule(publication=st.sampled_from(TRACKS))
    def the_target_comes_up(self, publication: str) -> None:
        self.come_up(publication)

    def come_up_in_full(self) -> None:
        for publication in ("", *self.mover.publications):
            if self.mover.links.target is not None:
                self.come_up(publication)

    def come_up(self, publication: str) -> None:
        target = self.mover.links.target
        assert target is not None
        if target.sfu in self.dead:
            self.step(m.LinkDown(link=target.number, reason="unreachable"))
            return
        if publication in self.mover.publications:
            self.flowing.setdefault(target.number, set()).add(publication)
            self.step(m.PublicationFlows(link=target.number, publication=publication))
        else:
            self.flowing.setdefault(target.number, set())
            self.step(m.LinkEntered(link=target.number))

    @precondition(lambda self: self.links)
    @rule(data=st.data(), cut=st.booleans())
    def a_link_breaks(self, data: st.DataObject, cut: bool) -> None:
        number = data.draw(st.sampled_from(sorted(self.links)))
        if cut:
            self.cut.add(number)
        self.step(m.LinkDown(link=number, reason="broke", cut=cut))

    @precondition(lambda self: self.links)
    @rule(data=st.data(), count=st.integers(0, 2), publication=st.sampled_from(TRACKS))
    def somebody_listens(self, data: st.DataObject, count: int, publication: str) -> None:
        number = data.draw(st.sampled_from(sorted(self.links)))
        self.step(m.Watched(link=number, publication=publication, count=count))

    # --- the player, and time ---

    @rule(desk=st.booleans(), talking=st.booleans())
    def the_presence_changes(self, desk: bool, talking: bool) -> None:
        self.step(m.PresenceChanged(presence=Presence(at_desk=desk, in_conversation=talking)))

    @rule(seconds=st.floats(0, 8))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds
        self.step(None)

    @invariant()
    def the_mover_is_sound(self) -> None:
        self.mover.check()

    def teardown(self) -> None:
        """Everything else dies, one SFU answers: the player ends up there."""
        if not hasattr(self, "mover"):
            return
        self.an_sfu_comes_up("d")
        self.step(m.CordonTakenBack(sfu="d", incarnation=1, revision=self.next_revision()))
        for sfu in ("a", "b", "c"):
            self.an_sfu_dies(sfu, told=True)
        self.step(m.RouterLost())
        self.questions.clear()
        self.step(m.RouterBack())
        for _ in range(200):
            if self.mover.links.target is not None:
                self.come_up_in_full()
            elif self.questions:
                self.answer(self.questions.pop(), "d")
            elif (deadline := self.mover.next_deadline()) is not None:
                self.now = max(self.now, deadline)
                self.step(None)
            else:
                break
        home = self.mover.links.home
        assert home is not None
        assert home.sfu == "d"
        assert self.mover.phase is Phase.SETTLED
        assert set(self.links) == {home.number}, "links were left open"


World.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestMoverHistories = World.TestCase
