"""Times the steps of a bot's moves from the mover's notes."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from client_sim.core.report import MoveReport
from player.core import moves as m

MAX_KEPT = 256
"""Moves of one bot that are reported; the oldest are forgotten first."""


@dataclass(slots=True)
class _Going:
    began: float
    report: MoveReport


class MoveLog:
    """Feed it every note and every completed move."""

    def __init__(self) -> None:
        self.done: list[MoveReport] = []
        self._going: _Going | None = None
        self._switched: dict[str, MoveReport] = {}
        """Moves that have switched and wait for the old link's end, by the SFU they left."""

    def note(self, note: m.TellStep, *, now: float) -> None:
        """A step was taken."""
        if note.step is m.MoveStep.MOVE_STARTED:
            self._going = _Going(now, MoveReport(left=note.sfu, sfu="", reason=note.reason, asked_ms=0.0))
        elif self._going is not None:
            going = self._going
            since_ms = round((now - going.began) * 1000.0, 1)
            if note.step is m.MoveStep.NEW_LINK_UP:
                going.report = msgspec.structs.replace(going.report, sfu=note.sfu, new_link_up_ms=since_ms)
            elif note.step is m.MoveStep.FLOWING:
                going.report = msgspec.structs.replace(going.report, flowing_ms=since_ms)
            elif note.step is m.MoveStep.SWITCHED:
                going.report = msgspec.structs.replace(going.report, sfu=note.sfu, switched_ms=since_ms)
                self._switched[going.report.left] = going.report
                self._going = None
            elif note.step in (m.MoveStep.CANCELLED, m.MoveStep.EVICTED):
                self._going = None

    def moved(self, moved: m.ReportMoved, *, audio_gap_ms: float | None, video_gap_ms: float | None) -> MoveReport:
        """The old link was let go: the move is complete."""
        report = self._switched.pop(moved.left, None) or MoveReport(left=moved.left, sfu=moved.sfu)
        report = msgspec.structs.replace(
            report, took_ms=moved.took_ms, audio_gap_ms=audio_gap_ms, video_gap_ms=video_gap_ms
        )
        self.done = [*self.done[-MAX_KEPT + 1 :], report]
        return report
