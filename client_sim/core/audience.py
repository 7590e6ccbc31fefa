"""All that one player hears and sees: a listener for each publication, also for those that have ended."""

from __future__ import annotations

from dataclasses import dataclass

from client_sim.core.clip import ClipIndex
from client_sim.core.gaps import GapReport, Stretch
from client_sim.core.listener import Listener
from shared.records import PublicationRecord

MAX_KEPT = 512
"""Reports of ended publications kept; the oldest are forgotten first."""


@dataclass(frozen=True, slots=True)
class Received:
    """What came of one publication."""

    publication: str
    player: str
    kind: str
    checked: bool
    """Its content was compared with the clip."""
    report: GapReport


class Audience:
    """Listeners by publication."""

    def __init__(self, index: ClipIndex | None) -> None:
        self._index = index
        self._listeners: dict[str, Listener] = {}
        self._ended: list[Received] = []

    def hears(self, publication: str) -> bool:
        """Something of this publication has arrived."""
        return publication in self._listeners

    def take(self, record: PublicationRecord, unit: bytes, *, at: float) -> bool:
        """An Opus packet or a complete frame of a publication arrived; True when it is new."""
        listener = self._listeners.get(record.publication)
        if listener is None:
            listener = self._listeners[record.publication] = Listener(
                publication=record.publication,
                player=record.player,
                kind=record.kind,
                source=record.source,
                index=self._index,
            )
        return listener.take(unit, at=at)

    def ended(self, publication: str, *, now: float) -> None:
        """The publication has ended; its silence from here on is no gap."""
        listener = self._listeners.pop(publication, None)
        if listener is not None:
            listener.meter.paused()
            self._ended = [*self._ended[-MAX_KEPT + 1 :], _received(listener, now)]

    def mark(self, mark: Stretch) -> None:
        """A stretch of its own begins."""
        for listener in self._listeners.values():
            listener.meter.mark(mark)

    def since(self, mark: Stretch, kind: str, *, now: float) -> float | None:
        """Longest gap of any publication of this kind since the mark [ms]; None when there is none to hear."""
        gaps = [one.meter.since(mark, now=now) for one in self._listeners.values() if one.kind == kind]
        return round(max(gaps), 2) if gaps else None

    def received(self, *, now: float) -> list[Received]:
        """What has come of every publication so far."""
        return [*self._ended, *(_received(listener, now) for listener in self._listeners.values())]


def _received(listener: Listener, now: float) -> Received:
    report = listener.report(now=now)
    return Received(listener.publication, listener.player, listener.kind, listener.checked, report)
