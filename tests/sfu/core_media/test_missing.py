"""Missing packets: asked for at once, again with growing waits, not for ever, not in floods."""

from __future__ import annotations

from sfu.core.missing import MAX_MISSING, MAX_TRIES, MissingPackets


def test_a_gap_is_asked_for_at_once_and_again_until_it_is_filled() -> None:
    missing = MissingPackets()
    assert missing.gap(5, 8, now=0.0)
    assert missing.due(now=0.0) == [5, 6, 7]
    assert missing.due(now=0.03) == []
    assert missing.arrived(6)
    assert missing.due(now=0.04) == [5, 7]
    assert missing.due(now=0.1) == []
    assert missing.due(now=0.12) == [5, 7]
    assert missing.asked == 3


def test_packet_is_given_up_after_its_tries() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    asked = sum(len(missing.due(now=step / 100)) for step in range(1000))
    assert asked == MAX_TRIES
    assert len(missing) == 0
    assert missing.next_at() is None


def test_an_outage_is_not_asked_for() -> None:
    missing = MissingPackets()
    missing.gap(0, 10, now=0.0)
    assert not missing.gap(10, 11 + MAX_MISSING, now=0.0)
    assert missing.due(now=0.0) == []


def test_what_was_not_missing_repairs_nothing() -> None:
    missing = MissingPackets()
    missing.gap(5, 6, now=0.0)
    assert not missing.arrived(4)
    assert missing.arrived(5)
    assert not missing.arrived(5)
    assert missing.recovered == 1


def test_a_key_frame_makes_older_packets_worthless() -> None:
    missing = MissingPackets()
    missing.gap(5, 10, now=0.0)
    missing.forget_before(8)
    assert missing.due(now=0.0) == [8, 9]
