"""What the parts of one router's shell share: its settings, its core, its store, its clocks."""

from __future__ import annotations

import logging
import random
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from router.config import RouterConfig
from router.core.assignment import Assigner
from router.core.directory import Directory
from router.core.placements import PlacementLog
from router.core.rooms import HostedRooms
from router.core.teller import Teller
from router.core.tries import TryBook
from router.shell.metrics import Metrics
from router.shell.wire import ws_frame
from shared.errors import StoreUnavailable
from shared.logs import OncePerMinute
from shared.patience import PatientClock
from shared.records import RouterRecord
from shared.store.api import StoreApi

log = logging.getLogger("router")


@dataclass(slots=True)
class RouterState:
    """One router. Only its event loop touches it."""

    config: RouterConfig
    store: StoreApi
    rooms: HostedRooms
    rng: random.Random
    directory: Directory = field(default_factory=Directory)
    metrics: Metrics = field(default_factory=Metrics)
    placements: PlacementLog = field(init=False)
    tries: TryBook = field(default_factory=TryBook)
    clock: PatientClock = field(default_factory=PatientClock)
    """Stands still while this process does, so that it declares nothing dead that only it did not hear."""
    mono: Callable[[], float] = field(init=False)
    """The one clock of the shell [monotonic seconds]; `clock`, but for tests."""
    wall: Callable[[], float] = time.time
    """The time of day [Unix seconds], for tokens and for people."""
    announced_ws: str = ""
    announced_http: str = ""
    routers: tuple[RouterRecord, ...] = ()
    """The fleet's routers as last read."""
    recovering_until: float = 0.0
    """Until then Redis may lack records that other routers are putting back."""
    closing: bool = False
    assigner: Assigner = field(init=False)
    teller: Teller = field(init=False)
    trouble: OncePerMinute = field(init=False)

    def __post_init__(self) -> None:
        self.mono = self.clock
        self.placements = PlacementLog(router=self.config.router, boot=secrets.token_hex(4))
        self.assigner = Assigner(self.directory, self.config.selector)
        self.teller = Teller(self.rooms, encode=ws_frame)
        self.trouble = OncePerMinute(log, clock=self.mono)

    def need_store(self, operation: str) -> StoreApi:
        """The store, unless it is known not to answer: then `StoreUnavailable` at once instead of after a time-out."""
        if self.directory.blind:
            raise StoreUnavailable(operation=operation, detail="did not answer the last exchange")
        return self.store

    @property
    def recovering(self) -> bool:
        """Redis is unreachable or may have lost records: what a player says of itself is believed (invariant 5)."""
        return self.directory.blind or self.mono() < self.recovering_until
