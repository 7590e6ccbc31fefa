"""How `sluice capacity` is asked to run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bench.capacity.file import check_target, check_writable
from bench.capacity.search import SizePlan
from bench.relay.settings import PROFILES
from shared.bounds import check_numbers
from shared.errors import BadSetting

SECONDS, QUICK_SECONDS = 4.0, 2.0
MOST_ROOM = 100
"""So that a subscriber's m-lines, two for each of the others, fit into one description."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True, slots=True)
class CapacitySettings:
    """What the players do, how sizes are tried, and where results go."""

    out: tuple[Path, ...] = (Path("capacity.env"),)
    """Settings files to write, each in the form of its suffix: `.env` for SFUs, `.toml` for the autoscaler."""
    plot: Path | None = None
    """Draw delay, CPU and loss over streams as a PNG."""
    kbps: float = 500.0
    """Video of a player with a camera [kbit/s]."""
    cameras: float = 1.0
    """Share of the players with a camera [0..1]; all of them talk."""
    room_size: int = 8
    """Players of a room; everybody gets all the others."""
    profile: str = "gcm"
    """SRTP profile: `gcm` (AES-128-GCM) or `cm` (AES-128-CM with SHA-1)."""
    start: int = 100
    """Forwarded streams of the first step."""
    step: int = 100
    """Forwarded streams from one step to the next."""
    most: int = 10_000
    """Stop here if nothing has broken [streams]."""
    seconds: float | None = None
    """How long each step is measured, after 2 s of warm-up [s]: 4, or 2 with `--quick`."""
    quick: bool = False
    """Double the streams until it breaks, then halve the gap: a few steps instead of dozens."""
    interface: str = ""
    """Network interface the media leaves by. Default: that of the default route."""
    interface_mbps: float | None = None
    """Its speed [Mbit/s], where the kernel does not know: in most virtual machines."""
    sfus: int = 1
    """SFUs that share the interface: one a core, usually."""
    json: Annotated[bool, Parameter(name="--json")] = False
    """Print JSON."""

    @property
    def plan(self) -> SizePlan:
        return SizePlan(start=self.start, step=self.step, most=self.most, quick=self.quick)

    @property
    def step_s(self) -> float:
        """How long a step is measured."""
        return self.seconds or (QUICK_SECONDS if self.quick else SECONDS)

    def check(self) -> None:
        """Raises `BadSetting`. A file that can't be written is told now, not after minutes of measuring."""
        if self.profile not in PROFILES:
            raise BadSetting(setting="--profile", detail=f"{self.profile!r} is none of {', '.join(PROFILES)}")
        check_numbers(self, "cameras", least=0, most=1, flags=True, hint="it is a share")
        check_numbers(self, "room_size", least=2, most=MOST_ROOM, flags=True)
        amounts = ("kbps", "start", "step", "most", "seconds", "interface_mbps", "sfus")
        check_numbers(self, *amounts, over=0, flags=True)
        if self.start < 2:
            raise BadSetting(setting="--start", detail="must be at least 2: sound and picture of one player")
        if self.most < self.start:
            raise BadSetting(setting="--most", detail=f"must not be under --start, which is {self.start}")
        for path in self.out:
            check_target(path)
        if self.plot is not None:
            check_writable(self.plot, setting="--plot")
