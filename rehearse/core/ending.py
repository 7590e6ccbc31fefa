"""What was seen of one SFU's end, and of connections that came to nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.records import DrainReport


@dataclass(frozen=True, slots=True)
class Failure:
    """A media connection that a player opened and that came to nothing."""

    player: str
    sfu: str
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.player} to {self.sfu}: {self.reason or 'no reason given'}"


@dataclass(slots=True)
class Ending:
    """What was seen of one SFU's end. Times are one monotonic clock's seconds; players are bots' names."""

    sfu: str
    on_it: frozenset[str]
    """Who published there when it began."""
    began: float
    """When the SIGTERM, or for a forced exit the cordon, was sent."""
    told: dict[str, float] = field(default_factory=dict)
    """Who heard `cordoned-sfu`, and when first."""
    moved: dict[str, float] = field(default_factory=dict)
    """Who moved off make-before-break, and when the move was complete."""
    rejoined: dict[str, float] = field(default_factory=dict)
    """Who came back elsewhere after the SFU had ended under it, and when."""
    ordered: float | None = None
    """When a forced exit was ordered."""
    ended: float | None = None
    """When the process was gone."""
    exit_code: int | None = None
    report: DrainReport | None = None
    """What the SFU itself said of its drain (D10)."""

    def on_told(self, player: str, *, at: float) -> None:
        """A player heard of the cordon."""
        self.told.setdefault(player, at)

    def on_moved(self, player: str, *, at: float) -> None:
        """A player completed its move off this SFU."""
        self.moved.setdefault(player, at)

    def on_rejoined(self, player: str, *, at: float) -> None:
        """A player publishes elsewhere after this SFU was lost to it."""
        self.rejoined.setdefault(player, at)

    @property
    def stayed(self) -> frozenset[str]:
        """Who was on it to the end."""
        return self.on_it - self.moved.keys()

    @property
    def left_behind(self) -> frozenset[str]:
        """Who was on it to the end and did not come back elsewhere."""
        return self.stayed - self.rejoined.keys()

    @property
    def never_told(self) -> frozenset[str]:
        """Who was on it and never heard of the cordon."""
        return self.on_it - self.told.keys()
