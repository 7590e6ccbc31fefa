"""One SFU process: its parts wired together, from start to the last exit status."""

from __future__ import annotations

import asyncio
import gc
import logging
import random
import signal
import socket
import sys
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry
from websockets.asyncio.server import Server

from sfu.config import SfuConfig
from sfu.core.drain.events import InterruptedAtTerminal, SigtermReceived
from sfu.core.drain.machine import DrainMachine
from sfu.core.load.warm_up import ComingUp
from sfu.plane.choice import make_plane
from sfu.shell.api import make_api
from sfu.shell.drainer import Drainer
from sfu.shell.from_routers import FromRouters
from sfu.shell.hub import Hub
from sfu.shell.media import PortMedia
from sfu.shell.media_metrics import MediaCollector
from sfu.shell.metrics import SfuMetrics
from sfu.shell.parts import SfuParts
from sfu.shell.plane_news import PlaneNews
from sfu.shell.probe import Probe
from sfu.shell.publishing import Publishing
from sfu.shell.reporting import Reporting
from sfu.shell.router_link import RouterLinks
from sfu.shell.signalling import Signalling, listen
from sfu.shell.stream_proof import StreamProof
from sfu.shell.streams import listen_for_streams
from sfu.shell.subscribing import Subscriptions
from sfu.shell.udp import MediaPort
from sfu.shell.warm_up import WarmUp
from shared.http import HttpPort, serve
from shared.logs import fields
from shared.messages.link import SfuReport, pack_state
from shared.rtc.sdp import host_candidate, tcp_candidate

REPORT_EVERY_S = 1.0

log = logging.getLogger("sfu")


@dataclass(frozen=True, slots=True, kw_only=True)
class SfuProgram:
    """A complete SFU that has its ports; `run` serves."""

    parts: SfuParts
    registry: CollectorRegistry
    websockets: socket.socket
    """Players' websockets are listened for here."""
    port: MediaPort
    media: PortMedia
    probe: Probe
    warm_up: WarmUp
    stream_proof: StreamProof
    hub: Hub
    reports: Reporting
    links: RouterLinks
    drainer: Drainer

    async def run(self) -> int:
        """Serve until the drain is over, and end; the exit status. Raises `OSError` when the HTTP port is taken."""
        self._listen_for_signals()
        self._look()
        self.reports.refresh()
        config = self.parts.config
        server = await Signalling(self.parts, self.hub, self.reports).start(self.websockets)
        api = make_api(self.parts, self.reports, self.links, self.warm_up, registry=self.registry)
        http = await serve(
            api, host=config.host, port=config.http_port, metrics=self.parts.metrics.front, front=config.front
        )
        gc.collect()
        gc.freeze()  # what start-up has made stays; a full collection over it would hold media up for 0.1 s
        self.reports.reach("healthy_s")
        self.links.start(FromRouters(config, self.reports, self.drainer))
        self._say_where(http)
        loops: list[Coroutine[Any, Any, None]] = [self._report_loop(), self.warm_up.run(), self.stream_proof.run()]
        background = [asyncio.create_task(loop) for loop in loops]
        status = await self.drainer.ended
        await self._end(background, server, http)
        return status

    async def _end(self, background: list[asyncio.Task[None]], server: Server, http: HttpPort) -> None:
        """Take everything down; what hangs is left to the end of the process."""
        for task in background:
            task.cancel()
        server.close(close_connections=False)
        await asyncio.wait(
            [asyncio.create_task(self.links.stop()), asyncio.create_task(http.cleanup()), *background], timeout=1.0
        )
        self.reports.stop()
        self.port.close()
        log.info("[drain] ended %s", fields(sfu=self.parts.config.sfu))

    def _say_where(self, http: HttpPort) -> None:
        config = self.parts.config
        if not config.announced_ip:
            log.warning("[sfu] announced_ip is not set: only players on this machine reach 127.0.0.1")
        where = fields(
            sfu=config.sfu, version=config.version, address=self.reports.state.address,
            udp=self.port.address[1], http=http.port, routers=",".join(config.routers),
            tcp=self.port.streams.port if self.port.streams else "off",
        )  # fmt: skip
        log.info("[sfu] ready %s", where)

    def _listen_for_signals(self) -> None:
        loop = asyncio.get_running_loop()
        at_terminal = sys.stdin is not None and sys.stdin.isatty()
        interrupted = InterruptedAtTerminal() if at_terminal else SigtermReceived()
        loop.add_signal_handler(signal.SIGTERM, self.drainer.handle, SigtermReceived())
        loop.add_signal_handler(signal.SIGINT, self.drainer.handle, interrupted)

    async def _report_loop(self) -> None:
        while True:
            await asyncio.sleep(REPORT_EVERY_S)
            self._look()
            self.hub.sweep()
            self.links.send(SfuReport(state=pack_state(self.reports.refresh())))

    def _look(self) -> None:
        """Read the counters."""
        snapshot = self.port.plane.snapshot()
        self.media.note_heard(snapshot)
        self.reports.sample(snapshot, hidden=self.probe.hidden(snapshot))


def build(config: SfuConfig) -> SfuProgram:
    """The SFU of these settings, with every port but that for HTTP taken. Needs a running loop.

    Each part is made of those before it. Raises `OSError` when a port is taken.
    """
    rng, registry = random.SystemRandom(), CollectorRegistry()
    metrics = SfuMetrics(registry, version=config.version)
    parts = SfuParts(config=config, metrics=metrics, rng=rng, clock=asyncio.get_running_loop().time)
    websockets = listen(config.host, config.ws_port)
    machine, coming_up = DrainMachine(config.bounds(), rng=rng), ComingUp()
    reports = Reporting(parts, machine, coming_up, ws_port=websockets.getsockname()[1])
    links = RouterLinks(routers=config.routers, count=config.links, metrics=metrics, rng=rng)
    drainer = Drainer(parts, machine, reports, links)
    news = PlaneNews(parts, reports, links)
    port = MediaPort.open(
        config.host,
        config.udp_port,
        on_events=news.take,
        make_plane=lambda send: make_plane(send, kind=config.plane, gso=config.gso),
        make_streams=partial(_streams_socket, config) if config.tcp else None,
    )
    registry.register(MediaCollector(port))
    udp_port = config.announced_udp_port or port.address[1]
    candidates = tuple(host_candidate(ip, udp_port, index=n) for n, ip in enumerate(config.ips()))
    media = PortMedia(port, candidates=candidates)
    subscriptions = Subscriptions(parts, media)
    publishing = Publishing(parts, media, subscriptions)
    hub = Hub(parts, publishing, subscriptions, on_change=drainer.occupancy_changed, on_left=drainer.left)
    probe = Probe(port, next_id=parts.next_id, rng=rng)
    addresses = [(candidate.ip, candidate.port) for candidate in candidates]
    tcp_port = config.announced_tcp_port or (port.streams.port if port.streams else 0)
    over_tcp = tuple(tcp_candidate(ip, tcp_port, index=n) for n, ip in enumerate(config.ips()) if tcp_port)
    warm_up = WarmUp(probe, addresses, coming_up, metrics=metrics, rng=rng, on_proved=news.proved)
    return SfuProgram(
        parts=parts,
        registry=registry,
        websockets=websockets,
        port=port,
        media=media,
        probe=probe,
        warm_up=warm_up,
        stream_proof=StreamProof(
            probe, over_tcp if port.streams else (), metrics=metrics, rng=rng, announce=media.announce
        ),
        hub=hub,
        reports=reports,
        links=links,
        drainer=drainer,
    )


def _streams_socket(config: SfuConfig, udp_port: int) -> socket.socket:
    """Where media over TCP is listened for. Raises `OSError` when a port that was asked for is taken."""
    if config.tcp_port:
        return listen_for_streams(config.host, config.tcp_port)
    try:
        return listen_for_streams(config.host, udp_port)
    except OSError:
        return listen_for_streams(config.host, 0)


async def run_sfu(config: SfuConfig) -> int:
    """Run one SFU until its drain is over; the exit status. Raises `OSError` when a port is taken."""
    return await build(config).run()
