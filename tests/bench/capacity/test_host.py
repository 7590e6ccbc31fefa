"""The egress ceiling is 70 % of a wire whose speed is known; else it is called an assumption."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.capacity.host import Interface, default_interface, egress_ceiling, read_interface

GIGABITS = Interface(name="eth0", mbps=10_000.0)


@pytest.mark.parametrize(
    ("interface", "told_mbps", "sfus", "mbps", "known", "part"),
    [
        (GIGABITS, None, 1, 7000.0, True, "10000 Mbit/s of eth0"),
        (GIGABITS, None, 8, 875.0, True, "shared by 8 SFUs"),
        (GIGABITS, 2500.0, 1, 1750.0, True, "as told"),
        (Interface(name="eth0", mbps=None), None, 1, 700.0, False, "does not tell"),
        (Interface(name="veth1", mbps=10_000.0, virtual=True), None, 1, 700.0, False, "is virtual"),
        (None, None, 1, 700.0, False, "an assumption"),
    ],
)
def test_the_ceiling_says_where_it_comes_from(
    interface: Interface | None, told_mbps: float | None, sfus: int, mbps: float, known: bool, part: str
) -> None:
    egress = egress_ceiling(interface, told_mbps=told_mbps, sfus=sfus)
    assert (egress.ceiling_mbps, egress.known) == (mbps, known)
    assert part in egress.how


@pytest.mark.parametrize(
    ("speed", "parts", "expected"),
    [
        ("25000\n", ("device",), Interface(name="eth0", mbps=25_000.0)),
        ("-1\n", ("device",), Interface(name="eth0", mbps=None)),
        (None, ("device",), Interface(name="eth0", mbps=None)),
        ("10000\n", (), Interface(name="eth0", mbps=10_000.0, virtual=True)),
        ("20000\n", ("bonding",), Interface(name="eth0", mbps=20_000.0)),
    ],
)
def test_an_interface_is_read_as_the_kernel_tells_it(
    tmp_path: Path, speed: str | None, parts: tuple[str, ...], expected: Interface
) -> None:
    (tmp_path / "eth0").mkdir()
    for part in parts:
        (tmp_path / "eth0" / part).mkdir()
    if speed is not None:
        (tmp_path / "eth0" / "speed").write_text(speed)
    assert read_interface("eth0", net=tmp_path) == expected


@pytest.mark.parametrize("name", ["", "eth7", "../etc"])
def test_there_may_be_no_such_interface(tmp_path: Path, name: str) -> None:
    assert read_interface(name, net=tmp_path) is None


def test_the_default_route_leads_to_the_interface(tmp_path: Path) -> None:
    routes = tmp_path / "route"
    routes.write_text(
        "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n"
        "docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n"
        "eth1\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n"
    )
    assert default_interface(routes=routes) == "eth1"
    assert default_interface(routes=tmp_path / "none") == ""
