"""The last packets of one producer encoding, by extended sequence number: one ring for all its consumers (M3)."""

from __future__ import annotations

from enum import Enum, auto
from typing import Generic, Protocol, TypeVar

RING_SIZE = 1000
"""Packets kept; about 5 s of a 2.5 Mbit/s layer. mediasoup keeps as many."""


class Indexed(Protocol):
    index: int


P = TypeVar("P", bound=Indexed)


class Put(Enum):
    """What became of a packet offered to the ring."""

    KEPT = auto()
    DUPLICATE = auto()
    """It is there already."""
    LATE = auto()
    """Older than everything the ring can hold."""


class PacketRing(Generic[P]):
    """A fixed ring; a packet's place is its index modulo the size."""

    __slots__ = ("_highest", "_packets", "_size")

    def __init__(self, size: int = RING_SIZE) -> None:
        self._size = size
        self._packets: list[P | None] = [None] * size
        self._highest = -1

    def put(self, packet: P) -> Put:
        index = packet.index
        if index > self._highest:
            self._highest = index
        elif index <= self._highest - self._size:
            return Put.LATE
        place = index % self._size
        old = self._packets[place]
        if old is not None and old.index == index:
            return Put.DUPLICATE
        self._packets[place] = packet
        return Put.KEPT

    def get(self, index: int) -> P | None:
        packet = self._packets[index % self._size]
        return packet if packet is not None and packet.index == index else None
