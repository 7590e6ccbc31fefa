"""The figures an order can go by (P1 `sort_by`): smaller is better, None is "don't know" and never preferred.

Each sort also knows what one placement that no report shows yet will add to its figure (P4).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from shared.load import MOST_EGRESS_BPS
from shared.records import SfuState

LEAN_ON = 10
"""An SFU's own mean per client is mixed with that of as many typical ones: the mean of two players says little."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sort:
    """One way to order SFUs."""

    figure: Callable[[SfuState], float | None]
    absurd: float
    """No node's figure is as large: an SFU that reports it does not know its own."""
    first: float = 0.0
    """What a join adds while no SFU is known that could tell, in the figure's unit."""
    least: float = 0.0
    most: float = 0.0
    """Bounds on the mean per client, so that an odd report moves an order and never stands it on its head."""
    per_room: bool = False
    """New rooms count, not joins."""


def _bytes_per_s(state: SfuState) -> float | None:
    """Each way is looked at alone: a sum would hide that one of them can't be."""
    egress = known(state.load_parts.egress_bps, absurd=MOST_EGRESS_BPS)
    ingress = known(state.load_parts.ingress_bps, absurd=MOST_EGRESS_BPS)
    return None if egress is None or ingress is None else (egress + ingress) / 8


SORTS: dict[str, Sort] = {
    "random": Sort(figure=lambda _: 0.0, absurd=1.0),
    # One per cent of a node for a join: jicofo's weight for participants it has just sent somewhere.
    "load": Sort(figure=lambda state: state.load, absurd=100.0, first=0.01, least=0.0005, most=0.05),
    "cpuload": Sort(figure=lambda state: state.load_parts.cpu, absurd=10.0, first=0.01, least=0.0005, most=0.05),
    "sysload": Sort(figure=lambda state: state.load_parts.sysload, absurd=1e4, first=0.01, least=0.0005, most=0.05),
    "rooms": Sort(
        figure=lambda state: state.load_parts.rooms, absurd=1e6, first=1.0, least=1.0, most=1.0, per_room=True
    ),
    "clients": Sort(figure=lambda state: state.load_parts.clients, absurd=1e6, first=1.0, least=1.0, most=1.0),
    # A camera and a microphone.
    "tracks": Sort(figure=lambda state: state.load_parts.tracks, absurd=1e7, first=2.0, least=0.1, most=20.0),
    # 2 Mbit/s in and out: a small call with video. A terabit a second is no node's, in or out.
    "bytespersec": Sort(figure=_bytes_per_s, absurd=2 * MOST_EGRESS_BPS / 8, first=250e3, least=1e3, most=10e6),
}


def known(figure: float | None, *, absurd: float) -> float | None:
    """The figure, or None when it can't be one: negative, not finite or absurd counts as "don't know"."""
    if figure is None or not math.isfinite(figure) or not 0.0 <= figure < absurd:
        return None
    return figure


def clients_of(state: SfuState) -> int:
    """Players on the SFU by its report; 0 when it does not say, or says what can't be: many would pull the fleet's mean
    per client to nothing."""
    return int(known(state.load_parts.clients, absurd=SORTS["clients"].absurd) or 0)


class Costs:
    """What a placement in flight adds: the SFU's own mean per client, leaning on the fleet's while it has few.

    The fleet's mean is taken over SFUs with at least `LEAN_ON` clients, so that what an idle process burns is not
    billed to the first player.
    """

    MOVED = 0.1
    """The fleet's mean is taken over when it has changed by this share; only then are SFUs moved for it."""

    def __init__(self, sort: Sort) -> None:
        self._sort = sort
        self._busy: dict[str, tuple[float, int]] = {}
        self._figures = 0.0
        self._clients = 0
        self.typical = sort.first

    def learn(self, sfu: str, figure: float | None, clients: int) -> None:
        """Take over one SFU's report."""
        figures, before = self._busy.pop(sfu, (0.0, 0))
        self._figures -= figures
        self._clients -= before
        if figure is not None and clients >= LEAN_ON:
            self._busy[sfu] = (figure, clients)
            self._figures += figure
            self._clients += clients

    def moved(self) -> bool:
        """The fleet's mean has changed enough to matter; `typical` is the new one from here on."""
        if not self._sort.first:
            return False
        now = self._bound((self._figures + LEAN_ON * self._sort.first) / (self._clients + LEAN_ON))
        if abs(now - self.typical) <= self.MOVED * self.typical:
            return False
        self.typical = now
        return True

    def of(self, figure: float | None, clients: int) -> float:
        """What a join adds to an SFU with this figure and so many clients."""
        if figure is None:
            return self.typical
        return self._bound((figure + LEAN_ON * self.typical) / (clients + LEAN_ON))

    def _bound(self, cost: float) -> float:
        return min(self._sort.most, max(self._sort.least, cost))
