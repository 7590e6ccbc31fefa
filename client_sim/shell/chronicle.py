"""What a bot tells observers, and what it counts and times for its report."""

from __future__ import annotations

import time
from collections.abc import Callable

from client_sim.core.audience import Audience
from client_sim.core.gaps import Mark
from client_sim.core.movelog import MoveLog
from client_sim.core.report import Counts
from player.core import moves as m
from shared.messages.codes import Refusal
from shared.messages.player import Moved

NOT_FAILURES = frozenset({"cordoned", Refusal.SFU_CORDONED.value, Refusal.SFU_TERMINATING.value, "terminating"})
"""Reasons for a link's end that are no failed connection: the SFU was cordoned between our asking and our coming."""

Emit = Callable[..., None]
"""`emit(event, bot=..., **facts)`."""


class Chronicle:
    """One bot's."""

    def __init__(self, *, bot: str, room: str, audience: Audience, emit: Emit) -> None:
        self.counts = Counts()
        self.moves = MoveLog()
        self._bot = bot
        self._room = room
        self._audience = audience
        self._emit = emit
        self._evicted = False

    def tell(self, event: str, **facts: object) -> None:
        """Tell observers."""
        self._emit(event, bot=self._bot, room=self._room, **facts)

    def note(self, note: m.TellStep) -> None:
        """The mover took a step."""
        self.moves.note(note, now=time.monotonic())
        if note.step is m.MoveStep.MOVE_STARTED:
            self._audience.mark(Mark.MOVE)
        elif note.step is m.MoveStep.EVICTED:
            self.counts.evictions += 1
            self._evicted = True
        elif note.step is m.MoveStep.SWITCHED and self._evicted:
            self._evicted = False
            self.counts.rejoins += 1
            self.tell("rejoined", sfu=note.sfu)
        self.tell(note.step.value, sfu=note.sfu, reason=note.reason)

    def moved(self, effect: m.ReportMoved) -> Moved:
        """A move is complete; the message about it for the router."""
        now = time.monotonic()
        move = self.moves.moved(
            effect,
            audio_gap_ms=self._audience.since(Mark.MOVE, "audio", now=now),
            video_gap_ms=self._audience.since(Mark.MOVE, "video", now=now),
        )
        self.counts.moves += 1
        message = Moved(
            sfu=effect.sfu,
            left=effect.left,
            took_ms=effect.took_ms,
            audio_gap_ms=move.audio_gap_ms,
            video_gap_ms=move.video_gap_ms,
        )
        facts = {name: getattr(message, name) for name in Moved.__struct_fields__}
        self.tell("moved", **facts)
        return message

    def failed_connection(self, sfu: str, reason: str) -> None:
        """A media link came to nothing."""
        if reason not in NOT_FAILURES:
            self.counts.failed_connections += 1
            self.tell("failed-connection", sfu=sfu, reason=reason)
