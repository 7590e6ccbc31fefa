"""One SFU process: its parts wired together, from start to the last exit status."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import secrets
import signal
import sys
import time
from collections.abc import Coroutine
from typing import Any

from aiohttp import web
from prometheus_client import CollectorRegistry
from websockets.asyncio.server import Server

from sfu.config import SfuConfig
from sfu.core.drain.events import (
    CordonStamped,
    InterruptedAtTerminal,
    OccupancyChanged,
    SigtermReceived,
)
from sfu.core.drain.ledger import DrainLedger
from sfu.core.drain.machine import DrainMachine
from sfu.core.drain.orders import event_of
from sfu.plane.api import Address, ConsumerFlowing, Event
from sfu.plane.choice import make_plane
from sfu.shell.api import make_api
from sfu.shell.drainer import Drainer
from sfu.shell.final import FinalSequence
from sfu.shell.hub import Hub
from sfu.shell.media import PortMedia
from sfu.shell.media_metrics import MediaCollector
from sfu.shell.metrics import SfuMetrics
from sfu.shell.probe import Probe
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from sfu.shell.signalling import Signalling
from sfu.shell.udp import MediaPort
from sfu.shell.warm_up import WarmUp
from shared.http import serve
from shared.logs import fields
from shared.messages.link import (
    Cordon,
    CordonReport,
    Exit,
    Hello,
    Linked,
    SfuReport,
    Stamped,
    TerminatingSfu,
    ToRouter,
    ToSfu,
    Uncordon,
    UncordonReport,
    pack_state,
)
from shared.messages.media import PleaseMove
from shared.records import DrainReport, SfuState, SfuStatus
from shared.rtc.sdp import host_candidate
from shared.tokens import LINK_TOKEN_TTL_S, LinkClaims, issue

REPORT_EVERY_S = 1.0

log = logging.getLogger("sfu")


class Program:
    """The process. `run` returns its exit status."""

    def __init__(self, config: SfuConfig) -> None:
        """Raises `BadSetting`."""
        config.check()
        self.config = config
        self.registry = CollectorRegistry()
        self.metrics = SfuMetrics(self.registry, version=config.version)
        self.ready = False
        self._rng = random.SystemRandom()
        self._boot = secrets.token_hex(8)
        self._ledger: DrainLedger | None = None
        self._status: asyncio.Future[int] | None = None

    # --- running ---

    async def run(self) -> int:
        """Start, serve until the drain is over, and end. Raises `OSError` when a port is taken."""
        loop = asyncio.get_running_loop()
        self.clock = loop.time
        self._status = loop.create_future()
        config = self.config
        self.port = MediaPort.open(
            config.host,
            config.udp_port,
            on_events=self._on_events,
            make_plane=lambda send: make_plane(send, kind=config.plane, gso=config.gso),
        )
        udp_port = config.announced_udp_port or self.port.address[1]
        candidates = tuple(host_candidate(ip, udp_port, index=n) for n, ip in enumerate(config.ips()))
        self.media = PortMedia(self.port, candidates=candidates)
        self.registry.register(MediaCollector(self.port))
        machine = DrainMachine(config.bounds(), rng=self._rng)
        self._drainer = Drainer(machine, self, clock=self.clock)
        self.hub = Hub(
            config, self.media, self.metrics,
            rng=self._rng, on_change=self._occupancy, on_left=self._left, clock=self.clock,
        )  # fmt: skip
        signalling = Signalling(self.hub, secret=config.secret, state=lambda: self.state)
        server = await signalling.start(host=config.host, port=config.ws_port)
        self._probe = Probe(self.port, next_id=self.hub.next_id, rng=self._rng)
        self.reports = Reporting(
            config, ws_port=next(iter(server.sockets)).getsockname()[1], media=self.media, hub=self.hub,
            machine=machine, probe=self._probe, metrics=self.metrics, clock=self.clock,
        )  # fmt: skip
        self.warm_up = WarmUp(
            self._probe, [(candidate.ip, candidate.port) for candidate in candidates],
            metrics=self.metrics, rng=self._rng, on_proved=self._proved,
        )  # fmt: skip
        self.reports.probe_failure = lambda: self.warm_up.failure
        self.links = RouterLinks(self, routers=config.routers, count=config.links, metrics=self.metrics, rng=self._rng)
        self.reports.sample()
        self.reports.refresh()
        http = await serve(make_api(self), host=config.host, port=config.http_port)
        self._listen_for_signals()
        gc.collect()
        gc.freeze()  # what start-up has made stays; a full collection over it would hold media up for 0.1 s
        self.ready = True
        self.reports.reach("healthy_s")
        self.links.start()
        self._say_where(server, http)
        beside = [asyncio.create_task(self._report_loop()), asyncio.create_task(self.warm_up.run())]
        status = await self._status
        await self._end(beside, server, http)
        return status

    async def _end(self, beside: list[asyncio.Task[None]], server: Server, http: web.AppRunner) -> None:
        """Take everything down; what hangs is left to the end of the process."""
        for task in beside:
            task.cancel()
        server.close(close_connections=False)
        await asyncio.wait(
            [asyncio.create_task(self.links.stop()), asyncio.create_task(http.cleanup()), *beside], timeout=1.0
        )
        self.reports.stop()
        self.port.close()
        log.info("[drain] ended %s", fields(sfu=self.config.sfu))

    def _say_where(self, server: Server, http: web.AppRunner) -> None:
        if not self.config.announced_ip:
            log.warning("[sfu] announced_ip is not set: only players on this machine reach 127.0.0.1")
        where = fields(
            sfu=self.config.sfu, version=self.config.version, address=self.state.address,
            udp=self.port.address[1], http=http.addresses[0][1], routers=",".join(self.config.routers),
        )  # fmt: skip
        log.info("[sfu] ready %s", where)

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        at_terminal = sys.stdin is not None and sys.stdin.isatty()
        interrupted = InterruptedAtTerminal() if at_terminal else SigtermReceived()
        loop.add_signal_handler(signal.SIGTERM, self._drainer.handle, SigtermReceived())
        loop.add_signal_handler(signal.SIGINT, self._drainer.handle, interrupted)

    async def _report_loop(self) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            self.reports.sample()
            self.hub.sweep()
            self.links.send(SfuReport(state=pack_state(self.reports.refresh())))

    # --- the state ---

    @property
    def state(self) -> SfuState:
        """The last report."""
        return self.reports.state

    def _on_events(self, events: list[Event]) -> None:
        self.hub.plane_events(events)
        if not self.reports.warmed_up and any(self._first_of_a_player(event) for event in events):
            self._warmed_up(by="player")

    def _first_of_a_player(self, event: Event) -> bool:
        return isinstance(event, ConsumerFlowing) and event.consumer not in self._probe.consumers

    def _proved(self, address: Address) -> None:
        self._warmed_up(by="probe", address=f"{address[0]}:{address[1]}")

    def _warmed_up(self, **facts: str) -> None:
        if self.reports.reach("first_packet_s", **facts):
            self.links.send(SfuReport(state=pack_state(self.reports.refresh())))

    def _occupancy(self) -> None:
        self._drainer.handle(OccupancyChanged(players=frozenset(self.hub.players)))

    def _left(self, reason: str) -> None:
        ledger = self._ledger
        if ledger is None or self._drainer.machine.status is SfuStatus.TERMINATING:
            return
        now = self.clock()
        ledger.left(of_own_will=reason == "left", now=now)
        self.metrics.stayed(now - ledger.began)

    # --- what the drain wants done ---

    def announce_cordoned(self) -> None:
        """The machine is CORDONED already; from here on admission refuses, and the routers hear of it."""
        state = self.reports.refresh()
        if self._ledger is None:
            self._ledger = DrainLedger(began=self.clock(), players_at_cordon=len(self.hub.players))
        self.links.send(CordonReport(state=pack_state(state)))
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

    def announce_uncordoned(self, lapsed: str) -> None:
        """Takes new work again."""
        self._ledger = None
        state = self.reports.refresh()
        self.links.send(UncordonReport(state=pack_state(state)))
        log.info("[drain] uncordoned %s", fields(sfu=state.sfu, lease_lapsed_of=lapsed or None))

    def ask_players(self, players: tuple[str, ...], within_s: float) -> None:
        """Ask, and cut nobody."""
        state = self.state
        message = PleaseMove(sfu=state.sfu, incarnation=state.incarnation, revision=state.revision, within_s=within_s)
        self.hub.tell(players, message)
        self.metrics.asked(len(players))
        log.info("[drain] asked %s", fields(players=len(players), within_s=within_s, here=len(self.hub.players)))

    def final_sequence(self, bound_s: float) -> Coroutine[Any, Any, None]:
        """The last thing this process does."""
        sequence = FinalSequence(self.hub, self.links, self.metrics, state=self.reports.refresh, report=self._report)
        return sequence.run(bound_s=bound_s)

    def exit_process(self, status: int) -> None:
        """The process may end."""
        if self._status is not None and not self._status.done():
            self._status.set_result(status)

    def _report(self) -> DrainReport:
        machine, state = self._drainer.machine, self.reports.refresh()
        assert self._ledger is not None, "a final sequence without a cordon"
        return self._ledger.report(
            sfu=state.sfu,
            version=state.version,
            cause=state.drain.cause if state.drain else "",
            outcome=machine.outcome.value if machine.outcome else "",
            asked=machine.asked,
            players=state.players or 0,
            producers=state.producers or 0,
            consumers=state.consumers or 0,
            now=self.clock(),
        )

    # --- what routers say ---

    def hello(self) -> Hello:
        """The first message on a link."""
        claims = LinkClaims(sfu=self.config.sfu)
        token = issue(claims, secret=self.config.secret, now_at=time.time(), ttl_s=LINK_TOKEN_TTL_S)
        return Hello(token=token, boot=self._boot, state=pack_state(self.reports.refresh()))

    def linked(self, message: Linked) -> ToRouter | None:
        """A router knows us; say at once what it may have missed, under an incarnation it takes for newer."""
        self.reports.reach("linked_s", router=message.router)
        raised = self.reports.numbers.raise_above(message.incarnation_floor)
        if raised:
            log.warning("[link] incarnation raised %s", fields(floor=message.incarnation_floor, router=message.router))
        state = self.reports.refresh()
        if state.status == SfuStatus.CORDONED:
            return CordonReport(state=pack_state(state))
        if state.status == SfuStatus.TERMINATING:
            return TerminatingSfu(state=pack_state(state))
        return SfuReport(state=pack_state(state)) if raised else None

    def ordered(self, message: ToSfu, *, router: str) -> None:
        """An operator's word, through a router."""
        match message:
            case Cordon() | Uncordon():
                self._drainer.handle(event_of(message))
            case Exit():
                log.warning("[drain] exit ordered %s", fields(by=message.by or None, at=message.at, router=router))
                self._drainer.handle(event_of(message))
            case Stamped():
                self.reports.numbers.stamp(message.started_at)
                if message.cordoned_at is not None:
                    self._drainer.handle(CordonStamped(since_at=message.cordoned_at))
            case _:
                log.debug("[link] nothing to do for %s", type(message).__name__)
