"""The forwarding delay as Prometheus gets it."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from sfu.shell.media_metrics import DELAY_BOUNDS_US, delay_histogram


def buckets(delays: list[tuple[int, int]]) -> dict[str, float]:
    """As they come out of a scrape."""

    class One(Collector):
        def collect(self):  # type: ignore[no-untyped-def]
            yield delay_histogram(delays)

    registry = CollectorRegistry()
    registry.register(One())
    (family,) = text_string_to_metric_families(generate_latest(registry).decode())
    return {sample.labels["le"]: sample.value for sample in family.samples}


def test_a_bucket_counts_all_that_took_no_longer() -> None:
    told = buckets([(2048, 5), (2176, 1), (2304, 2), (100_000, 1)])
    assert told["0.002048"] == 5
    assert told["0.002304"] == 8
    assert told["0.065536"] == 8
    assert told["+Inf"] == 9


def test_bounds_rise_and_are_the_planes_own() -> None:
    assert list(DELAY_BOUNDS_US) == sorted(set(DELAY_BOUNDS_US))
    for bound in DELAY_BOUNDS_US:
        octave = 1 << (bound.bit_length() - 1)
        assert bound % (octave // 8) == 0, "eight buckets an octave"
