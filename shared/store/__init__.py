"""What a fleet keeps in Redis: typed reads and writes, decided there by Lua where it must be atomic."""

from shared.store.answers import (
    EnteredRoom,
    Gap,
    HeardRouter,
    HeardSfu,
    Leader,
    PutSfu,
    RoomRecord,
    Scaling,
    Wake,
    WakeKind,
)
from shared.store.api import StoreApi
from shared.store.store import Store

__all__ = [
    "EnteredRoom",
    "Gap",
    "HeardRouter",
    "HeardSfu",
    "Leader",
    "PutSfu",
    "RoomRecord",
    "Scaling",
    "Store",
    "StoreApi",
    "Wake",
    "WakeKind",
]
