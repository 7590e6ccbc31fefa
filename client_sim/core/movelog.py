"""Times the steps of a bot's moves."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from client_sim.core.report import MoveReport
from player.core.events import Relocated, StepTaken

MAX_KEPT = 256
"""Moves of one bot that are reported; the oldest are forgotten first."""


@dataclass(slots=True)
class _Going:
    began: float
    report: MoveReport


class MoveLog:
    """Feed it every step and every completed move."""

    def __init__(self) -> None:
        self.done: list[MoveReport] = []
        self._going: _Going | None = None
        self._switched: dict[str, MoveReport] = {}
        """Moves that have switched and wait for the old link's end, by the SFU they left."""

    def step(self, event: StepTaken, *, now: float) -> None:
        """A step was taken at `now` [monotonic seconds]."""
        if event.step == "move-started":
            self._going = _Going(now, MoveReport(left=event.sfu, sfu="", reason=event.reason, asked_ms=0.0))
        elif self._going is not None:
            going = self._going
            since_ms = round((now - going.began) * 1000.0, 1)
            if event.step == "new-link-up":
                going.report = msgspec.structs.replace(going.report, sfu=event.sfu, new_link_up_ms=since_ms)
            elif event.step == "flowing":
                going.report = msgspec.structs.replace(going.report, flowing_ms=since_ms)
            elif event.step == "switched":
                going.report = msgspec.structs.replace(going.report, sfu=event.sfu, switched_ms=since_ms)
                self._switched[going.report.left] = going.report
                self._going = None
            elif event.step in ("cancelled", "evicted"):
                self._going = None

    def moved(self, event: Relocated) -> MoveReport:
        """The old link was let go: the move is complete."""
        report = self._switched.pop(event.left, None) or MoveReport(left=event.left, sfu=event.sfu)
        report = msgspec.structs.replace(
            report, took_ms=event.took_ms, audio_gap_ms=event.audio_gap_ms, video_gap_ms=event.video_gap_ms
        )
        self.done = [*self.done[-MAX_KEPT + 1 :], report]
        return report
