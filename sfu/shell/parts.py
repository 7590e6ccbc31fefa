"""What the parts of one SFU's shell share: its settings, its metrics, its clock, who is here and what goes through."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from sfu.config import SfuConfig
from sfu.core.room import SfuRoom
from sfu.shell.media import MediaPeer
from sfu.shell.metrics import SfuMetrics
from sfu.shell.player import Player
from shared.messages.base import Message


@dataclass(slots=True, kw_only=True)
class SfuParts:
    """One SFU. Only its event loop touches it."""

    config: SfuConfig
    metrics: SfuMetrics
    rng: random.Random
    clock: Callable[[], float] = time.monotonic
    players: dict[str, Player] = field(default_factory=dict)
    rooms: dict[str, SfuRoom] = field(default_factory=dict)
    producers: dict[int, tuple[Player, str]] = field(default_factory=dict)
    """Producer -> its player and publication."""
    consumers: set[int] = field(default_factory=set)
    """Forwarded outbound streams to players."""
    emptied: asyncio.Event = field(default_factory=asyncio.Event)
    """Set while no player is here."""
    closing: set[asyncio.Task[None]] = field(default_factory=set)
    """Connections that are being closed."""
    _ids: int = 0

    def __post_init__(self) -> None:
        self.emptied.set()

    def next_id(self) -> int:
        """A name for a producer or consumer in the plane."""
        self._ids += 1
        return self._ids

    def trouble(self, kind: str) -> None:
        """Count something refused, bad or lost."""
        self.metrics.trouble.labels(kind).inc()

    def tell(self, players: Collection[str], message: Message) -> None:
        """Send to these players, as far as they are still here."""
        for name in players:
            player = self.players.get(name)
            if player is not None:
                player.tell(message)

    def close_peer(self, peer: MediaPeer) -> None:
        """Close a connection in the background: saying goodbye takes a while."""
        task = asyncio.get_running_loop().create_task(peer.close())
        self.closing.add(task)
        task.add_done_callback(self.closing.discard)
