"""A player's way from SFU to SFU, told as stories: what happens, and what the player does."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from player.core import moves as m
from player.core.behaviour import RuleBox, decide
from player.core.links import LET_GO_S
from player.core.mover import Mover
from player.core.phases import OPEN_TIMEOUT_S, REQUEST_TIMEOUT_S, Phase
from player.core.rules import Rule, safe_to_move
from shared.records import Presence

DESK, TALKING = Presence(), Presence(at_desk=False, in_conversation=True)
TRACKS = ("sound", "picture")


class Player:
    """A mover, its clock, and the effects of the last step."""

    def __init__(
        self, *, presence: Presence = DESK, tracks: tuple[str, ...] = TRACKS, rule: Rule = safe_to_move
    ) -> None:
        box = RuleBox(rule)
        self.now = 100.0
        self.mover = Mover(
            identity="ann",
            room="r",
            publications=tracks,
            decide=lambda facts, asked: decide(facts, box, asked=asked),
            rng=random.Random(1),
            presence=presence,
        )
        self.effects: list[m.Effect] = []

    def does(self, *events: m.Event) -> Player:
        self.effects = [effect for event in events for effect in self.mover.handle(event, now=self.now)]
        return self

    def after(self, seconds: float) -> Player:
        self.now += seconds
        self.effects = self.mover.tick(now=self.now)
        return self

    def at_deadline(self) -> Player:
        deadline = self.mover.next_deadline()
        assert deadline is not None
        return self.after(max(0.0, deadline - self.now))

    def assigned(self, sfu: str, *, revision: int = 1) -> Player:
        asked = [effect for effect in self.effects if isinstance(effect, m.AskRouter)]
        request = asked[-1].request if asked else ""
        return self.does(m.Assigned(sfu=sfu, address=f"ws://{sfu}", token="t", revision=revision, request=request))

    def flows(self) -> Player:
        target = self.target
        return self.does(
            m.LinkEntered(link=target), *(m.PublicationFlows(link=target, publication=track) for track in self.mover.publications)
        )

    @property
    def target(self) -> int:
        assert self.mover.links.target is not None
        return self.mover.links.target.number

    @property
    def home(self) -> int:
        assert self.mover.links.home is not None
        return self.mover.links.home.number

    @property
    def at(self) -> str:
        return self.mover.links.home.sfu if self.mover.links.home else ""

    def told(self, kind: type[m.Effect]) -> list[m.Effect]:
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def steps(self) -> list[str]:
        return [effect.step.value for effect in self.effects if isinstance(effect, m.TellStep)]

    def asked(self) -> m.AskRouter:
        (effect,) = [effect for effect in self.effects if isinstance(effect, m.AskRouter)]
        return effect


Make = Callable[..., Player]


@pytest.fixture
def make() -> Iterator[Make]:
    players: list[Player] = []

    def build(**kwargs: object) -> Player:
        players.append(Player(**kwargs))  # type: ignore[arg-type]
        return players[-1]

    yield build
    for player in players:
        player.mover.check()


@pytest.fixture
def settled(make: Make) -> Callable[..., Player]:
    def build(**kwargs: object) -> Player:
        player = make(**kwargs).does(m.Joined(assigned=True)).assigned("a").flows()
        assert player.at == "a"
        assert player.mover.phase is Phase.SETTLED
        return player

    return build


Settled = Callable[..., Player]


# --- joining ---


def test_a_join_opens_the_assigned_link_and_announces_each_track_as_it_flows(make: Make) -> None:
    player = make().does(m.Joined(assigned=True)).assigned("a")
    (opened,) = player.told(m.OpenLink)
    assert isinstance(opened, m.OpenLink)
    assert (opened.sfu, opened.address, opened.generation) == ("a", "ws://a", 1)
    player.does(m.LinkEntered(link=player.target), m.PublicationFlows(link=player.target, publication="sound"))
    assert [effect.publication for effect in player.told(m.Announce)] == ["sound"]  # type: ignore[union-attr]
    player.does(m.PublicationFlows(link=player.target, publication="picture"))
    assert [effect.publication for effect in player.told(m.Announce)] == ["picture"]  # type: ignore[union-attr]
    assert player.mover.phase is Phase.SETTLED
    assert player.told(m.ReportMoved) == []


def test_a_player_that_only_listens_is_at_home_once_it_is_let_in(make: Make) -> None:
    player = make(tracks=()).does(m.Joined(assigned=True)).assigned("a")
    assert player.does(m.LinkEntered(link=player.target)).at == "a"


def test_without_an_sfu_the_player_asks_again_after_the_time_it_was_given(make: Make) -> None:
    player = make().does(m.Joined(assigned=False), m.Unassigned(code="no-sfu", retry_after_s=4.0))
    assert player.mover.phase is Phase.WAITING
    deadline = player.mover.next_deadline()
    assert deadline is not None
    assert 102.0 <= deadline <= 106.0
    assert player.at_deadline().asked().reason == "join", "none could be had; it has not failed to reach any"


def test_a_first_link_that_fails_is_excluded_and_another_is_asked_for(make: Make) -> None:
    player = make().does(m.Joined(assigned=True)).assigned("a")
    player.does(m.LinkDown(link=player.target, reason="unreachable"))
    assert player.steps() == ["failed"]
    asked = player.at_deadline().asked()
    assert (asked.exclude, asked.reason) == (("a",), "failed")
    assert player.assigned("b").flows().at == "b"


# --- moving ---


def test_a_cordon_moves_a_player_at_its_desk_make_before_break(settled: Settled) -> None:
    player = settled()
    old = player.home
    player.does(
        m.Watched(link=old, publication="sound", count=2),
        m.CordonHeard(sfu="a", incarnation=3, revision=9),
    )
    assert player.told(m.ReportDecided) == [m.ReportDecided(sfu="a", move=True, reason="at-desk")]
    asked = player.asked()
    assert (asked.leave, asked.incarnation, asked.revision, asked.reason) == ("a", 3, 9, "cordoned")
    player.assigned("b")
    player.does(m.LinkEntered(link=player.target), m.PublicationFlows(link=player.target, publication="sound"))
    assert player.told(m.Announce) == [], "the others hear of it when all of it flows"
    assert player.at == "a"
    player.now += 0.5
    player.does(m.PublicationFlows(link=player.target, publication="picture"))
    assert player.at == "b"
    assert {effect.sfu for effect in player.told(m.Announce)} == {"b"}  # type: ignore[union-attr]
    assert player.told(m.LetGo) == [], "somebody still listens to the old copy"
    player.now += 1.0
    player.does(m.Watched(link=old, publication="sound", count=0))
    assert player.told(m.LetGo) == [m.LetGo(link=old)]
    assert player.told(m.ReportMoved) == [m.ReportMoved(sfu="b", left="a", took_ms=1500.0)]


def test_each_copy_has_a_higher_generation_than_all_before(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b")
    player.does(m.LinkDown(link=player.target, reason="x")).at_deadline().assigned("c")
    (opened,) = player.told(m.OpenLink)
    assert isinstance(opened, m.OpenLink)
    first = player.mover.links.home
    assert first is not None
    assert opened.generation > first.generation + 1


def test_the_old_link_is_let_go_after_its_time_whoever_listens(settled: Settled) -> None:
    player = settled()
    player.does(m.Watched(link=player.home, publication="sound", count=1), m.CordonHeard(sfu="a")).assigned("b").flows()
    assert player.after(LET_GO_S - 1).told(m.LetGo) == []
    assert len(player.after(1).told(m.LetGo)) == 1


@pytest.mark.parametrize(
    "event",
    [
        lambda player: m.LinkDown(link=player.target, reason="dtls-timeout"),
        lambda player: m.LinkDown(link=player.target, reason="sfu-cordoned"),
        lambda player: m.CordonHeard(sfu="b"),
        lambda player: m.SfuEnded(sfu="b", reason="lost"),
    ],
)
def test_whatever_fails_before_the_switch_costs_the_target_only(
    settled: Settled, event: Callable[[Player], m.Event]
) -> None:
    player = settled()
    home = player.home
    player.does(m.CordonHeard(sfu="a")).assigned("b")
    target = player.target
    player.does(m.LinkEntered(link=target), m.PublicationFlows(link=target, publication="sound")).does(event(player))
    assert player.told(m.Abandon) == [m.Abandon(link=target)]
    assert player.home == home
    asked = player.at_deadline().asked()
    assert (asked.leave, asked.exclude) == ("a", ("b",))
    assert player.assigned("c").flows().at == "c"


def test_a_target_that_never_flows_is_given_up(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b")
    assert player.after(OPEN_TIMEOUT_S - 1).effects == []
    assert "failed" in player.after(1).steps()


def test_a_router_that_does_not_answer_is_asked_again(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a"))
    first = player.asked().request
    player.after(REQUEST_TIMEOUT_S)
    assert player.mover.phase is Phase.WAITING
    assert player.at_deadline().asked().request != first


def test_the_answer_to_an_older_question_is_ignored(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a"))
    player.does(m.Assigned(sfu="b", address="ws://b", token="t", request="move-0"))
    assert player.mover.phase is Phase.ASKING


def test_an_assignment_to_an_sfu_known_to_be_cordoned_is_refused_unless_newer(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="b", revision=7)).does(m.CordonHeard(sfu="a"))
    player.assigned("b", revision=7)
    assert player.told(m.OpenLink) == []
    assert player.at_deadline().asked().exclude == ("b",)
    assert len(player.assigned("b", revision=8).told(m.OpenLink)) == 1


# --- staying ---


def test_a_player_in_a_conversation_stays_and_says_why(settled: Settled) -> None:
    player = settled(presence=TALKING).does(m.CordonHeard(sfu="a"))
    assert player.told(m.ReportDecided) == [m.ReportDecided(sfu="a", move=False, reason="away-from-desk")]
    assert player.told(m.AskRouter) == []
    assert player.does(m.CordonHeard(sfu="a")).told(m.ReportDecided) == [], "said once"


def test_the_rule_is_asked_again_at_each_change(settled: Settled) -> None:
    player = settled(presence=TALKING).does(m.CordonHeard(sfu="a"))
    player.does(m.PresenceChanged(presence=Presence(at_desk=False)))
    assert player.told(m.ReportDecided) == [m.ReportDecided(sfu="a", move=True, reason="conversation-over")]
    assert player.asked().leave == "a"


def test_a_player_that_has_not_begun_may_change_its_mind(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).does(m.Unassigned(request="move-2", code="no-sfu"))
    assert player.mover.phase is Phase.WAITING
    player.does(m.PresenceChanged(presence=TALKING))
    assert player.mover.phase is Phase.SETTLED
    assert "cancelled" in player.steps()


def test_a_player_that_has_begun_goes_through_with_it(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b").does(m.PresenceChanged(presence=TALKING))
    assert player.mover.phase is Phase.OPENING
    assert player.flows().at == "b"


def test_asked_to_move_it_moves_within_the_time_whatever_the_rule_says(settled: Settled) -> None:
    player = settled(presence=TALKING).does(m.CordonHeard(sfu="a")).does(m.AskedToMove(sfu="a", within_s=20.0))
    assert player.told(m.ReportDecided) == [m.ReportDecided(sfu="a", move=True, reason="asked")]
    deadline = player.mover.next_deadline()
    assert deadline is not None
    assert 100.0 <= deadline <= 120.0
    assert player.at_deadline().asked().reason == "asked"
    assert player.assigned("b").flows().at == "b"


def test_asked_without_having_heard_of_the_cordon_it_moves_too(settled: Settled) -> None:
    player = settled(presence=TALKING).does(m.AskedToMove(sfu="a", within_s=0.0, incarnation=4, revision=2))
    asked = player.asked()
    assert (asked.leave, asked.incarnation, asked.revision) == ("a", 4, 2)


def test_being_asked_does_not_delay_a_move_that_is_under_way(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b").does(m.AskedToMove(sfu="a", within_s=600.0))
    assert player.flows().at == "b"


# --- taking it back, and more cordons ---


def test_an_uncordon_in_the_middle_of_a_move_takes_it_back(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a", revision=5)).assigned("b")
    target = player.target
    player.does(m.CordonTakenBack(sfu="a", revision=6))
    assert player.told(m.Abandon) == [m.Abandon(link=target)]
    assert (player.at, player.mover.phase) == ("a", Phase.SETTLED)


def test_an_older_uncordon_changes_nothing(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a", revision=5)).assigned("b").does(m.CordonTakenBack(sfu="a", revision=4))
    assert player.mover.phase is Phase.OPENING


def test_the_new_sfu_may_be_cordoned_while_the_old_one_is_still_being_let_go(settled: Settled) -> None:
    player = settled()
    player.does(m.Watched(link=player.home, publication="sound", count=1), m.CordonHeard(sfu="a")).assigned("b").flows()
    assert player.does(m.CordonHeard(sfu="b")).asked().leave == "b"
    player.assigned("c").flows()
    assert player.at == "c"
    assert [old.link.sfu for old in player.mover.links.olds] == ["a"]


# --- losing things ---


def test_an_sfu_that_is_gone_is_replaced_at_once(settled: Settled) -> None:
    player = settled(presence=TALKING).does(m.SfuEnded(sfu="a", reason="lost"))
    assert {"sfu-gone", "evicted"} <= set(player.steps())
    asked = player.asked()
    assert (asked.reason, asked.exclude) == ("lost", ("a",))
    assert player.assigned("b").flows().told(m.ReportMoved) == [], "that was no move"


def test_a_broken_websocket_costs_no_media(settled: Settled) -> None:
    player = settled()
    home = player.home
    player.does(m.LinkDown(link=home, reason="websocket-broke", cut=False))
    assert "evicted" not in player.steps()
    assert player.told(m.Abandon) == []
    assert (player.asked().reason, player.asked().leave) == ("lost", "")
    player.assigned("a").flows()
    assert player.told(m.Abandon) == [m.Abandon(link=home)], "now that the new link carries everything"


def test_losing_home_in_the_middle_of_a_move_lets_the_others_have_what_flows(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b")
    player.does(m.LinkEntered(link=player.target), m.PublicationFlows(link=player.target, publication="sound"))
    player.does(m.LinkDown(link=player.home, reason="terminating"))
    assert "evicted" in player.steps()
    assert [effect.publication for effect in player.told(m.Announce)] == ["sound"]  # type: ignore[union-attr]
    player.does(m.PublicationFlows(link=player.target, publication="picture"))
    assert player.at == "b"


def test_a_lost_router_is_waited_for_and_asked_again(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).does(m.RouterLost())
    assert player.mover.next_deadline() is None
    player.does(m.RouterBack()).at_deadline()
    assert player.asked().leave == "a"


def test_a_router_lost_while_a_link_opens_disturbs_nothing(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b").does(m.RouterLost())
    assert player.flows().at == "b"
    assert {effect.sfu for effect in player.does(m.RouterBack()).told(m.Announce)} == {"b"}  # type: ignore[union-attr]


def test_a_resume_that_wants_us_elsewhere_is_a_move(settled: Settled) -> None:
    player = settled().does(m.RouterLost(), m.RouterBack()).assigned("b")
    assert player.at == "a"
    assert player.flows().at == "b"


def test_a_resume_that_confirms_our_sfu_changes_nothing(settled: Settled) -> None:
    player = settled().does(m.RouterLost(), m.RouterBack()).assigned("a")
    assert (player.effects, player.mover.phase) == ([], Phase.SETTLED)


def test_a_new_session_opens_new_links_before_the_old_ones_go(settled: Settled) -> None:
    player = settled()
    home = player.home
    player.does(m.RouterLost()).does(m.Joined(assigned=True)).assigned("a")
    assert player.home == home
    player.flows()
    assert player.home != home
    assert player.told(m.LetGo) == [m.LetGo(link=home)]


def test_leaving_closes_everything_and_is_the_end(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b")
    assert len(player.does(m.Left()).told(m.Abandon)) == 2
    assert player.does(m.Joined(assigned=True), m.CordonHeard(sfu="a")).effects == []
    assert player.mover.next_deadline() is None
