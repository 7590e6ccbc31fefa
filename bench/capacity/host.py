"""The machine that `sluice capacity` runs on: what it is, and how fast its network interface is."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from bench.machine import others_share

SHARE = 0.7
"""The egress ceiling, as a share of the interface's speed (A2)."""

ASSUMED_MBPS = 1000.0
"""Used where the interface's speed is not known."""

NET = Path("/sys/class/net")


@dataclass(frozen=True, kw_only=True, slots=True)
class Interface:
    """A network interface."""

    name: str
    mbps: float | None
    """What the kernel says; None: it does not know."""
    virtual: bool = False
    """A bridge, a tunnel, one end of a container's pair: its speed says nothing about the wire."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Egress:
    """The egress ceiling of one SFU."""

    ceiling_mbps: float
    how: str
    """How it was found, for people."""
    known: bool = True
    """False: the interface's speed is an assumption."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The machine, for the reader of the figures."""

    cpu: str
    cores: int
    kernel: str
    load: float
    """Load average of the last minute, before anything was measured."""
    others: float
    """What other programs took of the cores in use, of one core, before anything was measured."""


def egress_ceiling(interface: Interface | None, *, told_mbps: float | None, sfus: int) -> Egress:
    """70 % of what the wire carries, shared by the SFUs of the machine: told, else known, else assumed."""
    name = interface.name if interface is not None else "no interface"
    if told_mbps is not None:
        mbps, how, known = told_mbps, f"{told_mbps:g} Mbit/s as told", True
    elif interface is not None and interface.mbps is not None and not interface.virtual:
        mbps, how, known = interface.mbps, f"{interface.mbps:g} Mbit/s of {name}", True
    else:
        why = "is virtual" if interface is not None and interface.virtual else "does not tell its speed"
        if interface is None:
            why = "leads out of here"
        mbps, how, known = ASSUMED_MBPS, f"{ASSUMED_MBPS:g} Mbit/s, an assumption: {name} {why}", False
    shared = f", shared by {sfus} SFUs" if sfus > 1 else ""
    return Egress(ceiling_mbps=round(SHARE * mbps / sfus, 1), how=f"{SHARE:.0%} of {how}{shared}", known=known)


def read_interface(name: str, *, net: Path = NET) -> Interface | None:
    """What the kernel knows of it; None: there is none of this name."""
    place = net / name
    if not name or "/" in name or not place.exists():
        return None
    try:
        mbps: float | None = float((place / "speed").read_text())
    except (OSError, ValueError):  # reading it fails for an interface that is down, or is no Ethernet
        mbps = None
    if mbps is not None and mbps <= 0:
        mbps = None
    return Interface(name=name, mbps=mbps, virtual=not ((place / "device").exists() or (place / "bonding").exists()))


def default_interface(*, routes: Path = Path("/proc/net/route")) -> str:
    """Where packets to everywhere go; empty: nowhere."""
    try:
        lines = routes.read_text().splitlines()[1:]
    except OSError:
        return ""
    words = (line.split() for line in lines)
    return next((each[0] for each in words if len(each) > 7 and each[1] == each[7] == "00000000"), "")


def read_host(cores: frozenset[int]) -> Host:
    """Looks for half a second at what others do on these cores."""
    return Host(
        cpu=_cpu_name(),
        cores=os.cpu_count() or 1,
        kernel=os.uname().release,
        load=os.getloadavg()[0],
        others=others_share(cores),
    )


def _cpu_name() -> str:
    """As the kernel tells it on x86; elsewhere the architecture."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            return value.strip()
    return os.uname().machine
