"""An SFU's reports are numbered so that the newest wins, and a drain's book adds up."""

from __future__ import annotations

from sfu.core.drain.ledger import DrainLedger
from sfu.core.load.report import Figures, Reporter
from shared.records import Capacities, LoadParts, Milestones, SfuStatus, version_of

FIGURES = Figures(
    status=SfuStatus.ONLINE,
    drain=None,
    load=None,
    load_parts=LoadParts(),
    warmed_up=False,
    players=0,
    producers=0,
    consumers=0,
    milestones=Milestones(healthy_s=0.4),
    probe_failure="no-answer",
)


def reporter() -> Reporter:
    return Reporter(sfu="s", address="ws://s", version="1", cell="c", capacities=Capacities(), started_ms=1000)


def test_each_report_is_newer_than_the_one_before_also_over_a_raised_incarnation() -> None:
    made = reporter()
    states = [made.next(FIGURES), made.next(FIGURES)]
    assert not made.raise_above(999)
    assert made.raise_above(5000)
    states.append(made.next(FIGURES))
    versions = [version_of(state) for state in states]
    assert versions == sorted(set(versions))
    assert versions[-1][0] == 5001


def test_a_stamp_is_repeated_in_every_report() -> None:
    made = reporter()
    made.stamp(17.0)
    made.stamp(None)
    assert [made.next(FIGURES).started_at for _ in range(2)] == [17.0, 17.0]


def test_how_it_came_up_is_in_every_report() -> None:
    state = reporter().next(FIGURES)
    assert (state.milestones.healthy_s, state.milestones.first_packet_s, state.probe_failure) == (
        0.4,
        None,
        "no-answer",
    )


def test_the_book_of_a_drain() -> None:
    ledger = DrainLedger(began=100.0, players_at_cordon=3)
    ledger.left(of_own_will=True, now=110.0)
    ledger.left(of_own_will=False, now=120.0)
    report = ledger.report(
        sfu="s", version="1", cause="sigterm", outcome="grace", asked=1, players=1, producers=2, consumers=3, now=130.0
    )
    assert (report.to_exit_s, report.last_move_s, report.conversations_s) == (30.0, 10.0, (10.0, 20.0))
    assert (report.players_at_cordon, report.evicted, report.producers_at_exit, report.consumers_at_exit) == (
        3,
        1,
        2,
        3,
    )
