"""Settings of the autoscaler: what they mean, and that every error names file, line, key and the fix."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from control.core.autoscaler.removals import RENEW_AT
from control.core.autoscaler.samples import NodeCeilings
from control.core.scaling_settings import ScalingSettings, least_cordon_lease_s, read_settings
from control.shell.leadership import ASK_EVERY
from sfu.core.drain.cordon import lease_fault
from sfu.core.drain.events import Lease
from shared.errors import BadSetting
from shared.records import Capacities

FULL = """
# every key there is
scale_out_at = 0.7
scale_out_hits = 3
scale_out_window = 4
scale_in_at = 0.2
scale_in_ticks = 10
tick_s = 20
cooldown_s = 120
min_nodes = 2
max_nodes = 9
drain_max_s = 600
cordon_lease_s = 1200
egress_ceiling_mbps = 900.5
stream_ceiling = 800
cpu_guard = 0.9
launch_timeout_s = 90
lease_s = 5
report_max_age_s = 8
dry_run = true

[[floors]]
days = ["mon", "fri"]
from = "08:00"
to = "18:30"
timezone = "Europe/Berlin"
min_nodes = 6

[pool]
kind = "docker"
image = "sluice:1"
"""


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_an_empty_file_is_all_defaults_of_the_requirements() -> None:
    settings = read_settings("")
    assert settings == ScalingSettings(pool=settings.pool)
    assert (settings.scale_out_at, settings.scale_out_hits, settings.scale_out_window) == (0.65, 4, 5)
    assert (settings.scale_in_at, settings.scale_in_ticks, settings.tick_s, settings.cooldown_s) == (0.30, 20, 30, 300)
    assert (settings.min_nodes, settings.cordon_lease_s, settings.drain_max_s) == (3, 3600, 1800)
    assert settings.pool.kind == "process"


def test_every_key_is_read() -> None:
    settings = read_settings(FULL)
    for key in ScalingSettings.__dataclass_fields__:
        if key not in ("floors", "pool"):
            assert getattr(settings, key) != getattr(ScalingSettings(), key), key
    assert settings.pool.kind == "docker"
    assert settings.pool.keys == {"image": "sluice:1"}


def test_a_pools_own_error_names_its_line() -> None:
    assert "scaling.toml:31 pool.image: is missing" in str(read_settings(FULL).pool.bad("image", "is missing"))
    assert "scaling.toml:29 pool.network" in str(read_settings(FULL).pool.bad("network", "is missing"))


@pytest.mark.parametrize(
    ("text", "where", "fix"),
    [
        ("min_nodes = 5\nmax_nodes = 4", ":1 min_nodes", "over max_nodes, which is 4"),
        ("# few\nmax_nodes = 2", ":2 max_nodes", "under min_nodes, which is 3 by default"),
        ("scale_in_at = 0.7", ":1 scale_in_at", "under scale_out_at, which is 0.65 by default"),
        ("# early\nscale_out_at = 0.3", ":2 scale_out_at", "over scale_in_at, which is 0.3 by default"),
        ("scale_out_at = 0.5\n\nscale_in_at = 0.5", ":3 scale_in_at", "under scale_out_at"),
        ("scale_out_hits = 6", ":1 scale_out_hits", "over scale_out_window, which is 5 by default"),
        ("\nscale_out_window = 3", ":2 scale_out_window", "under scale_out_hits, which is 4 by default"),
        ("stream_ceiling = 0", ":1 stream_ceiling", "1 to 1000000"),
        ("egress_ceiling_mbps = 0", ":1 egress_ceiling_mbps", "1 to 1000000"),
        ("egress_ceiling_mbps = 0.99", ":1 egress_ceiling_mbps", "1 to 1000000"),
        ("egress_ceiling_mbps = 1_000_001", ":1 egress_ceiling_mbps", "1 to 1000000"),
        ("stream_ceiling = 1_000_001", ":1 stream_ceiling", "1 to 1000000"),
        ("cpu_guard = 0.0", ":1 cpu_guard", "0.01 to 1"),
        ("cpu_guard = 0.009", ":1 cpu_guard", "0.01 to 1"),
        ("cpu_guard = 1.5", ":1 cpu_guard", "0.01 to 1"),
        ("scale_out_at = 1.5", ":1 scale_out_at", "at most 1"),
        ("min_nodes = 0", ":1 min_nodes", "must be 1"),
        ("scale_in_ticks = 0", ":1 scale_in_ticks", "must be 1"),
        ("tick_s = -1", ":1 tick_s", "over 0"),
        ("tick_s = 0.01\ncordon_lease_s=9", ":1 tick_s", "at least 0.2"),
        ("lease_s = 0.1", ":1 lease_s", "at least 0.5"),
        ("tick_s = nan", ":1 tick_s", "finite"),
        ("cooldown_s = inf", ":1 cooldown_s", "finite"),
        ("cooldown_s = '300'", ":1 cooldown_s", "number"),
        ("min_nodes = true", ":1 min_nodes", "whole number"),
        ("min_nodes = 2.5", ":1 min_nodes", "whole number"),
        ("dry_run = 1", ":1 dry_run", "true or false"),
        ("cordon_lease_s = 100", ":1 cordon_lease_s", "at least 180"),
        ("cordon_lease_s = 86_401", ":1 cordon_lease_s", "longer than 86400"),
        (
            "lease_s = 60\ncordon_lease_s = 215.9",
            ":2 cordon_lease_s",
            "at least 216 with tick_s, which is 30 by default",
        ),
        ("\nlease_s = 1800", ":2 lease_s", "cordon_lease_s of at least 3696"),
        ("\ntick_s = 601\nlaunch_timeout_s = 601", ":2 tick_s", "cordon_lease_s of at least 3606"),
        ("cordon_lease_s = 86_400\nlease_s = 43_200", ":2 lease_s", "SFUs refuse more than 86400"),
        ("report_max_age_s = 2.9", ":1 report_max_age_s", "at least 3"),
        ("launch_timeout_s = 10", ":1 launch_timeout_s", "at least one tick: tick_s, which is 30 by default"),
        ("\ntick_s = 301", ":2 tick_s", "over launch_timeout_s, which is 300 by default"),
        pytest.param(f"\ntick_s = {'9' * 400}", ":2 tick_s", "64 bits", id="400 digits"),
        pytest.param(
            f"\ncooldown_s = 1\ntick_s = {'9' * 5000}", ":3 tick_s", "more than 4300 digits", id="5000 digits"
        ),
        pytest.param(f"a = 1\n[pool]\ntimeout_s = {'9' * 400}", ":3 pool.timeout_s", "64 bits", id="400 in the pool"),
        pytest.param(f"[pool]\nflags = [[{'9' * 400}]]", ":2 pool.flags", "64 bits", id="400 digits in a list"),
        pytest.param(f"min_nodes = 0x{'f' * 5000}", ":1 min_nodes", "64 bits", id="5000 hexadecimal digits"),
        ("min_nodes = 9_223_372_036_854_775_808", ":1 min_nodes", "64 bits"),
        ("min_nodes = 9_223_372_036_854_775_807", ":1 min_nodes", "must be 1"),
        pytest.param(f"tick_s.{'a.' * 2000}a = 1", ":1 tick_s", "within more than 16", id="2000 tables deep"),
        ("# a\u2028b\u0085c\n\nmin_nodes = 0", ":3 min_nodes", "must be 1"),
        ("# a\r\n\r\nmin_nodes = 0\r\n", ":3 min_nodes", "must be 1"),
        ('# a\u2028b\nx = "', ":2", "not TOML"),
        ("# x\nscale_out = 0.6", ":2 scale_out", "did you mean 'scale_out_at'"),
        ("zebra = 1", ":1 zebra", "there are"),
        ("x = = 1", ":1", "not TOML"),
        ("tick_s = 1\ntick_s = 2", ":2", "not TOML"),
        ("pool = 3", ":1 pool", "table"),
        ("[pool]\nkind = 3", ":2 pool.kind", "text"),
        ("floors = 3", ":1 floors", "tables"),
        ('[[floors]]\nfrom = "08:00"\nto = "09:00"', ":1 floors.0.min_nodes", "missing"),
        ('[[floors]]\nfrom = "8"\nto = "09:00"\nmin_nodes = 4', ":2 floors.0.from", "time like"),
        ('[[floors]]\nfrom = "08:00+02:00"\nto = "09:00"\nmin_nodes = 4', ":2 floors.0.from", "timezone"),
        ('[[floors]]\nfrom = "08:00"\nto = "08:00"\nmin_nodes = 4', ":3 floors.0.to", "same"),
        ('[[floors]]\nfrom = "08:00"\nto = "09:00"\nmin_nodes = 2', ":4 floors.0.min_nodes", "never acts"),
        ('[[floors]]\nfrom = "08:00"\nto = "09:00"\nmin_nodes = 21', ":4 floors.0.min_nodes", "over max_nodes"),
        ('[[floors]]\nday = "mon"', ":2 floors.0.day", "'days'"),
        ('[[floors]]\ndays = ["monday"]\nfrom = "08:00"\nto = "09:00"\nmin_nodes = 4', ":2 floors.0.days", "mon, tue"),
        (
            '[[floors]]\nfrom = "08:00"\nto = "09:00"\nmin_nodes = 4\ntimezone = "Mars"',
            ":5 floors.0.timezone",
            "no such time zone",
        ),
        (
            '[[floors]]\nfrom = "08:00"\nto = "09:00"\nmin_nodes = 4\n[[floors]]\nmin_nodes = 4\nfrom = "x"\nto = "1"',
            ":7 floors.1.from",
            "time like",
        ),
    ],
)
def test_what_can_not_be_is_said_with_key_line_and_fix(text: str, where: str, fix: str) -> None:
    with pytest.raises(BadSetting) as error:
        read_settings(text)
    assert f"scaling.toml{where}" in str(error.value)
    assert fix in str(error.value)


def test_a_key_that_has_no_place_in_the_file_is_named_without_a_line() -> None:
    assert str(read_settings("tick_s = 29").pool.bad("image", "is missing")) == "scaling.toml pool.image: is missing"


@pytest.mark.parametrize(("tick_s", "lease_s"), [(30.0, 15.0), (30.0, 60.0), (1.0, 0.5), (1.0, 300.0), (600.0, 15.0)])
def test_the_shortest_cordon_that_is_accepted_outlives_a_leader_that_dies_before_it_renews(
    tick_s: float, lease_s: float
) -> None:
    least_s = least_cordon_lease_s(tick_s=tick_s, lease_s=lease_s)
    text = f"tick_s = {tick_s}\nlease_s = {lease_s}\nlaunch_timeout_s = 600\ncordon_lease_s = "
    settings = read_settings(f"{text}{least_s}")
    with pytest.raises(BadSetting, match="cordon_lease_s"):
        read_settings(f"{text}{least_s * 0.999}")
    died_s = RENEW_AT * settings.cordon_lease_s + tick_s
    another_leads_s = died_s + lease_s + ASK_EVERY * lease_s + settings.sample_s
    routers_exchange_s = 1.0
    assert another_leads_s + tick_s + routers_exchange_s <= settings.cordon_lease_s
    assert 2 * (RENEW_AT * settings.cordon_lease_s + tick_s) <= settings.cordon_lease_s + 1e-9, "one renewal is lost"


def test_a_scheduled_floor_holds_in_its_own_zone() -> None:
    settings = read_settings(FULL)
    assert settings.floor(at("2026-11-30 07:00:00")) == 6  # Monday, 08:00 in Berlin
    assert settings.floor(at("2026-11-30 06:59:59")) == 2
    assert settings.floor(at("2026-11-30 17:29:59")) == 6
    assert settings.floor(at("2026-11-30 17:30:00")) == 2
    assert settings.floor(at("2026-12-01 09:00:00")) == 2  # Tuesday
    assert settings.floor(at("2026-07-03 06:00:00")) == 6  # Friday, summer time


def test_a_floor_past_midnight_belongs_to_the_day_it_began() -> None:
    settings = read_settings('[[floors]]\ndays = ["sat"]\nfrom = 22:00:00\nto = 02:00:00\nmin_nodes = 5')
    assert settings.floor(at("2026-11-28 23:00:00")) == 5
    assert settings.floor(at("2026-11-29 01:59:00")) == 5
    assert settings.floor(at("2026-11-29 02:00:00")) == 3
    assert settings.floor(at("2026-11-29 23:00:00")) == 3
    assert settings.floor(at("2026-11-28 01:00:00")) == 3


def test_the_highest_floor_holds() -> None:
    one = '[[floors]]\nfrom = "00:00"\nto = "12:00"\nmin_nodes = 5\n'
    settings = read_settings(one + one.replace("5", "7"))
    assert settings.floor(at("2026-11-28 01:00:00")) == 7


def test_compressed_ticks_are_sampled_more_often() -> None:
    assert ScalingSettings().sample_s == 1.0
    assert ScalingSettings(tick_s=2.0).sample_s == 0.5


@pytest.mark.parametrize(("egress", "streams", "guard"), [("1e6", "1_000_000", "1.0"), ("1.0", "1", "0.01")])
def test_the_bounds_themselves_are_allowed(egress: str, streams: str, guard: str) -> None:
    text = f"egress_ceiling_mbps = {egress}\nstream_ceiling = {streams}\ncpu_guard = {guard}\nreport_max_age_s = 3"
    settings = read_settings(text + "\ncordon_lease_s = 86_400\nlease_s = 43_152")
    given = NodeCeilings(
        egress_mbps=settings.egress_ceiling_mbps, streams=settings.stream_ceiling, cpu_guard=settings.cpu_guard
    )
    assert given.of(Capacities()) is not None, "a ceiling that passes is one that the samples believe"
    assert lease_fault(Lease(lease_s=settings.cordon_lease_s)) == "", "and such a lease an SFU grants"
