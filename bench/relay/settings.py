"""How `sluice bench relay` is asked to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bench.relay.peers import PEERS
from bench.relay.workloads import WORKLOADS, Course
from shared.bounds import check_numbers
from shared.errors import BadSetting
from shared.rtc.srtp import SrtpProfile

PROFILES = {"gcm": SrtpProfile.AEAD_AES_128_GCM, "cm": SrtpProfile.AES128_CM_SHA1_80}
MOST = 20
"""A search for the knee ends at so many times its first size."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class RelaySettings:
    """What to measure, and how."""

    subscribers: int | None = None
    """Subscribers; in `rooms` and `rooms2m` the number of rooms of eight. Each workload has its own default."""
    seconds: float | None = None
    """How long to measure [s]: 8, or 4 for each step of `--find-knee`."""
    profile: str = "gcm"
    """SRTP profile: `gcm` (AES-128-GCM) or `cm` (AES-128-CM with SHA-1)."""
    peer: str | None = None
    """Measure another server too, in turn with ours: `janus`."""
    rounds: int | None = None
    """How often to measure; figures are medians. 3 with `--peer`, else 1."""
    find_knee: bool = False
    """Raise the size until loss > 0.1 % or p99 delay > 3 ms; report the last good one and what broke first."""
    plot: Path | None = None
    """Draw a PNG: of a run its delays and where the CPU went, of a search the curve over size."""
    joins: int | None = None
    """How many join in `storm` (default 100), or join and leave in `churn` (default 2,000, after twice as many)."""
    gso: bool = True
    """Whether our SFU sends runs of datagrams as one (UDP GSO)."""
    gro: bool = False
    """Whether the generator's socket takes runs as one (UDP GRO): else the sender's core splits them, on loopback."""
    sender_gso: bool = False
    """Whether the generator's publishers send a frame's packets as one; browsers don't."""
    floor: bool = True
    """Measure too what the kernel alone takes for the same sends; 2 s more."""
    plane: str = "compiled"
    """Our SFU's plane: `compiled` or `reference`."""
    json: Annotated[bool, Parameter(name="--json")] = False
    """Print JSON."""

    def check(self, workload: str) -> None:
        """Raises `BadSetting`."""
        if workload not in WORKLOADS:
            raise BadSetting(setting="WORKLOAD", detail=f"{workload!r} is none of {', '.join(WORKLOADS)}")
        if self.profile not in PROFILES:
            raise BadSetting(setting="--profile", detail=f"{self.profile!r} is none of {', '.join(PROFILES)}")
        if self.peer is not None and self.peer not in PEERS:
            raise BadSetting(setting="--peer", detail=f"{self.peer!r} is none of {', '.join(PEERS)}")
        if self.find_knee and WORKLOADS[workload].course is not Course.STEADY:
            raise BadSetting(
                setting="--find-knee", detail=f"{workload} has no knee: take fanout, webcam, audio or rooms"
            )
        check_numbers(self, "subscribers", "seconds", "rounds", "joins", over=0, flags=True)
