"""The ring holds the last packets, and tells repeats and late ones."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from sfu.core.media.ring import PacketRing, Put


@dataclass
class Numbered:
    index: int


@given(st.lists(st.integers(0, 60), max_size=200))
def test_ring_agrees_with_a_dictionary(indexes: list[int]) -> None:
    ring: PacketRing[Numbered] = PacketRing(8)
    kept: dict[int, Numbered] = {}
    for index in indexes:
        packet = Numbered(index)
        highest = max(kept, default=-1)
        put = ring.put(packet)
        if index <= highest - 8:
            assert put is Put.LATE
        elif index in kept:
            assert put is Put.DUPLICATE
        else:
            assert put is Put.KEPT
            kept[index] = packet
        kept = {number: packet for number, packet in kept.items() if number > max(kept, default=-1) - 8}
    for number, packet in kept.items():
        assert ring.get(number) is packet


def test_what_was_never_there_is_not_found() -> None:
    ring: PacketRing[Numbered] = PacketRing(4)
    ring.put(Numbered(5))
    assert ring.get(1) is None
    assert ring.get(9) is None
