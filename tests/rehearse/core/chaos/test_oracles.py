"""Each principle: what breaks it, and what is excused."""

from __future__ import annotations

import pytest

from rehearse.core.chaos.events import TRAITS, ChaosEvent, ChaosKind
from rehearse.core.chaos.oracles import CORDON_HEARD_S, RECOVER_S, SEEN_WITHIN_S, gap_unaffected, judge
from rehearse.core.chaos.report import done, violation, worst_gap
from rehearse.core.chaos.seen import (
    BotSample,
    BotWord,
    ChaosSeen,
    Happened,
    RoomSight,
    RouterSight,
    all_hear,
    samples_in,
    touched_by,
)

BOUND_MS = 500.0


def event(kind: ChaosKind, target: str, *, lasts_s: float = 20.0) -> ChaosEvent:
    return ChaosEvent(number=1, round=1, kind=kind, target=target, offset_s=0.0, lasts_s=lasts_s)


def happened(kind: ChaosKind, target: str, *touched: str, began: float = 100.0, lasts_s: float = 20.0) -> Happened:
    what = event(kind, target, lasts_s=lasts_s)
    return Happened(what, began=began, ended=began + lasts_s, touched=frozenset(touched))


def sample(
    bot: str, *, at: float, gap_ms: float | None = 20.0, sfu: str = "sfu-1", room: str = "r", units: int = 0
) -> BotSample:
    return BotSample(at=at, bot=bot, room=room, sfu=sfu, gap_ms=gap_ms, units=units)


def seen(*events: Happened) -> ChaosSeen:
    return ChaosSeen(happened=list(events), recovered_s=2.0)


def broken(what: ChaosSeen) -> list[str]:
    return [each.principle for each in judge(what, bound_ms=BOUND_MS)]


def test_a_round_without_trouble_breaks_nothing() -> None:
    assert broken(seen(happened(ChaosKind.KILL_SFU, "sfu-1", "ann"))) == []


@pytest.mark.parametrize("kind", [kind for kind, traits in TRAITS.items() if not traits.media])
def test_what_is_not_media_excuses_no_gap(kind: ChaosKind) -> None:
    round_ = seen(happened(kind, "sfu-1", *touched_by(event(kind, "sfu-1"), [sample("ann", at=99.0)])))
    round_.samples = [sample("ann", at=105.0, gap_ms=501.0)]
    assert broken(round_) == ["untouched media goes on"]
    assert gap_unaffected(round_) == 501.0


def test_a_gap_of_a_bot_that_the_event_touches_is_excused_until_it_has_recovered() -> None:
    round_ = seen(happened(ChaosKind.KILL_SFU, "sfu-1", "ann"))
    round_.samples = [sample("ann", at=110.0, gap_ms=9000.0), sample("ann", at=120.0 + RECOVER_S, gap_ms=900.0)]
    assert (broken(round_), gap_unaffected(round_)) == ([], 0.0)
    round_.samples = [sample("ann", at=122.0 + RECOVER_S, gap_ms=900.0)]
    assert broken(round_) == ["untouched media goes on"]
    round_.samples = [sample("ann", at=99.0, gap_ms=900.0)]
    assert broken(round_) == ["untouched media goes on"], "before it began"


def test_a_stall_of_the_machine_excuses_a_gap_of_its_size_at_its_time() -> None:
    round_ = seen(happened(ChaosKind.KILL_REDIS, "redis"))
    round_.samples = [sample("ann", at=105.0, gap_ms=900.0)]
    round_.stalls = [(90.0, 0.2)]
    assert broken(round_) == ["untouched media goes on"]
    round_.stalls = [(104.5, 0.2)]
    assert broken(round_) == []


def test_what_the_bots_were_late_in_sending_is_granted_once_and_told() -> None:
    round_ = seen(happened(ChaosKind.KILL_REDIS, "redis"))
    round_.samples = [sample("ann", at=105.0, gap_ms=900.0)]
    round_.lags = [(104.8, 0.3)]
    (only,) = judge(round_, bound_ms=BOUND_MS)
    assert only.late_s == 0.3
    assert violation(only, number=1, seed=1, logs="", flags="").machine_late_ms == 300.0
    round_.lags = [(104.8, 0.45)]
    assert broken(round_) == []
    round_.lags = [(90.0, 0.9)]
    assert broken(round_) == ["untouched media goes on"]


def test_what_a_packets_way_waited_for_a_cpu_is_granted() -> None:
    """A silence that a sample tells may have ended a second before it."""
    round_ = seen(happened(ChaosKind.KILL_REDIS, "redis"))
    round_.samples = [sample("ann", at=105.0, gap_ms=900.0)]
    round_.waits = [(103.4, 0.25), (104.4, 0.2)]
    assert broken(round_) == []
    round_.waits = [(101.9, 0.25), (104.4, 0.2)]
    (only,) = judge(round_, bound_ms=BOUND_MS)
    assert only.late_s == 0.2


def test_media_is_given_up_only_by_those_whom_an_event_touches() -> None:
    round_ = seen(happened(ChaosKind.CUT_LINKS, "sfu-1"), happened(ChaosKind.CUT_MEDIA, "sfu-2", "bob"))
    round_.words = [BotWord(104.0, "ann", "evicted", "sfu-1"), BotWord(104.0, "bob", "evicted", "sfu-2")]
    (only,) = judge(round_, bound_ms=BOUND_MS)
    assert only.sentence.startswith("ann gave up its media on sfu-1")


@pytest.mark.parametrize("word", ["evicted", "joined"])
def test_after_a_stall_of_everything_no_player_rejoins(word: str) -> None:
    round_ = seen(happened(ChaosKind.STALL_ALL, "*", "ann", lasts_s=10.0))
    round_.words = [BotWord(111.0, "ann", word)]
    assert broken(round_) == ["what was only late is not dead"]
    round_.words = [BotWord(111.0, "ann", "switched", "sfu-1")]
    assert broken(round_) == []


def test_not_to_recover_is_a_violation() -> None:
    assert broken(ChaosSeen(happened=[happened(ChaosKind.KILL_SFU, "sfu-1")])) == [
        "everybody hears everybody afterwards"
    ]


@pytest.mark.parametrize("kind", [ChaosKind.CORDON, ChaosKind.DRAIN_SFU])
def test_no_player_comes_to_a_cordoned_sfu_once_the_routers_know(kind: ChaosKind) -> None:
    round_ = seen(happened(kind, "sfu-1"))
    round_.words = [
        BotWord(100.0 + CORDON_HEARD_S - 0.1, "ann", "switched", "sfu-1"),
        BotWord(110.0, "ann", "switched", "sfu-2"),
        BotWord(121.0, "ann", "switched", "sfu-1"),
    ]
    assert broken(round_) == []
    round_.words.append(BotWord(110.0, "ann", "switched", "sfu-1"))
    assert broken(round_) == ["a cordoned SFU gets no players"]


def test_each_session_has_one_record() -> None:
    def sight(players: tuple[str, ...], publications: tuple[str, ...]) -> ChaosSeen:
        there = frozenset({"ann", "bob"})
        round_ = seen(happened(ChaosKind.KILL_ROUTER, "router-1"))
        round_.rooms = [RoomSight(router="router-2", room="r", players=players, publications=publications, there=there)]
        return round_

    both = ("ann", "bob")
    assert broken(sight(both, both)) == []
    for players, publications in ((("ann", "ann", "bob"), both), (both, ("ann",)), ((*both, "eve"), both)):
        assert broken(sight(players, publications)) == ["one record of a session"]


def test_a_silent_sfu_is_not_shown_as_placeable() -> None:
    round_ = seen(happened(ChaosKind.PAUSE_SFU, "sfu-1"), happened(ChaosKind.PAUSE_ROUTER, "router-2", lasts_s=8.0))

    def sight(at: float, router: str = "router-1", *, placeable: bool = True) -> RouterSight:
        return RouterSight(at=at, router=router, placeable={"sfu-1": placeable, "sfu-2": True}, status={})

    round_.sights = [
        sight(99.0),
        sight(100.0 + SEEN_WITHIN_S),
        sight(115.0, "router-2"),  # it was away itself
        sight(115.0, placeable=False),
        sight(121.0),
    ]
    assert broken(round_) == []
    round_.sights.append(sight(115.0))
    assert broken(round_) == ["what is silent is shown as such"]


def test_programs_that_end_and_tracebacks_and_sfus_that_stay_away_are_violations() -> None:
    round_ = seen(happened(ChaosKind.KILL_REDIS, "redis"))
    round_.ended = {"sfu-3": "ended with status 1"}
    round_.unplaceable = {"sfu-2": "is not known to router-1"}
    round_.tracebacks = [("sfu-1.log", "ValueError: no"), ("sfu-1.log", "ValueError: no")]
    found = judge(round_, bound_ms=BOUND_MS)
    assert [(each.sentence, each.log) for each in found] == [
        ("sfu-3 ended with status 1", "sfu-3"),
        ("sfu-2 is not known to router-1", "sfu-2"),
        ("sfu-1.log: ValueError: no, 2 times", "sfu-1.log"),
    ]


def test_a_player_that_shares_a_room_with_one_on_the_sfu_is_touched() -> None:
    samples = [
        sample("ann", at=1.0, room="r"),
        sample("bob", at=1.0, room="r", sfu="sfu-2"),
        sample("cid", at=1.0, room="s", sfu="sfu-2"),
        sample("dan", at=1.0, room="t", sfu=""),
    ]
    assert touched_by(event(ChaosKind.KILL_SFU, "sfu-1"), samples) == {"ann", "bob", "dan"}
    assert touched_by(event(ChaosKind.FREEZE_LINKS, "sfu-1"), samples) == set()
    assert touched_by(event(ChaosKind.STALL_ALL, "*"), samples) == {"ann", "bob", "cid", "dan"}


def test_a_bot_hears_its_room_when_it_gets_most_packets_of_all_others() -> None:
    first = [sample("ann", at=0.0), sample("bob", at=0.0), sample("cid", at=0.0)]
    last = [
        sample("ann", at=2.0, units=181),
        sample("bob", at=2.0, units=179),
        sample("cid", at=2.0, units=200, sfu=""),
        sample("new", at=2.0, room="other", units=0),
    ]
    assert all_hear(first, last) == ["bob", "cid", "new"]


def test_samples_are_read_from_the_bots_report() -> None:
    one = {"bot": "ann", "room": "r", "sfu": "sfu-1", "marked_audio_gap_ms": 21.0, "gaps": {"audio_units": 7}}
    assert samples_in({"reports": [one]}, at=3.0) == [sample("ann", at=3.0, gap_ms=21.0, units=7)]


def test_a_violation_tells_how_to_see_it_again() -> None:
    round_ = seen(happened(ChaosKind.KILL_REDIS, "redis"))
    round_.ended = {"sfu-3": "ended with status 1"}
    (only,) = judge(round_, bound_ms=BOUND_MS)
    told = violation(only, number=4, seed=7, logs="/logs", flags=" --bots 8")
    assert told.again == "sluice rehearse chaos --seed 7 --first-round 4 --bots 8"
    assert (told.log, told.events) == ("/logs/sfu-3.log", ["event 1 (kill-redis for 20.0 s)"])
    carried_out = done(round_.happened[0], began=90.0)
    assert (carried_out.at_s, carried_out.lasted_s, carried_out.kind) == (10.0, 20.0, "kill-redis")
    assert worst_gap([round_]) == 0.0
