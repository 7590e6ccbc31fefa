"""Resends: once a round trip, within a budget that forwarding earns."""

from __future__ import annotations

from sfu.core.media.retransmit import BUDGET_START, Resend, ResendGate


def test_same_packet_is_sent_once_per_round_trip() -> None:
    gate = ResendGate()
    assert gate.ask(7, rtt_s=0.1, forwarded=0, now=1.0) is Resend.SEND
    assert gate.ask(7, rtt_s=0.1, forwarded=0, now=1.09) is Resend.REPEATED
    assert gate.ask(7, rtt_s=0.1, forwarded=0, now=1.1) is Resend.SEND


def test_another_packet_in_the_same_place_is_no_repeat() -> None:
    gate = ResendGate()
    gate.ask(7, rtt_s=0.1, forwarded=0, now=1.0)
    assert gate.ask(1007, rtt_s=0.1, forwarded=0, now=1.0) is Resend.SEND


def test_a_round_trip_of_seconds_does_not_starve_the_viewer() -> None:
    gate = ResendGate()
    gate.ask(7, rtt_s=10.0, forwarded=0, now=1.0)
    assert gate.ask(7, rtt_s=10.0, forwarded=0, now=1.6) is Resend.SEND


def test_budget_ends_and_is_earned_by_forwarding() -> None:
    gate = ResendGate()
    verdicts = [gate.ask(index, rtt_s=None, forwarded=0, now=1.0) for index in range(100)]
    assert verdicts.count(Resend.SEND) == BUDGET_START
    assert verdicts[-1] is Resend.OVER_BUDGET
    assert gate.ask(200, rtt_s=None, forwarded=1, now=1.0) is Resend.OVER_BUDGET
    assert gate.ask(200, rtt_s=None, forwarded=2, now=1.0) is Resend.SEND
