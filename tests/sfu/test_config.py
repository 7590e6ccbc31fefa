"""Settings that can't be used are named together with the fix."""

from __future__ import annotations

import pytest

from sfu.config import SfuConfig
from shared.errors import BadSetting
from shared.load import ceilings_of
from shared.records import Capacities

SECRET = "0123456789abcdef0123456789abcdef"


def test_the_defaults_only_lack_a_secret() -> None:
    with pytest.raises(BadSetting, match="SLUICE_SECRET"):
        SfuConfig().check()
    SfuConfig(secret=SECRET).check()


def test_ids_made_up_are_different() -> None:
    assert SfuConfig().sfu != SfuConfig().sfu


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"drain_max_s": 3600.0}, "drain_max_s"),
        ({"ws_port": 70000}, "ws_port"),
        ({"links": 0}, "links"),
        ({"max_subscriptions": 0}, "max_subscriptions"),
        ({"cpu_guard": 1.5}, "cpu_guard"),
        ({"cpu_guard": float("nan")}, "cpu_guard"),
        ({"egress_ceiling_mbps": float("nan")}, "egress_ceiling_mbps"),
        ({"egress_ceiling_mbps": float("inf")}, "egress_ceiling_mbps"),
        ({"egress_ceiling_mbps": 1e6 + 1}, "egress_ceiling_mbps"),
        ({"egress_ceiling_mbps": 0.0}, "egress_ceiling_mbps"),
        ({"egress_ceiling_mbps": 0.7}, "egress_ceiling_mbps"),
        ({"cpu_guard": 0.0085}, "cpu_guard"),
        ({"cores": 0}, "cores"),
        ({"cores": 4097}, "cores"),
        ({"stream_ceiling": 0}, "stream_ceiling"),
        ({"stream_ceiling": 1_000_001}, "stream_ceiling"),
        ({"sfu": "two words"}, "sfu"),
        ({"sfu": ""}, "sfu"),
        ({"routers": ("http://router",)}, "routers"),
        ({"announced_ws": "sfu.example"}, "announced_ws"),
        ({"announced_ip": ("sfu.example",)}, "announced_ip"),
        ({"announced_ip": ("0.0.0.0",)}, "announced_ip"),
        ({"announced_ip": ("::",), "host": "::"}, "announced_ip"),
        ({"announced_ip": ("2001:db8::1",)}, "host"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(BadSetting, match=named):
        SfuConfig(secret=SECRET, **settings).check()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("egress_mbps", "streams", "cpu_guard"), [(1e6, 1_000_000, 1.0), (1.0, 1, 0.01)], ids=["greatest", "least"]
)
def test_the_ceilings_that_just_pass_are_believed(egress_mbps: float, streams: int, cpu_guard: float) -> None:
    config = SfuConfig(secret=SECRET, egress_ceiling_mbps=egress_mbps, stream_ceiling=streams, cpu_guard=cpu_guard)
    config.check()
    reported = Capacities(
        egress_mbps=config.egress_ceiling_mbps, streams=config.stream_ceiling, cpu_guard=config.cpu_guard
    )
    assert ceilings_of(reported) == config.ceilings()
