"""The parameter sets of one H.264 stream that a decoder needs which begins now, where they were sent only once.

Hardware encoders and many bridges send them with the first picture and never again. The compiled twin is
sfu/plane/native/parameter_sets.pxi.
"""

from __future__ import annotations

from collections.abc import Iterable

from shared.rtc import h264

MAX_KEPT = 8
"""Parameter sets kept; encoders use two, an SPS for each of several resolutions at most."""

MAX_KEPT_BYTES = 1200
"""Of all in one packet, so that it needs no fragments."""


class ParameterSets:
    """The newest of each kind and id, the oldest forgotten when there are too many."""

    __slots__ = ("_kept",)

    def __init__(self, described: Iterable[bytes] = ()) -> None:
        self._kept: dict[int, tuple[bytes, int]] = {}
        """Name -> the set and the index of the packet that brought it, oldest first."""
        for unit in described:
            self.keep(unit, -1)

    def inherited(self) -> ParameterSets:
        """For a stream that goes on under another SSRC: any set of its own is newer."""
        return ParameterSets(unit for unit, _ in self._kept.values())

    def keep(self, unit: bytes, index: int) -> None:
        """A set that packet `index` brought. One that is too long takes its older namesake away: that is not valid."""
        name = h264.set_key(unit)
        if name is None:
            return
        old = self._kept.get(name)
        if old is not None and old[1] > index:
            return
        self._kept.pop(name, None)
        if 3 + len(unit) > MAX_KEPT_BYTES:
            return
        self._kept[name] = (unit, index)
        while len(self._kept) > MAX_KEPT or self._length() > MAX_KEPT_BYTES:
            del self._kept[next(iter(self._kept))]

    def _length(self) -> int:
        return 1 + sum(2 + len(unit) for unit, _ in self._kept.values())

    @property
    def complete(self) -> bool:
        """Whether a decoder can begin with them."""
        kinds = {name >> 8 for name in self._kept}
        return {h264.SPS, h264.PPS} <= kinds

    def aggregate(self) -> bytes:
        """All of them in one payload, sequences before the pictures that refer to them."""
        units = [unit for unit, _ in self._kept.values()]
        return h264.aggregate(sorted(units, key=lambda unit: unit[0] & 0x1F))
