"""`sluice bench relay`: what forwarding costs with real ICE, DTLS and SRTP, SFU and load each on its own core."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from cyclopts import App, Parameter

from bench.relay_load import Client, Load
from bench.relay_workloads import WORKLOADS, Publisher, Workload
from shared.rtc import rtp
from shared.rtc.srtp import SrtpProfile

JOIN_AT_ONCE = 16
"""Handshakes under way at a time."""

WARM_UP_S = 1.5
app = App(name="relay", help="CPU per forwarded packet, delay and loss of the data plane.")


@dataclass(frozen=True, kw_only=True, slots=True)
class RelayFigures:
    """What one run measured. Keys are what `--json` prints."""

    workload: str
    subscribers: int
    profile: str
    plane: str
    packets_in_per_s: float
    packets_out_per_s: float
    loss: float
    """Share of the packets that should have come and did not, by the receivers' own sequence numbers."""
    cpu_us_per_packet: float
    """CPU of the whole SFU process (user and system) per forwarded packet."""
    cpu_us_user: float
    cpu_us_sys: float
    packets_per_send: float
    delay_ms_p50: float
    """From the kernel's receive time-stamp to the return of the send."""
    delay_ms_p99: float
    rss_kib_per_subscriber: float
    generator_core_share: float
    verified: int
    """Packets decrypted by the subscriber that is looked at closely, with their content and order checked."""
    drops: dict[str, int] = field(default_factory=dict)


class NodeProcess:
    """The measured process."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def ask(self, **command: Any) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), 60)
        if not line:
            raise RuntimeError("the measured process has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer


@asynccontextmanager
async def node_process(*, plane: str, gso: bool, core: str) -> AsyncIterator[tuple[NodeProcess, int]]:
    """A node, and its UDP port; it ends with the block."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "bench.relay_node",
        plane,
        "1" if gso else "0",
        core,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        limit=1 << 22,
    )
    node = NodeProcess(process)
    try:
        yield node, (await node.answer())["port"]
    finally:
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), 10)
        if process.returncode is None:
            process.kill()


@app.default
def relay(
    workload: str = "fanout",
    *,
    subscribers: int = 200,
    seconds: float = 8.0,
    profile: str = "gcm",
    plane: str = "compiled",
    gso: bool = True,
    json_: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Measure one workload. `profile` is `gcm` or `cm`; SFU and generator share two cores, each pinned to its own."""
    if workload not in WORKLOADS:
        print(f"no workload {workload!r}: there are {', '.join(WORKLOADS)}")
        return 2
    figures = asyncio.run(
        measure(WORKLOADS[workload], subscribers=subscribers, seconds=seconds, profile=profile, plane=plane, gso=gso)
    )
    if json_:
        print(json.dumps(asdict(figures)))
    else:
        for name, value in asdict(figures).items():
            print(f"{name:24} {value:.4g}" if isinstance(value, float) else f"{name:24} {value}")
    return 0


async def measure(
    workload: Workload, *, subscribers: int, seconds: float, profile: str, plane: str, gso: bool
) -> RelayFigures:
    """Start a node, join everybody, run the workload, and read both sides' counters."""
    cores = sorted(os.sched_getaffinity(0))
    split = len(cores) > 1
    async with node_process(plane=plane, gso=gso, core=str(cores[0]) if split else "-") as (node, port):
        if split:
            os.sched_setaffinity(0, {cores[1]})
        setup = workload.setup(subscribers)
        load = Load(("127.0.0.1", port), hosts=setup.subscribers, watched=1)
        profiles = (SrtpProfile.AES128_CM_SHA1_80,) if profile == "cm" else (SrtpProfile.AEAD_AES_128_GCM,)
        before_join = await node.ask(do="stats")
        try:
            clients = await join(node, load, setup.subscribers + setup.extra_publishers, profiles)
            publishers = await wire(node, setup.publishers(clients), setup.consumes(clients))
            tasks = [asyncio.create_task(publisher.run()) for publisher in publishers]
            tasks.append(asyncio.create_task(load.keep_consent()))
            await asyncio.sleep(WARM_UP_S)
            started, ours = time.monotonic(), time.process_time()
            first, flows_before = await node.ask(do="stats"), load.sink.flows()
            await asyncio.sleep(seconds)
            last, flows_after = await node.ask(do="stats"), load.sink.flows()
            elapsed, ours = time.monotonic() - started, time.process_time() - ours
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await asyncio.sleep(0.3)
            verified = verify(load.clients[min(load.clients)])
        finally:
            load.close()
            os.sched_setaffinity(0, cores)
    rss = (last["rss"] - before_join["rss"]) / 1024 / max(1, setup.subscribers)
    return figures(
        workload.name,
        setup.subscribers,
        profile,
        plane,
        first,
        last,
        elapsed,
        ours,
        loss(flows_before, flows_after),
        rss,
        verified,
    )


async def join(node: NodeProcess, load: Load, count: int, profiles: tuple[SrtpProfile, ...]) -> list[Client]:
    clients = [load.client(number, profiles) for number in range(count)]
    for start in range(0, count, JOIN_AT_ONCE):
        group = clients[start : start + JOIN_AT_ONCE]
        answers = [await node.ask(do="peer", fingerprint=list(client.dtls_fingerprint)) for client in group]
        await asyncio.gather(*(client.connect(answer) for client, answer in zip(group, answers, strict=True)))
    return clients


async def wire(
    node: NodeProcess, publishers: list[Publisher], consumes: list[tuple[Client, int, str]]
) -> list[Publisher]:
    for publisher in publishers:
        for track, kind in publisher.tracks():
            await node.ask(do="produce", producer=int(track.mid), peer=publisher.client.peer, kind=kind)
    for consumer, (client, producer, kind) in enumerate(consumes):
        await node.ask(do="consume", consumer=consumer, peer=client.peer, producer=producer, kind=kind)
    return publishers


def loss(before: Sequence[tuple[int, ...]], after: Sequence[tuple[int, ...]]) -> float:
    """Of the streams that flowed at both readings."""
    start = {flow[:2]: flow for flow in before}
    expected = got = 0
    for flow in after:
        earlier = start.get(flow[:2])
        if earlier is not None:
            expected += flow[4] - earlier[4]
            got += flow[2] - earlier[2]
    return 1 - got / expected if expected else 1.0


def verify(client: Client) -> int:
    """Raise `AssertionError` unless what the subscriber decrypted is what was published, in order; loss is counted by
    `loss`, and where the generator itself is too slow there may be some."""
    newest: dict[int, int] = {}
    for packet in client.received:
        header = rtp.parse(packet)
        payload = packet[header.payload_start : header.payload_end]
        assert payload[-8:-4] == b"body", "the content has changed"
        number = int.from_bytes(payload[-4:], "big")
        if header.ssrc in newest:
            assert number > newest[header.ssrc], "packets are out of order"
        newest[header.ssrc] = number
    return len(client.received)


def quantile(first: list[list[int]], last: list[list[int]], share: float) -> float:
    """Milliseconds, from two readings of the histogram."""
    earlier: dict[int, int] = {reading[0]: reading[1] for reading in first}
    counts = [(bound, count - earlier.get(bound, 0)) for bound, count in last]
    total, seen = sum(count for _, count in counts), 0
    for bound, count in counts:
        seen += count
        if seen >= share * total:
            return bound / 1000
    return 0.0


def figures(
    name: str,
    subscribers: int,
    profile: str,
    plane: str,
    first: dict[str, Any],
    last: dict[str, Any],
    elapsed: float,
    ours: float,
    lost: float,
    rss: float,
    verified: int,
) -> RelayFigures:
    forwarded = last["forwarded"] - first["forwarded"]
    user, system = (1e6 * (last[key] - first[key]) / max(1, forwarded) for key in ("user_s", "sys_s"))
    return RelayFigures(
        workload=name,
        subscribers=subscribers,
        profile=profile,
        plane=plane,
        packets_in_per_s=(last["packets_in"] - first["packets_in"]) / elapsed,
        packets_out_per_s=forwarded / elapsed,
        loss=lost,
        cpu_us_per_packet=user + system,
        cpu_us_user=user,
        cpu_us_sys=system,
        packets_per_send=(last["packets_out"] - first["packets_out"]) / max(1, last["sends"] - first["sends"]),
        delay_ms_p50=quantile(first["delays"], last["delays"], 0.5),
        delay_ms_p99=quantile(first["delays"], last["delays"], 0.99),
        rss_kib_per_subscriber=rss,
        generator_core_share=ours / elapsed,
        verified=verified,
        drops=last["drops"],
    )
