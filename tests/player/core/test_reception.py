"""Receiver reports and requests for lost packets."""

from __future__ import annotations

from player.core.reception import MAX_MISSING, MAX_TRIES, RETRY_S, Reception


def received(*sequences: int, repairable: bool = True) -> Reception:
    reception = Reception(ssrc=7, clock=90_000, repairable=repairable)
    for n, sequence in enumerate(sequences):
        reception.packet(sequence, 3000 * n, at=n / 30)
    return reception


def test_a_report_counts_losses_since_the_last_one_and_in_all() -> None:
    reception = received(65_534, 65_535, 2)
    first = reception.report(now=1.0)
    assert (first.lost, first.fraction_lost, first.highest) == (2, 2 * 256 // 5, 65_538)
    second = reception.report(now=2.0)
    assert (second.lost, second.fraction_lost) == (2, 0)


def test_steady_arrivals_have_no_jitter() -> None:
    assert received(1, 2, 3, 4).report(now=1.0).jitter == 0


def test_a_report_refers_to_the_senders_last_report() -> None:
    reception = received(1)
    assert reception.report(now=1.0).last_sr == 0
    reception.sender_report(0x0123_4567_89AB_CDEF, at=2.0)
    block = reception.report(now=2.5)
    assert (block.last_sr, block.delay_since_sr) == (0x4567_89AB, 32_768)


def test_lost_packets_are_asked_for_again_until_they_come_or_it_is_hopeless() -> None:
    reception = received(65_534, 2)
    assert reception.to_ask_for(now=1.0) == [65_535, 0, 1]
    assert reception.to_ask_for(now=1.0 + RETRY_S / 2) == []
    reception.repaired(0)
    reception.packet(1, 0, at=1.0)
    now = 1.0
    for _ in range(MAX_TRIES - 1):
        now += RETRY_S + 0.001
        assert reception.to_ask_for(now=now) == [65_535]
    assert reception.to_ask_for(now=now + 1) == []
    assert not reception.missing


def test_a_hole_too_long_to_fill_is_not_asked_for() -> None:
    assert received(1, 3 + MAX_MISSING).to_ask_for(now=1.0) == []


def test_what_can_not_be_repaired_is_not_asked_for() -> None:
    assert received(1, 5, repairable=False).to_ask_for(now=1.0) == []
