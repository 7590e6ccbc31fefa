"""What a fleet keeps in Redis: typed reads and writes, decided there by Lua where it must be atomic."""

from shared.store.answers import Entered, Gap, PutSfu, RoomRecord, Wake, WakeKind
from shared.store.api import StoreApi
from shared.store.store import Store

__all__ = ["Entered", "Gap", "PutSfu", "RoomRecord", "Store", "StoreApi", "Wake", "WakeKind"]
