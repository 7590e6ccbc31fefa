"""What only the Python mover has: its notes, a spread, leaving. The rules of moving are the stories in tests/movers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from player.core import moves as m
from player.core.behaviour import RuleBox, decide
from player.core.mover import Mover
from player.core.phases import Phase
from player.core.rules import safe_to_move
from shared.records import Presence

DESK, TALKING = Presence(), Presence(at_desk=False, in_conversation=True)
TRACKS = ("sound", "picture")


class Player:
    """A mover, its clock, and the effects of the last step."""

    def __init__(self, *, presence: Presence = DESK, tracks: tuple[str, ...] = TRACKS, spread_s: float = 0.0) -> None:
        box = RuleBox(safe_to_move)
        self.now = 100.0
        self.mover = Mover(
            identity="ann",
            room="r",
            publications=tracks,
            decide=lambda facts, asked: decide(facts, box, asked=asked),
            rng=random.Random(1),
            presence=presence,
            spread_s=spread_s,
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
            m.LinkEntered(link=target),
            *(m.PublicationFlows(link=target, publication=track) for track in self.mover.publications),
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
    assert player.told(m.LetGo) == [], "a subscriber still listens to the old copy"
    player.now += 1.0
    player.does(m.Watched(link=old, publication="sound", count=0))
    assert player.told(m.LetGo) == [m.LetGo(link=old)]
    assert player.told(m.ReportMoved) == [m.ReportMoved(sfu="b", left="a", took_ms=1500.0)]


def test_an_assignment_to_an_sfu_known_to_be_cordoned_is_refused_unless_newer(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="b", revision=7)).does(m.CordonHeard(sfu="a"))
    player.assigned("b", revision=7)
    assert player.told(m.OpenLink) == []
    assert player.at_deadline().asked().exclude == ("b",)
    assert len(player.assigned("b", revision=8).told(m.OpenLink)) == 1


# --- staying ---


def test_a_player_that_has_not_begun_may_change_its_mind(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).does(m.Unassigned(request="move-2", code="no-sfu"))
    assert player.mover.phase is Phase.WAITING
    player.does(m.PresenceChanged(presence=TALKING))
    assert player.mover.phase is Phase.SETTLED
    assert "cancelled" in player.steps()


# --- losing things ---


def test_an_sfu_that_is_gone_is_replaced_at_once(settled: Settled) -> None:
    player = settled(presence=TALKING).does(m.SfuEnded(sfu="a", reason="terminating"))
    assert {"sfu-gone", "evicted"} <= set(player.steps())
    asked = player.asked()
    assert (asked.reason, asked.exclude) == ("lost", ("a",))
    assert player.assigned("b").flows().told(m.ReportMoved) == [], "that was no move"


def test_an_sfu_of_which_routers_hear_no_more_is_kept_while_it_may_carry_media(settled: Settled) -> None:
    player = settled()
    home = player.home
    player.does(m.SfuEnded(sfu="a", reason="lost"))
    assert "evicted" not in player.steps()
    assert player.told(m.Abandon) == []
    player.assigned("b").flows()
    assert player.told(m.Abandon) == [m.Abandon(link=home)], "now that the new link carries everything"


def test_a_broken_websocket_costs_no_media(settled: Settled) -> None:
    player = settled()
    home = player.home
    player.does(m.LinkDown(link=home, reason="websocket-broke", cut=False))
    assert "evicted" not in player.steps()
    assert player.told(m.Abandon) == []
    assert (player.asked().reason, player.asked().leave) == ("lost", "")
    player.assigned("a").flows()
    assert player.told(m.Abandon) == [m.Abandon(link=home)], "now that the new link carries everything"


def test_first_requests_of_a_room_are_spread(settled: Settled) -> None:
    player = settled(spread_s=4.0).does(m.CordonHeard(sfu="a"))
    assert player.told(m.AskRouter) == []
    deadline = player.mover.next_deadline()
    assert deadline is not None
    assert 100.0 < deadline <= 104.0
    assert player.at_deadline().asked().reason == "cordoned"


def test_leaving_closes_everything_and_is_the_end(settled: Settled) -> None:
    player = settled().does(m.CordonHeard(sfu="a")).assigned("b")
    assert len(player.does(m.Left()).told(m.Abandon)) == 2
    assert player.does(m.Joined(assigned=True), m.CordonHeard(sfu="a")).effects == []
    assert player.mover.next_deadline() is None
