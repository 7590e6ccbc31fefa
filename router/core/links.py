"""What a router remembers of an SFU's link: the SFU, its process, and what Redis' clock said of it."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from router.core.orders import LinkedSfu
from shared.records import SfuState, status_of

MAX_BOOTS = 4096


@dataclass(slots=True, kw_only=True)
class LinkFacts:
    """The facts of one link."""

    sfu: str
    state: SfuState
    started_at: float | None = None
    cordoned_at: float | None = None

    def linked_sfu(self) -> LinkedSfu:
        """What decides whether an order or a command concerns it."""
        return LinkedSfu(
            sfu=self.sfu,
            incarnation=self.state.incarnation,
            version=self.state.version,
            status=status_of(self.state),
            started_at=self.started_at,
            cordoned_at=self.cordoned_at,
        )


class Boots:
    """Which process had which incarnation of an SFU id, for the floor in `linked`."""

    def __init__(self) -> None:
        self._boots: OrderedDict[str, tuple[str, int]] = OrderedDict()

    def note(self, sfu: str, boot: str, incarnation: int) -> None:
        """The process `boot` reports this incarnation."""
        self._boots[sfu] = (boot, incarnation)
        self._boots.move_to_end(sfu)
        while len(self._boots) > MAX_BOOTS:
            self._boots.popitem(last=False)

    def floor(self, sfu: str, boot: str, incarnation: int, *, known: int) -> int:
        """The incarnation above which the process must go; 0 when what it has is fine.

        `known` is the highest incarnation heard of, from anywhere. An equal one is this same process, linked to
        another router as well, unless another process is known to have had it.
        """
        last_boot, last_incarnation = self._boots.get(sfu, ("", 0))
        if last_boot and last_boot != boot:
            known = max(known, last_incarnation)
            return known if incarnation <= known else 0
        return known if incarnation < known else 0
