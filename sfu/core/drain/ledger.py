"""The result of one drain (D10): who was there at the cordon, who left when, who had to be cut off."""

from __future__ import annotations

from dataclasses import dataclass, field

from shared.records import DrainReport

MAX_DURATIONS = 5000
"""Most conversations listed in a report; the rest are only counted."""


@dataclass(slots=True)
class DrainLedger:
    """The counts of one drain; each cordon begins a new ledger. Times are monotonic seconds."""

    began: float
    players_at_cordon: int
    last_move_at: float | None = None
    durations_s: list[float] = field(default_factory=list)

    def left(self, *, of_own_will: bool, now: float) -> None:
        """A player's session ended before the final sequence."""
        if of_own_will:
            self.last_move_at = now
        if len(self.durations_s) < MAX_DURATIONS:
            self.durations_s.append(round(now - self.began, 3))

    def report(
        self,
        *,
        sfu: str,
        version: str,
        cause: str,
        outcome: str,
        asked: int,
        players: int,
        producers: int,
        consumers: int,
        now: float,
    ) -> DrainReport:
        """The report as of the beginning of the final sequence; players who are still there are about to be evicted."""
        last_move_at = self.last_move_at
        return DrainReport(
            sfu=sfu,
            version=version,
            cause=cause,
            outcome=outcome,
            to_exit_s=round(now - self.began, 3),
            players_at_cordon=self.players_at_cordon,
            players_at_exit=players,
            producers_at_exit=producers,
            consumers_at_exit=consumers,
            asked=asked,
            evicted=players,
            last_move_s=None if last_move_at is None else round(last_move_at - self.began, 3),
            conversations_s=tuple(self.durations_s),
        )
