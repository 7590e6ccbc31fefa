"""The final sequence of a drain (D7): tell, close, report, unregister; bounded as a whole, whoever hangs."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable

import msgspec

from sfu.shell.hub import Hub
from sfu.shell.metrics import SfuMetrics
from sfu.shell.router_link import RouterLinks
from shared.logs import fields
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
        hub: Hub,
        links: RouterLinks,
        metrics: SfuMetrics,
        *,
        state: Callable[[], SfuState],
        report: Callable[[], DrainReport],
    ) -> None:
        """`state` makes a fresh report of our state; `report` is asked at the moment the transports are closed."""
        self._hub = hub
        self._links = links
        self._metrics = metrics
        self._state = state
        self._report = report

    async def run(self, *, bound_s: float) -> None:
        """Run it. Ends within `bound_s`, whatever players and routers do."""
        self._links.send(TerminatingSfu(state=pack_state(self._state())))
        self._hub.tell(list(self._hub.players), Closing())
        await self._linger(min(LINGER_S, LINGER_SHARE * bound_s))
        report = self._report()
        self._metrics.drained(report)
        _log_report(report)
        await self._hub.close_all(within_s=CLOSE_SHARE * bound_s)
        goodbye = Drained(report=report, state=pack_state(self._state()))
        if not await self._links.say_goodbye(goodbye, within_s=GOODBYE_SHARE * bound_s):
            log.warning("[drain] a router did not say registered in time; its lease on us will end by itself")

    async def _linger(self, seconds: float) -> None:
        """Give players the time to switch, but no longer than there are any."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._hub.emptied.wait(), seconds)


def _log_report(report: DrainReport) -> None:
    values = msgspec.to_builtins(report)
    stayed = values.pop("conversations_s", ())
    if stayed:
        values |= {"stayed_max_s": max(stayed), "stayed_mean_s": sum(stayed) / len(stayed)}
    log.info("[drain] done %s", fields(**values))
