"""A real SFU process behind `bench.peers.Peer`: players enter by its websocket, figures come from its `/metrics`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from bench.capacity.player import SfuPlayer
from bench.relay.peers import OfferedTrack, PeerMissing, PeerStats, TransportAnswer
from bench.stats import cpu_seconds, resident_bytes
from localfleet.errors import FleetFailed
from localfleet.program import Program, flags
from shared.errors import SluiceError
from shared.host.child import python, start
from shared.host.ports import Ports
from shared.rtc.dtls import Fingerprint
from shared.rtc.srtp import SrtpProfile

NAME = "sfu"
NO_ROUTER = "ws://127.0.0.1:9"
"""The discard port: nothing listens there. An SFU serves players without its routers."""

MANY = 1_000_000
GOODBYE_S = 5.0
ANSWER_WITHIN_S = 2.0
"""An SFU that takes longer over a scrape has no time for players either, nor would the figures be of a known moment."""

PLANE_THREAD = "sluice-plane"
DELAYS = "sluice_sfu_forwarding_delay_seconds_bucket"
COUNTERS = ("packets_in", "packets_out", "forwarded", "bytes_out")


@dataclass(frozen=True, kw_only=True, slots=True)
class Scrape:
    """What one look at `/metrics` told."""

    at: float
    counts: dict[str, int] = field(default_factory=dict)
    drops: dict[str, int] = field(default_factory=dict)
    delays: list[tuple[int, int]] = field(default_factory=list)
    """`(upper bound [us], packets)` of each bucket that is not empty."""


def read_metrics(text: str, *, at: float) -> Scrape:
    """Out of the text format."""
    scrape = Scrape(at=at)
    below = 0
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            name = sample.name.removeprefix("sluice_sfu_media_").removesuffix("_total")
            if sample.name == DELAYS:
                count, below = int(sample.value) - below, int(sample.value)
                if count and sample.labels["le"] != "+Inf":
                    scrape.delays.append((round(float(sample.labels["le"]) * 1e6), count))
                elif count:  # over the last bound: any number above it will do, it is out of the band by far
                    scrape.delays.append((1_000_000, count))
            elif name in COUNTERS:
                scrape.counts[name] = int(sample.value)
            elif name == "drops":
                scrape.drops[sample.labels["reason"]] = int(sample.value)
    return scrape


class Silent(SluiceError):
    """The SFU runs and does not answer."""

    code = "sfu-silent"

    def sentence(self) -> str:
        return f"the SFU did not answer within {ANSWER_WITHIN_S:.0f} s"


class RealSfu:
    """`sluice sfu` as a process of its own, alone: no router, no Redis."""

    name = "sluice"
    version = ""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(24)
        self._logs = Path(tempfile.mkdtemp(prefix="sluice-capacity-"))
        self._program: Program | None = None
        self._http: aiohttp.ClientSession | None = None
        self._players: dict[int, SfuPlayer] = {}
        self._published: dict[int, list[str]] = {}
        self._scrapes: list[Scrape] = []

    @property
    def egress_mbps(self) -> float:
        """Sent between the last two looks."""
        first, last = self._scrapes[-2:]
        return 8e-6 * (last.counts["bytes_out"] - first.counts["bytes_out"]) / (last.at - first.at)

    async def start(self, *, core: int | None, profile: SrtpProfile) -> None:
        """Any profile is taken: the clients' offer decides. Raises `FleetFailed`, `Silent`, `PeerMissing`."""
        ports = Ports()
        ws_port, udp_port, http_port = ports.take(), ports.take(), ports.take()
        arguments = flags(
            sfu=NAME,
            ws_port=ws_port,
            udp_port=udp_port,
            http_port=http_port,
            announced_ip="127.0.0.1",
            routers=NO_ROUTER,
            max_players=MANY,
            log_level="WARNING",
        )
        kept = {key: value for key, value in os.environ.items() if not key.startswith("SLUICE_")}
        env = {**kept, "SLUICE_SECRET": self._secret}
        child = await start(NAME, python("sfu", *arguments), logs=self._logs, env=env)
        self._program = Program(
            name=NAME,
            child=child,
            http=f"http://127.0.0.1:{http_port}",
            ws=f"ws://127.0.0.1:{ws_port}/media",
        )
        if core is not None:  # before it has threads, which inherit it
            os.sched_setaffinity(child.pid, {core})
        self._http = aiohttp.ClientSession()
        await self._program.wait_ready(self._http)
        if DELAYS not in await self._metrics():
            raise PeerMissing(name="the compiled plane", remedy="see docs/performance.md on compiling it")
        put_plane_first(self._program.child.pid)

    async def publish(
        self, number: int, *, room: int, fingerprint: Fingerprint, tracks: Sequence[OfferedTrack]
    ) -> TransportAnswer:
        """A player of its own: one that talks and listens counts as two here."""
        player = await self._enter(number, room)
        named = [(f"{number}-{track.mid}", track) for track in tracks]
        self._published[number] = [name for name, _ in named]
        return await player.publish(named, fingerprint)

    async def subscribe(
        self, number: int, *, room: int, fingerprint: Fingerprint, publishers: Sequence[int]
    ) -> TransportAnswer:
        player = await self._enter(number, room)
        wanted = [name for publisher in publishers for name in self._published[publisher]]
        return await player.subscribe(wanted, fingerprint)

    async def leave(self, number: int) -> None:
        self._published.pop(number, None)
        await self._players.pop(number).close()

    async def stats(self) -> PeerStats:
        asked = time.monotonic()
        text = await self._metrics()
        scrape = read_metrics(text, at=(asked + time.monotonic()) / 2)
        self._scrapes.append(scrape)
        pid = self._running().child.pid
        user_s, sys_s = cpu_seconds(pid)
        return PeerStats(
            user_s=user_s,
            sys_s=sys_s,
            rss_bytes=resident_bytes(pid),
            packets_in=scrape.counts["packets_in"],
            forwarded=scrape.counts["forwarded"],
            datagrams=scrape.counts["packets_out"],
            delays=scrape.delays,
            drops=scrape.drops,
        )

    async def stop(self) -> None:
        program, self._program = self._program, None
        await asyncio.gather(*(player.drop() for player in self._players.values()))
        self._players.clear()
        if self._http is not None:
            await self._http.close()
        if program is not None:
            await program.child.stop(number=signal.SIGKILL, within_s=GOODBYE_S)  # no call depends on it
        with contextlib.suppress(OSError):
            shutil.rmtree(self._logs)

    async def _enter(self, number: int, room: int) -> SfuPlayer:
        player = self._players[number] = SfuPlayer(
            sfu=NAME, address=self._running().ws, secret=self._secret, player=f"p{number}", room=f"room-{room}"
        )
        await player.enter()
        return player

    async def _metrics(self) -> str:
        program = self._running()
        assert self._http is not None
        timeout = aiohttp.ClientTimeout(total=ANSWER_WITHIN_S)
        try:
            async with self._http.get(f"{program.http}/metrics", timeout=timeout) as response:
                return await response.text()
        except (aiohttp.ClientError, TimeoutError):
            if program.child.running:
                raise Silent from None
            detail = f"ended with status {program.child.exit_code}"
            raise FleetFailed(program=NAME, detail=detail, log=program.child.tail()) from None

    def _running(self) -> Program:
        assert self._program is not None
        return self._program


def put_plane_first(pid: int) -> None:
    """Under a real-time policy (`chrt -r`) give the thread that forwards one priority more than the SFU's others have.

    Equals never interrupt each other there, and a packet would wait for the end of whatever Python does, of a scrape
    for example. The usual policy lets who wakes go first, and needs no help.
    """
    policy = os.sched_getscheduler(pid)
    if policy not in (os.SCHED_RR, os.SCHED_FIFO):
        return
    above = os.sched_get_priority_max(policy)
    priority = min(above, os.sched_getparam(pid).sched_priority + 1)
    for task in Path(f"/proc/{pid}/task").iterdir():
        if (task / "comm").read_text().strip() == PLANE_THREAD:
            os.sched_setscheduler(int(task.name), policy, os.sched_param(priority))
