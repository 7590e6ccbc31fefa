"""`sluice bench relay`, one measurement: start a server, run a workload on it, check what came, stop it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bench.machine import pinned
from bench.relay.figures import RelayFigures, figures, loss
from bench.relay.load import FIRST_HOST, LoadClient
from bench.relay.peers import Peer
from bench.relay.run import Run, RunSettings, Say
from bench.relay.workloads import Course
from shared.errors import SluiceError
from shared.rtc import rtp

WARM_UP_JOINS = 2
"""`churn` warms up with so many times the joins that are measured: an interpreter's memory takes a while to settle."""


class BadContent(SluiceError):
    """What a subscriber decrypted is not what was published."""

    code = "bad-content"

    detail: str

    def sentence(self) -> str:
        return f"the server changed the media: {self.detail}"


async def measure(settings: RunSettings, peer: Peer, *, say: Say) -> RelayFigures:
    """Start the server, run the workload, and stop the server. Raises what joining raises, and `BadContent`."""
    await peer.start(core=settings.cores.server, profile=settings.profile)
    try:
        with pinned(settings.cores.generator):
            run = Run(settings, peer, say)
            try:
                return await _measure(run)
            finally:
                await run.load.close()
    finally:
        await peer.stop()


async def _measure(run: Run) -> RelayFigures:
    settings = run.settings
    empty = await run.peer.stats()
    await run.publish()
    await run.subscribe()
    run.load.go()
    await asyncio.sleep(settings.warm_up_s)
    watched = await run.peer.stats()
    warm = 0
    if settings.workload.course is Course.CHURN:
        warm = settings.joins * WARM_UP_JOINS // (1 + WARM_UP_JOINS)
    await run.churn(range(warm))
    before = await run.quiet()
    first = await run.read()
    run.load.go()
    match settings.workload.course:
        case Course.STEADY:
            await asyncio.sleep(settings.seconds)
        case Course.STORM:
            await run.storm()
        case Course.CHURN:
            await run.churn(range(warm, settings.joins))
    last = await run.read()
    after = await run.quiet()
    told = figures(
        first,
        last,
        workload=settings.workload.name,
        server=run.peer.name,
        profile=settings.profile.value,
        subscribers=run.watching,
        lost=loss(before, after, run.wanted()),
        rss_bytes=watched.rss_bytes - empty.rss_bytes,
        verified=verify(run.load.clients[FIRST_HOST]),
    )
    told = replace(told, version=run.peer.version)
    joined = settings.joins - warm
    if settings.workload.course is not Course.STEADY:
        told = replace(told, joins=joined, joins_per_s=joined / told.seconds)
    if settings.workload.course is Course.CHURN:
        told = replace(told, rss_kib_warm=first.peer.rss_bytes / 1024, rss_kib_end=last.peer.rss_bytes / 1024)
    return told


def verify(client: LoadClient) -> int:
    """How many packets a watched subscriber decrypted. Raises `BadContent` unless they are what was published.

    They must be in order; some may be missing: `loss` counts those.
    """
    newest: dict[int, int] = {}
    if client.refused:
        raise BadContent(detail=f"{client.refused} packets could not be decrypted")
    for packet in client.received:
        header = rtp.parse(packet)
        payload = packet[header.payload_start : header.payload_end]
        number = int.from_bytes(payload[-4:], "big")
        if payload[-8:-4] != b"body":
            raise BadContent(detail="a packet's content has changed")
        if number <= newest.get(header.ssrc, -1):
            raise BadContent(detail="packets are out of order")
        newest[header.ssrc] = number
    return len(client.received)
