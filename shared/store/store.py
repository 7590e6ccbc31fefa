"""The store of a fleet: everything that routers and operators share through Redis."""

from __future__ import annotations

from shared.store.operators import Operators
from shared.store.placements import Placements
from shared.store.rolls import Rolls
from shared.store.rooms import Rooms
from shared.store.routers import Routers
from shared.store.scaling import ScalingStore
from shared.store.sfus import Sfus
from shared.store.wake import Wakes


class Store(Sfus, Rooms, Placements, Operators, Routers, ScalingStore, Rolls, Wakes):
    """Typed reads and writes on one fleet's keys; `Store(url, fleet=...)`, then `await store.close()` at the end.

    Connects at the first call and again whenever it must. Every method raises `StoreUnavailable`, within about
    `timeout_s`, when Redis can't do it; nothing else, but for the writes of the autoscaler and of rolls, which say so.
    `healthy` tells whether the last call got through. Records that can't be read are left out of answers, counted in
    `counts["bad-record"]` and logged once a minute.
    """
