"""The arithmetic of the relay benchmark's figures."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.relay.figures import FlowCounts, Reading, difference, figures, loss, median, quantile
from bench.relay.peers import PeerStats
from bench.relay.text import report_json, report_text


def reading(at: float, packets: int, **peer: object) -> Reading:
    stats = {"user_s": 0.0, "sys_s": 0.0, "rss_bytes": 0} | peer
    return Reading(
        at=at,
        peer=PeerStats(**stats),
        flows=[(0, 7, packets, 0, 1000 + packets, packets)],
        arrivals=[(50, packets)],
        sent=(packets // 2, 0, packets // 2, packets // 4, 0),
        generator_s=at / 4,
        busy_s=at,
    )


def two_readings(**last: object) -> tuple[Reading, Reading]:
    return reading(0.0, 0, rss_bytes=3072), reading(2.0, 1000, user_s=0.1, sys_s=0.3, rss_bytes=9999, **last)


def told(first: Reading, last: Reading) -> dict[str, object]:
    words = {"workload": "fanout", "server": "x", "profile": "p"}
    return report_json(figures(first, last, subscribers=2, lost=0.25, rss_bytes=2048, verified=1, **words), None)


def traffic(sent: dict[int, int], *fresh: tuple[int, int]) -> FlowCounts:
    """`fresh`: a subscriber and what it got."""
    return FlowCounts(sent=sent, flows=[(subscriber, 7, 2 * count, 0, 0, count) for subscriber, count in fresh])


VIDEO, AUDIO = 1000, 1001
SENT, SENT_LATER = {VIDEO: 700, AUDIO: 50}, {VIDEO: 1400, AUDIO: 150}
"""Of 800 packets each subscriber should have got each."""


def test_loss_is_what_was_sent_and_did_not_come() -> None:
    before, after = traffic(SENT, (0, 750), (1, 740)), traffic(SENT_LATER, (0, 1550), (1, 1460))
    assert loss(before, after, [[VIDEO, AUDIO]] * 2) == pytest.approx(80 / 1600)


def test_a_subscriber_who_never_got_anything_has_lost_it_all() -> None:
    before, after = traffic(SENT, (0, 750)), traffic(SENT_LATER, (0, 1550))
    assert loss(before, after, [[VIDEO, AUDIO]] * 4) == pytest.approx(0.75)


def test_a_stream_that_stopped_dead_is_lost() -> None:
    before, after = traffic(SENT, (0, 750), (1, 750)), traffic(SENT_LATER, (0, 1550), (1, 750))
    assert loss(before, after, [[VIDEO, AUDIO]] * 2) == pytest.approx(0.5)


def test_what_one_has_too_much_does_not_hide_what_another_lacks() -> None:
    before, after = traffic(SENT, (0, 0), (1, 0)), traffic(SENT_LATER, (0, 900), (1, 700))
    assert loss(before, after, [[VIDEO, AUDIO]] * 2) == pytest.approx(100 / 1600)


def test_only_wanted_tracks_are_missed_and_only_by_those_who_were_there_from_the_start() -> None:
    before, after = traffic(SENT, (0, 0)), traffic(SENT_LATER, (0, 100), (1, 3))
    assert loss(before, after, [[AUDIO]]) == 0


def test_nothing_at_all_is_all_lost() -> None:
    assert loss(traffic(SENT), traffic(SENT), [[VIDEO]] * 3) == 1
    assert loss(traffic({}), traffic({}), []) == 1


def test_quantile_is_of_the_difference() -> None:
    counts = difference([(100, 50)], [(100, 50), (900, 98), (8100, 2)])
    assert counts == [(900, 98), (8100, 2)]


def test_a_quantile_lies_between_its_buckets_ends() -> None:
    counts = [(900, 100), (1000, 100), (9000, 2)]
    assert quantile(counts, 50 / 202) == pytest.approx(0.85), "eight buckets an octave: it begins at 800 us"
    assert quantile(counts, 150 / 202) == pytest.approx(0.95), "it begins where the one below ends"
    assert quantile(counts, 1.0) == 9.0
    assert quantile([], 0.5) == 0


def test_cpu_is_per_packet_that_the_server_says_it_forwarded() -> None:
    ours = told(*two_readings(forwarded=2000, datagrams=2000, sends=500))
    assert (ours["cpu_us_user"], ours["cpu_us_sys"], ours["cpu_us_per_packet"]) == pytest.approx((50.0, 150.0, 200.0))
    assert ours["packets_per_send"] == 4
    assert ours["rss_kib_per_subscriber"] == 1
    assert ours["server_core_share"] == pytest.approx(0.2)
    assert ours["generator_core_share"] == pytest.approx(0.25)
    assert ours["others_core_share"] == pytest.approx(1 - 0.2 - 0.25)
    assert ours["late_frames"] == 0.5


def test_a_server_that_counts_nothing_is_told_by_the_receivers() -> None:
    theirs = told(*two_readings())
    assert theirs["cpu_us_per_packet"] == pytest.approx(400.0)
    assert theirs["packets_per_send"] is None
    assert theirs["delay_ms_p99"] == theirs["arrival_ms_p99"] == pytest.approx(0.05, rel=0.01)


def test_a_servers_own_delays_come_before_the_generators() -> None:
    assert told(*two_readings(delays=[(2000, 5)]))["delay_ms_p99"] == pytest.approx(2.0, rel=0.01)


def test_json_has_the_keys_that_were_promised() -> None:
    promised = """workload subscribers packets_out_per_s loss cpu_us_per_packet cpu_us_user cpu_us_sys packets_per_send
    delay_ms_p50 delay_ms_p99 rss_kib_per_subscriber generator_core_share peer floor_us_per_packet"""
    assert set(promised.split()) <= set(told(*two_readings()))


def test_user_and_system_time_of_rounds_add_up_to_the_median() -> None:
    first, last = two_readings(forwarded=1000)
    base = figures(first, last, workload="w", server="s", profile="p", subscribers=2, lost=0.0, rss_bytes=0, verified=7)
    split = ((1.0, 4.0), (4.0, 1.5), (3.0, 3.0))
    rounds = [replace(base, cpu_us_per_packet=u + s, cpu_us_user=u, cpu_us_sys=s) for u, s in split]
    middle = median(rounds)
    assert middle.cpu_us_per_packet == 5.5
    assert middle.cpu_us_user == pytest.approx(5.5 * 8 / 16.5)
    assert middle.cpu_us_user + middle.cpu_us_sys == pytest.approx(5.5)


def test_medians_are_of_each_figure_alone() -> None:
    first, last = two_readings(forwarded=1000)
    base = figures(first, last, workload="w", server="s", profile="p", subscribers=2, lost=0.0, rss_bytes=0, verified=7)
    rounds = [replace(base, cpu_us_per_packet=cpu, delay_ms_p99=p99) for cpu, p99 in ((3, 1.0), (1.0, 2.0), (2.0, 9.0))]
    rounds = [replace(one, cpu_us_per_packet=float(one.cpu_us_per_packet)) for one in rounds]
    assert (median(rounds).cpu_us_per_packet, median(rounds).delay_ms_p99) == (2.0, 2.0)
    assert median(rounds).packets_per_send is None
    assert median(rounds).verified == 7


def test_the_ratio_is_theirs_over_ours() -> None:
    first, last = two_readings(forwarded=1000)
    ours = figures(first, last, workload="w", server="s", profile="p", subscribers=2, lost=0.0, rss_bytes=0, verified=7)
    theirs = replace(ours, server="other", cpu_us_per_packet=12 * ours.cpu_us_per_packet)
    assert report_json(ours, theirs)["cpu_ratio"] == pytest.approx(12)
    assert report_json(ours, theirs)["peer"]["server"] == "other"
    assert "other takes 12.0 x the CPU" in report_text(ours, theirs)
    assert report_json(ours, None)["peer"] is None
