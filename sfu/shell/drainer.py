"""Does what the drain machine decides: feeds it events, carries its effects out, wakes it at its deadlines."""

from __future__ import annotations

import asyncio
import logging

from sfu.core.drain.events import (
    AnnounceCordoned,
    AnnounceUncordoned,
    AskPlayers,
    Effect,
    Event,
    ExitProcess,
    FinalSequenceDone,
    OccupancyChanged,
    RejectOrder,
    RunFinalSequence,
    TimePassed,
)
from sfu.core.drain.ledger import DrainLedger
from sfu.core.drain.machine import DrainMachine
from sfu.shell.final import FinalSequence
from sfu.shell.parts import SfuParts
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from shared.logs import fields
from shared.messages.link import CordonReport, UncordonReport, pack_state
from shared.messages.media import PleaseMove
from shared.records import DrainReport, SfuStatus

log = logging.getLogger("sfu.drain")


class Drainer:
    """The machine's shell. Needs a running loop."""

    def __init__(self, parts: SfuParts, machine: DrainMachine, reports: Reporting, links: RouterLinks) -> None:
        self._parts = parts
        self._machine = machine
        self._reports = reports
        self._links = links
        self._ledger: DrainLedger | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._final: asyncio.Task[None] | None = None
        self.ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        """The exit status, once the process may end."""

    # --- what happens ---

    def handle(self, event: Event) -> None:
        """Something has happened."""
        for effect in self._machine.handle(event, now=self._parts.clock()):
            self._do(effect)
        self._arm()

    def occupancy_changed(self) -> None:
        """A player has come or gone."""
        self.handle(OccupancyChanged(players=frozenset(self._parts.players)))

    def left(self, reason: str) -> None:
        """A session has ended."""
        if self._ledger is None or self._machine.status is SfuStatus.TERMINATING:
            return
        now = self._parts.clock()
        self._ledger.left(of_own_will=reason == "left", now=now)
        self._parts.metrics.stayed(now - self._ledger.began)

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        deadline = self._machine.next_deadline()
        loop = asyncio.get_running_loop()
        # A timer may come a little early by the other clock's granularity; the machine is then asked again.
        delay = None if deadline is None else max(0.001, deadline - self._parts.clock())
        self._timer = None if delay is None else loop.call_later(delay, self.handle, TimePassed())

    # --- what is to be done ---

    def _do(self, effect: Effect) -> None:
        match effect:
            case AnnounceCordoned():
                self._announce_cordoned()
            case AnnounceUncordoned():
                self._announce_uncordoned(effect.lapsed)
            case AskPlayers():
                self._ask(effect.players, effect.within_s)
            case RunFinalSequence():
                log.info("[drain] final sequence outcome=%s bound_s=%.1f", effect.outcome, effect.bound_s)
                self._final = asyncio.create_task(self._run_final(effect.bound_s))
            case ExitProcess():
                if not self.ended.done():
                    self.ended.set_result(effect.status)
            case RejectOrder():
                log.warning("[drain] %s refused: %s", effect.order, effect.reason)

    def _announce_cordoned(self) -> None:
        """The machine is CORDONED already; from here on admission refuses, and the routers hear of it."""
        state = self._reports.refresh()
        if self._ledger is None:
            self._ledger = DrainLedger(began=self._parts.clock(), players_at_cordon=len(self._parts.players))
        self._links.send(CordonReport(state=pack_state(state)))
        drain = state.drain
        if drain is not None:
            log.info(
                "[drain] cordoned %s",
                fields(
                    sfu=state.sfu, version=state.version, cause=drain.cause, by=drain.by or None,
                    reason=drain.reason or None, players=state.players, exit_when_empty=drain.exit_when_empty,
                    asks_after_s=drain.drain_max_s, killed_after_s=drain.grace_s,
                ),
            )  # fmt: skip

    def _announce_uncordoned(self, lapsed: str) -> None:
        """The SFU takes new work again."""
        self._ledger = None
        state = self._reports.refresh()
        self._links.send(UncordonReport(state=pack_state(state)))
        log.info("[drain] uncordoned %s", fields(sfu=state.sfu, lease_lapsed_of=lapsed or None))

    def _ask(self, players: tuple[str, ...], within_s: float) -> None:
        state = self._reports.state
        message = PleaseMove(sfu=state.sfu, incarnation=state.incarnation, revision=state.revision, within_s=within_s)
        self._parts.tell(players, message)
        self._parts.metrics.asked(len(players))
        here = len(self._parts.players)
        log.info("[drain] asked %s", fields(players=len(players), within_s=within_s, here=here))

    async def _run_final(self, bound_s: float) -> None:
        sequence = FinalSequence(self._parts, self._links, state=self._reports.refresh, report=self._report)
        try:
            await sequence.run(bound_s=bound_s)
        except Exception:
            # Whatever goes wrong here: the process must end before the kill, with status 0.
            log.exception("[drain] the final sequence failed")
        self.handle(FinalSequenceDone())

    def _report(self) -> DrainReport:
        assert self._ledger is not None, "a final sequence without a cordon"
        machine, state = self._machine, self._reports.refresh()
        return self._ledger.report(
            sfu=state.sfu,
            version=state.version,
            cause=state.drain.cause if state.drain else "",
            outcome=machine.outcome.value if machine.outcome else "",
            asked=machine.asked,
            players=state.players or 0,
            producers=state.producers or 0,
            consumers=state.consumers or 0,
            now=self._parts.clock(),
        )
