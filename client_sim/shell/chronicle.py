"""What a bot tells observers, and what it counts and times for its report."""

from __future__ import annotations

import time
from collections.abc import Callable

from client_sim.core.audience import Audience
from client_sim.core.gaps import Stretch
from client_sim.core.movelog import MoveLog
from client_sim.core.report import BotCounts
from player.core import events as e

Emit = Callable[..., None]
"""`emit(event, bot=..., **facts)`."""


class Chronicle:
    """One bot's. Feed it all events of its player."""

    def __init__(self, *, bot: str, room: str, audience: Audience, emit: Emit) -> None:
        self.counts = BotCounts()
        self.moves = MoveLog()
        self._bot = bot
        self._room = room
        self._audience = audience
        self._emit = emit

    def tell(self, event: str, **facts: object) -> None:
        """Tell observers."""
        self._emit(event, bot=self._bot, room=self._room, **facts)

    def hear(self, event: e.PlayerEvent) -> None:
        """Something happened: count it, and tell observers in their words."""
        match event:
            case e.SessionBegan():
                self.tell("joined", router=event.router, player=event.player)
            case e.SessionResumed():
                self.tell("resumed", router=event.router, player=event.player)
            case e.RouterWentAway():
                self.tell("router-lost", code=event.code)
            case e.RouterEndsSoon():
                self.tell("router-closing", after_s=event.after_s)
            case e.TrackHeard():
                record = event.record
                facts = {"publication": record.publication, "player": record.player, "kind": record.kind}
                self.tell("hearing", **facts, sfu=event.sfu)
            case e.TrackSwitched():
                self.tell("playing-from", publication=event.publication, sfu=event.sfu)
            case e.MoveDecided():
                self.tell("decided", sfu=event.sfu, move=event.move, reason=event.reason)
            case e.StepTaken():
                self._step(event)
            case e.Relocated():
                self._moved(event)
            case e.Recovered():
                self.counts.rejoins += 1
                self.tell("rejoined", sfu=event.sfu)
            case e.LinkFailed():
                self.counts.failed_connections += 1
                self.tell("failed-connection", sfu=event.sfu, reason=event.reason)
            case e.RequestRefused():
                self.tell("refused", sfu=event.sfu or None, code=event.code, message=event.message)

    def _step(self, event: e.StepTaken) -> None:
        self.moves.step(event, now=time.monotonic())
        if event.step == "move-started":
            self._audience.mark(Stretch.MOVE)
        elif event.step == "evicted":
            self.counts.evictions += 1
        self.tell(event.step, sfu=event.sfu, reason=event.reason)

    def _moved(self, event: e.Relocated) -> None:
        self.moves.moved(event)
        self.counts.moves += 1
        self.tell(
            "moved",
            sfu=event.sfu,
            left=event.left,
            took_ms=event.took_ms,
            audio_gap_ms=event.audio_gap_ms,
            video_gap_ms=event.video_gap_ms,
        )
