"""What this machine does to a measurement: its cores, who else is on them, what the kernel does to each datagram."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

BUSY_SHARE = 0.1
"""Of one core: more of others' work on the cores in use spoils the figures."""

LOOK_S = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Cores:
    """Who runs where; None: anywhere."""

    server: int | None
    generator: int | None

    @property
    def both(self) -> frozenset[int]:
        """All of the machine's when no process is pinned."""
        pinned = {core for core in (self.server, self.generator) if core is not None}
        return frozenset(pinned or range(os.cpu_count() or 1))


def split_cores() -> Cores:
    """The first two of ours."""
    ours = sorted(os.sched_getaffinity(0))
    return Cores(server=ours[0], generator=ours[1]) if len(ours) > 1 else Cores(server=None, generator=None)


@contextmanager
def pinned(core: int | None) -> Iterator[None]:
    """The calling thread, and what it starts within, runs on `core`; None: anywhere."""
    before = os.sched_getaffinity(0)
    if core is not None:
        os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def busy_seconds(cores: Collection[int]) -> float:
    """CPU that all programs have spent on these cores since the machine's start, in steps of 10 ms (`/proc/stat`)."""
    tick = os.sysconf("SC_CLK_TCK")
    busy = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *numbers = line.split()
        if name.startswith("cpu") and name != "cpu" and int(name[3:]) in cores:
            # user, nice, system, idle, iowait, irq, softirq, steal; guests are in user.
            user, nice, system, _, _, irq, softirq, steal = map(int, numbers[:8])
            busy += user + nice + system + irq + softirq + steal
    return busy / tick


def socket_drops(port: int, *, host: str = "0.0.0.0") -> int:
    """Datagrams that the UDP socket on this IPv4 address and port had no room for (`/proc/net/udp`)."""
    bound = f"{int.from_bytes(socket.inet_aton(host), sys.byteorder):08X}:{port:04X}"
    for line in Path("/proc/net/udp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1] == bound:
            return int(words[-1])
    return 0


def others_share(cores: Collection[int]) -> float:
    """What others spend right now, of one core; looks for half a second, in which the caller does nothing."""
    before = busy_seconds(cores)
    time.sleep(LOOK_S)
    return (busy_seconds(cores) - before) / LOOK_S


def tracks_loopback() -> bool:
    """Whether netfilter keeps a connection for each pair of loopback addresses (with rules for NAT it does, Docker's
    for example): that costs each datagram a look-up. False too where it can't be told."""
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as two,
    ):
        one.bind(("127.0.0.1", 0))
        two.bind(("127.0.0.1", 0))
        one.sendto(b"x", two.getsockname())
        try:
            known = Path("/proc/net/nf_conntrack").read_text()
        except OSError:
            return False
        return f"sport={one.getsockname()[1]} dport={two.getsockname()[1]}" in known


def warnings(cores: Cores) -> list[str]:
    """Sentences on what spoils figures here."""
    told = []
    if cores.server is None:
        told.append("there is one core only: server and generator are in each other's way")
    if (share := others_share(cores.both)) > BUSY_SHARE:
        told.append(f"other programs take {share:.0%} of a core: delays and CPU per packet will be too high")
    if tracks_loopback():
        told.append(
            "netfilter tracks connections on loopback (NAT rules, Docker's for example), which costs every datagram "
            "1 to 2 us: `nft list ruleset` shows the rules"
        )
    return told
