"""What a log of a fleet says, look after look."""

from __future__ import annotations

import pytest

from operators.core.fleet_view import FleetView, fleet_view
from operators.core.news import fleet_news
from shared.records import Drain, RouterRecord, SfuState
from shared.store.answers import HeardRouter, HeardSfu


def seen(silent_for_s: float = 0.0, **facts: object) -> FleetView:
    state = SfuState(address="ws://a", sfu="a", **facts)  # type: ignore[arg-type]
    return fleet_view("f", sfus=[HeardSfu(state, silent_for_s=silent_for_s)], routers=[])


def routed(silent_for_s: float) -> FleetView:
    return fleet_view("f", sfus=[], routers=[HeardRouter(RouterRecord(router="r"), silent_for_s=silent_for_s)])


EMPTY = fleet_view("f", sfus=[], routers=[])
CORDONED = seen(status="CORDONED", drain=Drain(cause="sigterm", elapsed_s=1.0))


@pytest.mark.parametrize(
    ("before", "now", "lines"),
    [
        (EMPTY, seen(), ["a is ONLINE"]),
        (seen(), seen(load=0.5), []),
        (seen(), CORDONED, ["a is CORDONED (SIGTERM, for 1.0 s)"]),
        (seen(), seen(4.0), ["a is silent: nothing was heard of it for 4.0 s"]),
        (EMPTY, seen(4.0), ["a is silent: nothing was heard of it for 4.0 s"]),
        (seen(4.0), seen(5.0), []),
        (seen(4.0), seen(), ["a is heard again and is ONLINE"]),
        (seen(started_at=10.0), seen(started_at=20.0), ["a has started again and is ONLINE"]),
        (seen(4.0, started_at=10.0), seen(started_at=20.0), ["a has started again and is ONLINE"]),
        (seen(), seen(started_at=20.0), []),
        (seen(4.0), EMPTY, ["a has left"]),
        (EMPTY, routed(0.5), ["r is up"]),
        (routed(0.5), routed(3.0), ["r is silent: nothing was heard of it for 3.0 s"]),
        (routed(3.0), routed(4.0), []),
        (routed(3.0), routed(0.0), ["r is heard again"]),
        (routed(0.0), EMPTY, ["r has left"]),
    ],
)
def test_each_change_is_a_line(before: FleetView, now: FleetView, lines: list[str]) -> None:
    assert fleet_news(before, now) == lines
