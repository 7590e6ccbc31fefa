"""Who a player is, and who is told what happens to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from player.core.events import PlayerEvent
from player.core.session_sdp import Incoming
from shared.records import Presence, PublicationRecord

if TYPE_CHECKING:
    from player.shell.media_link import MediaLink


@dataclass(frozen=True, kw_only=True, slots=True)
class ParticipantPlan:
    """Who a player is, and how it behaves."""

    identity: str
    room: str
    routers: Sequence[str]
    token: Callable[[], str]
    """A player token that is good now; asked at each join."""
    client: str
    """Name and version of the program, for the routers' logs."""
    presence: Presence
    spread_s: float
    """A move that nothing forces begins within this time, at random [s]."""
    takes: Callable[[PublicationRecord], bool]
    """Which publications of others it subscribes to; its answer for one of them never changes."""


class Watcher(Protocol):
    """Told what happens, within the step of the event loop in which it happens. Must be quick and must not raise."""

    def event(self, event: PlayerEvent) -> None:
        """Something happened."""

    def unit(
        self, record: PublicationRecord, link: MediaLink, stream: Incoming, unit: bytes, timestamp: int, at: float
    ) -> None:
        """An Opus packet or a whole frame of one copy of a publication; while it moves there are two copies."""

    def gaps_ms(self) -> tuple[float | None, float | None]:
        """Longest gaps of sound and picture since the move began [ms], for the report about it; None: not measured."""
