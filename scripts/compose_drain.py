"""Drains one SFU of a composed fleet with `docker stop`, while bots talk, and reports what they saw and heard.

The bots run in a container on the host's network, from the image under test. Used by `scripts/test-compose.sh`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import time
from typing import Any

import aiohttp
import msgspec

from cli.output import out, step
from cli.report import report_table
from localfleet.errors import FleetFailed
from rehearse.core.crowd_view import CrowdView
from rehearse.core.ending import Ending
from rehearse.core.gaps import Bounds
from rehearse.core.rehearsal import RehearsalKind, Scale, summarize
from rehearse.shell.crowd import gaps_in
from rehearse.shell.stall import StallMeter
from shared.errors import SluiceError
from shared.http_client import get_json
from shared.records import DrainReport

ROUTERS = {"router-1": "http://127.0.0.1:8080", "router-2": "http://127.0.0.1:8082"}
ROUTER_SOCKETS = ("ws://127.0.0.1:7001", "ws://127.0.0.1:7002")
SFUS = ("sfu-1", "sfu-2", "sfu-3")
UP_WITHIN_S = 120.0
CALM_S = 3.0
THROUGH_DOCKER = Bounds(audio_ms=100.0, video_frames=3.0)
"""Each packet passes Docker's proxy process twice, which has to wait for a core like every process."""


class Bots:
    """Bots in a container, whose output is read."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.view = CrowdView()
        self.report: dict[str, Any] = {}
        self.reader = asyncio.create_task(self._read())

    async def tell(self, cmd: str) -> None:
        """Give them a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(msgspec.json.encode({"cmd": cmd}) + b"\n")
        await self.process.stdin.drain()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            with contextlib.suppress(msgspec.DecodeError):
                said = msgspec.json.decode(line, type=dict[str, Any])
                if said.get("event") == "final-report":
                    self.report = said["report"]
                self.view.handle(said)


async def docker(*arguments: str) -> str:
    """What a docker command prints. Raises `FleetFailed` with its error."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("docker", *arguments, stdout=pipe, stderr=pipe)
    printed, complaint = await process.communicate()
    if process.returncode:
        raise FleetFailed(program="docker", detail=f"{arguments[0]} failed: {complaint.decode().strip()}")
    return printed.decode().strip()


async def container(project: str, service: str) -> str:
    """Id of a service's container; the same label in compose 1.29 and v2."""
    labels = {"com.docker.compose.project": project, "com.docker.compose.service": service}
    filters = [part for key, value in labels.items() for part in ("--filter", f"label={key}={value}")]
    return (await docker("ps", "-aq", *filters)).split("\n")[0]


async def start_bots(image: str, secret: str, bots: int) -> Bots:
    """Bots in a room of their own."""
    flags = [part for url in ROUTER_SOCKETS for part in ("--routers", url)]
    process = await asyncio.create_subprocess_exec(
        *("docker", "run", "--rm", "-i", "--network", "host", "-e", "SLUICE_SECRET", image, "bots", "--events"),
        *("--room", "measured", "--bots", str(bots), "--seed", "2", *flags),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=4 << 20,
        env={"SLUICE_SECRET": secret, "PATH": "/usr/local/bin:/usr/bin:/bin"},
    )
    return Bots(process)


async def fleet_is_up(session: aiohttp.ClientSession) -> bool:
    """Both routers would place players on all three SFUs."""
    for url in ROUTERS.values():
        answer = await get_json(session, f"{url}/api/sfus")
        if {row["sfu"] for row in (answer or {}).get("sfus", []) if row["placeable"]} != set(SFUS):
            return False
    return True


async def drain_report(session: aiohttp.ClientSession, sfu: str) -> DrainReport | None:
    """What the SFU said of its drain."""
    for _ in range(50):
        answer = await get_json(session, f"{ROUTERS['router-1']}/api/drains")
        for row in (answer or {}).get("drains", []):
            if row["sfu"] == sfu:
                return msgspec.convert(row, DrainReport)
        await asyncio.sleep(0.1)
    return None


async def run(project: str, image: str, secret: str, size: int) -> bool:
    """The whole test; True when no player was cut."""
    began = time.monotonic()
    async with aiohttp.ClientSession() as session:
        while not await fleet_is_up(session):
            if time.monotonic() - began > UP_WITHIN_S:
                raise FleetFailed(program="the composed fleet", detail=f"is not up after {UP_WITHIN_S:.0f} s")
            await asyncio.sleep(0.5)
        step("two routers see three SFUs")
        bots = await start_bots(image, secret, size)
        while not bots.view.all_hear(size):
            if time.monotonic() - began > 2 * UP_WITHIN_S or bots.process.returncode is not None:
                raise FleetFailed(program="bots", detail=f"do not hear each other: {bots.view.missing(size)}")
            await asyncio.sleep(0.2)
        step(f"{size} bots hear each other")
        await asyncio.sleep(CALM_S)
        await bots.tell("mark")
        sfu = max(SFUS, key=lambda name: len(bots.view.on(name)))
        ending = Ending(sfu=sfu, on_it=frozenset(bots.view.on(sfu)), began=time.monotonic())
        bots.view.watch(ending)
        name = await container(project, sfu)
        step(f"docker stop {sfu}, which {len(ending.on_it)} bots publish to")
        async with StallMeter() as stall:
            # Without -t, so that the compose file's stop_grace_period counts.
            await docker("stop", name)
            ending.ended = time.monotonic()
            await asyncio.sleep(CALM_S)
        ending.exit_code = int(await docker("inspect", "-f", "{{.State.ExitCode}}", name))
        ending.report = await drain_report(session, sfu)
        await bots.tell("stop")
        await asyncio.wait_for(bots.process.wait(), 30)
        await bots.reader
    report = summarize(
        RehearsalKind.DRAIN,
        [ending],
        gaps=gaps_in(bots.report),
        failures=bots.view.failures,
        scale=Scale(bots=size, rooms=1, sfus=3, routers=2, seed=2, redis_server="compose"),
        bounds=THROUGH_DOCKER,
        stall_ms=stall.worst_ms,
        took_s=time.monotonic() - began,
    )
    out.print(report_table(report))
    return report.passed


def main() -> int:
    """The script."""
    parser = argparse.ArgumentParser()
    for name in ("project", "image", "secret"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--bots", type=int, default=6)
    given = parser.parse_args()
    try:
        return 0 if asyncio.run(run(given.project, given.image, given.secret, given.bots)) else 1
    except SluiceError as error:
        print(f"test-compose: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
