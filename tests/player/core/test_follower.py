"""Which publications a player takes from which SFU while others move."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from player.core.follower import Dropped, Effect, Follower, Switched, Unneeded, Visit, Want
from shared.records import PublicationRecord
from tests.budget import examples


def at(sfu: str, name: str = "p", *, generation: int = 1) -> PublicationRecord:
    return PublicationRecord(publication=name, player="other", kind="audio", sfu=sfu, generation=generation)


def follower() -> Follower:
    return Follower(rng=random.Random(1), own=frozenset({"mine"}))


def playing() -> Follower:
    """Takes `p` from `a`, where it has delivered."""
    f = follower()
    assert f.snapshot([at("a")]) == [Visit("a")]
    assert f.ready("a") == [Want("a", ("p",))]
    assert f.delivered("p", "a") == []
    return f


def test_our_own_publications_are_not_taken_even_from_an_older_session() -> None:
    assert follower().snapshot([at("a", "mine")]) == []


def test_what_is_on_an_sfu_we_are_linked_to_is_wanted_there() -> None:
    f = follower()
    assert f.ready("a") == []
    assert f.snapshot([at("a"), at("a", "q")]) == [Want("a", ("p", "q"))]


def test_a_move_is_followed_make_before_break() -> None:
    f = playing()
    assert f.changed([at("b", generation=2)]) == [Visit("b")]
    assert f.ready("b") == [Want("b", ("p",))]
    assert f.wanted("a") == ("p",), "the old copy plays on"
    assert f.delivered("p", "b") == [Switched("p", "b"), Want("a", ()), Unneeded("a")]
    assert f.wanted("a") == ()


def test_an_older_generation_is_ignored() -> None:
    f = playing()
    f.changed([at("b", generation=3)])
    assert f.changed([at("a", generation=2)]) == []
    assert f.publications["p"].sfu == "b"


def test_a_move_back_waits_for_the_new_copy_too() -> None:
    f = playing()
    f.changed([at("b", generation=2)])
    f.ready("b")
    assert f.changed([at("a", generation=3)]) == []
    assert f.wanted("b") == ("p",)
    assert f.delivered("p", "a") == [Switched("p", "a"), Want("b", ()), Unneeded("b")]


def test_a_second_move_before_the_first_has_delivered_keeps_what_plays() -> None:
    f = playing()
    f.changed([at("b", generation=2)])
    f.ready("b")
    f.changed([at("c", generation=3)])
    f.ready("c")
    assert f.wanted("a") == f.wanted("b") == f.wanted("c") == ("p",)
    assert set(f.delivered("p", "c")) >= {Want("a", ()), Want("b", ())}


def test_an_ended_publication_is_dropped_everywhere() -> None:
    f = playing()
    assert f.ended(["p", "unknown"]) == [Dropped("p"), Want("a", ()), Unneeded("a")]
    assert f.snapshot([]) == []


def test_a_snapshot_replaces_all_we_knew() -> None:
    f = playing()
    assert f.snapshot([at("a", "q")]) == [Dropped("p"), Want("a", ("q",))]


def test_a_lost_link_is_tried_again_with_jitter_while_it_is_needed() -> None:
    f = playing()
    assert f.lost("a", now=10.0) == []
    deadline = f.next_deadline()
    assert deadline is not None
    assert 10.0 <= deadline <= 11.0
    assert f.tick(now=deadline) == [Visit("a")]
    f.lost("a", now=12.0)
    assert f.ended(["p"]) == [Dropped("p")]
    assert f.next_deadline() is None


def test_a_visit_that_is_let_in_and_brings_nothing_is_tried_ever_later() -> None:
    f, now, pauses = playing(), 10.0, []
    for _ in range(40):
        f.lost("a", now=now)
        due = f.next_deadline()
        assert due is not None
        pauses.append(due - now)
        now = due
        assert f.tick(now=now) == [Visit("a")]
        f.ready("a")
    assert max(pauses[20:]) > 4.0
    f.delivered("p", "a")
    f.lost("a", now=now)
    assert (f.next_deadline() or 0.0) <= now + 1.0, "once something comes, all is forgotten"


def test_an_sfu_that_is_gone_is_not_tried_again() -> None:
    f = playing()
    assert f.gone("a") == []
    assert f.next_deadline() is None
    assert f.changed([at("b", generation=2)]) == [Visit("b")]


def test_a_link_closed_on_purpose_is_opened_again_at_once_when_needed() -> None:
    assert playing().closed("a") == [Visit("a")]


def test_an_old_copy_that_can_no_longer_deliver_is_forgotten() -> None:
    f = playing()
    f.changed([at("b", generation=2)])
    f.lost("a", now=1.0)
    assert f.wanted("a") == ()


def test_a_copy_ended_by_its_sfu_is_forgotten_unless_the_room_says_it_is_there() -> None:
    f = playing()
    assert f.copy_ended("p", "a") == []
    assert f.wanted("a") == ("p",), "it may be published there again"
    f.changed([at("b", generation=2)])
    assert f.copy_ended("p", "a") == [Want("a", ()), Unneeded("a")]


SFUS, NAMES = ("a", "b", "c"), ("p", "q")


@settings(deadline=None, max_examples=examples(150))
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("moved"), st.sampled_from(NAMES), st.sampled_from(SFUS)),
            st.tuples(st.just("up"), st.just(""), st.sampled_from(SFUS)),
            st.tuples(st.just("lost"), st.just(""), st.sampled_from(SFUS)),
            st.tuples(st.just("delivered"), st.sampled_from(NAMES), st.sampled_from(SFUS)),
            st.tuples(st.just("ended"), st.sampled_from(NAMES), st.just("")),
        ),
        max_size=40,
    )
)
def test_whatever_happens_the_newest_copy_is_wanted_and_a_playing_one_is_kept_until_it_delivers(
    history: list[tuple[str, str, str]],
) -> None:
    f, sent, up = follower(), dict[str, tuple[str, ...]](), set[str]()
    playing: dict[str, set[str]] = {name: set() for name in NAMES}
    for generation, (what, name, sfu) in enumerate(history, 2):
        effects: list[Effect] = []
        if what == "moved":
            effects = f.changed([at(sfu, name, generation=generation)])
        elif what == "up" and sfu not in up:
            up.add(sfu)
            effects = f.ready(sfu)
        elif what == "lost" and sfu in up:
            up.discard(sfu)
            sent.pop(sfu, None)
            for places in playing.values():
                places.discard(sfu)
            effects = f.lost(sfu, now=0.0)
        elif what == "delivered" and name in sent.get(sfu, ()):
            playing[name].add(sfu)
            effects = f.delivered(name, sfu)
        elif what == "ended":
            effects = f.ended([name])
            playing[name].clear()
        for effect in effects:
            if isinstance(effect, Want):
                assert effect.sfu in up, "wanted over a link that is not there"
                sent[effect.sfu] = effect.publications
        for known, record in f.publications.items():
            if record.sfu in up:
                assert known in sent.get(record.sfu, ()), "the newest copy is not wanted"
            heard = {place for place in playing[known] if known in sent.get(place, ())}
            assert heard or not playing[known], "what played was dropped before something else played"
            playing[known] = heard
