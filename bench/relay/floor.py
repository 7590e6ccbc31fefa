"""What the kernel alone takes for a workload's sends: the yardstick for a figure from a slow or busy machine.

A process on the server's core sends the same runs of datagrams at the same times to the same addresses, plain bytes and
nothing else, and the generator receives them. What it spends per packet no server that sends this way can go below.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import socket
import subprocess
import sys
from typing import Any

from bench.generator.compiled import send_floor
from bench.machine import pinned
from bench.relay.load import FIRST_HOST, RelayLoad
from bench.relay.run import RunSettings
from bench.relay.workloads import Setup
from shared.host.child import python
from shared.rtc.srtp import SrtpProfile

FLOOR_S = 2.0
END_WITHIN_S = 30.0
_RTP_BYTES, _EXTENSION_BYTES = 12, 12
_TAG_BYTES = {SrtpProfile.AES128_CM_SHA1_80: 10}
"""Of GCM: 16."""


async def measure_floor(settings: RunSettings, *, gso: bool, seconds: float = FLOOR_S) -> float:
    """Microseconds of CPU per packet. `gso`: runs are sent as one."""
    setup = settings.workload.setup(settings.size)
    with pinned(settings.cores.generator):
        load = RelayLoad(hosts=len(setup.subscribers), watched=0, gro=settings.gro)
        try:
            told = await _ask_sender(
                {
                    "core": settings.cores.server,
                    "first_host": FIRST_HOST,
                    "port": load.address[1],
                    "streams": streams(setup, rng=random.Random(settings.seed)),
                    "seconds": seconds,
                    "gso": gso,
                    "overhead": _RTP_BYTES + _EXTENSION_BYTES + _TAG_BYTES.get(settings.profile, 16),
                }
            )
        finally:
            await load.close()
    cpu_s, packets = float(told["cpu_s"]), int(told["packets"])
    return 1e6 * cpu_s / max(1, packets)


def streams(setup: Setup, *, rng: random.Random) -> list[tuple[int, int, int, Any, list[int]]]:
    """What `send_floor` takes: each publisher's tracks, and who gets them."""
    audience: dict[int, list[int]] = {}
    for number, subscriber in enumerate(setup.subscribers):
        for publisher in subscriber.publishers:
            audience.setdefault(publisher, []).append(number)
    return [
        (media.interval_ns, int(rng.random() * media.interval_ns), media.ticks, media.frames, audience.get(place, []))
        for place, publisher in enumerate(setup.publishers)
        for media in publisher.media
    ]


async def _ask_sender(job: dict[str, Any]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *python("bench.relay.floor"), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        out, _ = await asyncio.wait_for(process.communicate(json.dumps(job).encode()), job["seconds"] + END_WITHIN_S)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError("the sender of the kernel's yardstick has failed")
    told: dict[str, Any] = json.loads(out)
    return told


def main() -> None:
    """`python -m bench.relay.floor`: a job on stdin, the result on stdout."""
    job = json.load(sys.stdin)
    if job["core"] is not None:
        os.sched_setaffinity(0, {job["core"]})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * 1024 * 1024)
        sock.bind(("127.0.0.1", 0))
        before = resource.getrusage(resource.RUSAGE_SELF)
        packets, sends, refused = send_floor(
            sock.fileno(),
            job["first_host"],
            job["port"],
            job["streams"],
            job["seconds"],
            gso=job["gso"],
            overhead=job["overhead"],
        )
        after = resource.getrusage(resource.RUSAGE_SELF)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps({"packets": packets, "sends": sends, "refused": refused, "cpu_s": cpu_s}))


if __name__ == "__main__":
    main()
