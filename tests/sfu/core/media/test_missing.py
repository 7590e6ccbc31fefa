"""Missing packets: asked for at once or after the path's reordering, then again, not for ever, not in floods."""

from __future__ import annotations

import itertools
import random

import pytest

from sfu.core.media.missing import MAX_MISSING, MAX_REORDER_S, MAX_RETRY_WAIT_S, MAX_TRIES, REMEMBERED_S, MissingPackets


def test_a_gap_is_asked_for_at_once_and_again_until_it_is_filled() -> None:
    missing = MissingPackets()
    assert missing.gap(5, 8, now=0.0)
    assert missing.due(now=0.0) == [5, 6, 7]
    assert missing.due(now=0.03) == []
    assert missing.arrived(6, original=False, now=0.03)
    assert missing.due(now=0.04) == [5, 7]
    assert missing.due(now=0.1) == []
    assert missing.due(now=0.11) == [5, 7]
    assert missing.asked == 3


@pytest.mark.parametrize(("took_s", "step_s"), [(0.004, 0.02), (0.02, 0.03), (0.1, 0.15)])
def test_retries_keep_the_pace_of_the_answers(took_s: float, step_s: float) -> None:
    missing = MissingPackets()
    missing.gap(4, 5, now=0.0)
    missing.due(now=0.0)
    assert missing.arrived(4, original=False, now=took_s)
    missing.gap(5, 6, now=1.0)
    asked_ms = [ms for ms in range(1000, 3000) if missing.due(now=ms / 1000)]
    assert len(asked_ms) == MAX_TRIES
    waits_s = [(later - earlier) / 1000 for earlier, later in itertools.pairwise(asked_ms)]
    assert waits_s[0] == pytest.approx(step_s, abs=0.0011)
    assert waits_s[1] == pytest.approx(max(min(1.5 * step_s, MAX_RETRY_WAIT_S), step_s), abs=0.0011)
    assert max(waits_s) <= max(MAX_RETRY_WAIT_S, step_s) + 0.0011


@pytest.mark.parametrize(("before_s", "now_s"), [(None, 0.15), (0.03, 0.3), (0.3, 0.03)])
def test_a_round_trip_longer_than_the_pace_is_learned_too(before_s: float | None, now_s: float) -> None:
    """Each ask is answered after the round trip; the first answer counts, further ones come in vain."""
    missing = MissingPackets()
    for index in range(400):
        took_s = before_s if before_s is not None and index < 100 else now_s
        missing.gap(index, index + 1, now=float(index))
        asks = [ms for ms in range(round(took_s * 1000)) if missing.due(now=index + ms / 1000)]
        missing.arrived(index, original=False, now=index + took_s)
        # However wrong the pace is at first, that makes no flood of it.
        assert len(asks) <= 6
    assert missing.answer_s == pytest.approx(now_s, rel=0.05)
    assert asks == [0]


def test_a_round_trip_longer_than_all_tries_is_learned_too() -> None:
    """Answers come when the asking has ended: each loss would else be asked for ten times, for ever."""
    missing, took_s = MissingPackets(), 2.2
    asks: list[int] = []
    for index in range(20):
        at = 3.0 * index
        missing.gap(index, index + 1, now=at)
        asks.append(sum(len(missing.due(now=at + ms / 1000)) for ms in range(round(took_s * 1000))))
        assert missing.arrived(index, original=False, now=at + took_s)
    assert asks[0] == MAX_TRIES
    assert asks[-1] <= 4


def test_packet_is_given_up_after_its_tries() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    asked = sum(len(missing.due(now=step / 100)) for step in range(round(REMEMBERED_S * 100)))
    assert asked == MAX_TRIES
    assert len(missing) == 1, "an answer may be under way"
    assert missing.due(now=REMEMBERED_S) == []
    assert len(missing) == 0


def test_an_outage_is_not_asked_for() -> None:
    missing = MissingPackets()
    missing.gap(0, 10, now=0.0)
    assert not missing.gap(10, 11 + MAX_MISSING, now=0.0)
    assert missing.due(now=0.0) == []


def test_what_was_not_missing_repairs_nothing() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    assert 5 in missing
    assert 4 not in missing
    assert not missing.arrived(4, original=True, now=0.1)
    assert missing.arrived(5, original=True, now=0.1)
    assert not missing.arrived(5, original=True, now=0.1)
    assert missing.recovered == 1


def test_a_key_frame_makes_older_packets_worthless() -> None:
    missing = MissingPackets()
    missing.gap(5, 10, now=0.0)
    missing.forget_before(8)
    assert missing.due(now=0.0) == [8, 9]


def test_after_a_late_packet_the_next_gap_waits_a_little_longer_than_that_took() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    assert missing.due(now=0.0) == [5]
    missing.arrived(5, original=True, now=0.015)
    missing.gap(7, 8, now=1.0)
    assert missing.due(now=1.015) == []
    assert missing.due(now=1.02) == [7]


def test_answers_to_our_asking_teach_no_wait() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    missing.due(now=0.0)
    missing.arrived(5, original=False, now=0.03)
    assert missing.reorder_s == 0.0


def test_a_packet_that_was_never_asked_for_is_late_whatever_ssrc_retransmissions_have() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    missing.arrived(5, original=False, now=0.012)
    assert missing.reorder_s == pytest.approx(0.015)


def test_a_retry_waits_for_an_answer_that_may_be_under_way() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    missing.due(now=0.0)
    missing.arrived(5, original=False, now=0.1)
    missing.gap(7, 8, now=1.0)
    assert missing.due(now=1.0) == [7]
    assert missing.due(now=1.14) == []
    assert missing.due(now=1.16) == [7]


def test_the_wait_is_bounded() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    missing.arrived(5, original=True, now=3.0)
    assert missing.reorder_s == MAX_REORDER_S


def test_the_wait_ends_when_the_path_has_stopped_reordering() -> None:
    missing = MissingPackets()
    missing.gap(0, 1, now=0.0)
    missing.arrived(0, original=True, now=0.02)
    for index in range(1, 600):
        missing.gap(index, index + 1, now=float(index))
        missing.due(now=index + 0.03)
        missing.arrived(index, original=False, now=index + 0.06)
    assert missing.reorder_s < 0.001


def test_on_a_path_with_jitter_hardly_anything_is_asked_for_in_vain() -> None:
    missing, rng, asked, highest = MissingPackets(), random.Random(1), 0, -1
    sent = {index: index * 0.005 for index in range(4000)}
    for at, index in sorted((at + rng.random() * 0.02, index) for index, at in sent.items()):
        asked += len(missing.due(now=at))
        if index > highest:
            if index > highest + 1:
                missing.gap(highest + 1, index, now=at)
            highest = index
        else:
            missing.arrived(index, original=True, now=at)
    assert missing.recovered > 1000
    assert asked < 0.05 * missing.recovered
