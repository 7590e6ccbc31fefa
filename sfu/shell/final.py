"""The final sequence of a drain (D7): tell, close, report, unregister; bounded as a whole, whatever hangs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import msgspec

from sfu.shell.parts import SfuParts
from sfu.shell.router_link import RouterLinks
from shared.logs import fields
from shared.messages.codes import CloseCode
from shared.messages.link import Drained, TerminatingSfu, pack_state
from shared.messages.media import Closing
from shared.records import DrainReport, SfuState

LINGER_S = 1.5
"""Between telling the players and closing their transports: long enough to have another SFU's media flow first."""
LINGER_SHARE = 0.2
CLOSE_SHARE = 0.3
GOODBYE_SHARE = 0.3
"""Shares of the whole bound; a fifth is left for what lies between the steps."""

log = logging.getLogger("sfu.drain")


class FinalSequence:
    """One run of the sequence."""

    def __init__(
        self,
        parts: SfuParts,
        links: RouterLinks,
        *,
        state: Callable[[], SfuState],
        report: Callable[[], DrainReport],
    ) -> None:
        """`state` makes a fresh report of our state; `report` is asked at the moment the transports are closed."""
        self._parts = parts
        self._links = links
        self._state = state
        self._report = report

    async def run(self, *, bound_s: float) -> None:
        """Run it. Ends within `bound_s`, whatever players and routers do."""
        self._links.send(TerminatingSfu(state=pack_state(self._state())))
        self._parts.tell(list(self._parts.players), Closing())
        await self._linger(min(LINGER_S, LINGER_SHARE * bound_s))
        report = self._report()
        self._parts.metrics.drained(report)
        _log_report(report)
        await self._close_all(within_s=CLOSE_SHARE * bound_s)
        goodbye = Drained(report=report, state=pack_state(self._state()))
        if not await self._links.say_goodbye(goodbye, within_s=GOODBYE_SHARE * bound_s):
            log.warning("[drain] a router did not say registered in time; its lease on us will run out")

    async def _linger(self, seconds: float) -> None:
        """Give players the time to switch; it is over as soon as all have left."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._parts.emptied.wait(), seconds)

    async def _close_all(self, *, within_s: float) -> None:
        """Close all transports, then all websockets with `4012`; what hangs is left behind when the time is over."""
        players = self._parts.players.values()
        sides = [side for player in players for side in (player.publishing, player.subscribing) if side]
        closing = [asyncio.create_task(side.peer.close()) for side in sides] + list(self._parts.closing)
        if closing:
            await asyncio.wait(closing, timeout=within_s / 2)
        outboxes = [player.outbox for player in players if player.outbox]
        for outbox in outboxes:
            outbox.close(CloseCode.TERMINATING, "terminating")
        waits = [asyncio.create_task(outbox.wait_closed(within_s=within_s / 2)) for outbox in outboxes]
        if waits:
            await asyncio.wait(waits, timeout=within_s / 2)


def _log_report(report: DrainReport) -> None:
    values = msgspec.to_builtins(report)
    stayed = values.pop("conversations_s", ())
    if stayed:
        values |= {"stayed_max_s": max(stayed), "stayed_mean_s": sum(stayed) / len(stayed)}
    log.info("[drain] done %s", fields(**values))
