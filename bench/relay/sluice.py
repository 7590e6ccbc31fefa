"""Our own node behind `bench.peers.Peer`: a process that runs `bench.relay.node`."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from bench.relay.peers import Address, OfferedTrack, PeerMissing, PeerStats, TransportAnswer
from shared.host.child import python
from shared.rtc.dtls import Fingerprint
from shared.rtc.srtp import SrtpProfile

ANSWER_WITHIN_S = 60.0
END_WITHIN_S = 10.0


class SluicePeer:
    """One SFU's media port; `plane` is a `PlaneKind`."""

    name = "sluice"
    version = ""

    def __init__(self, *, plane: str = "compiled", gso: bool = True) -> None:
        self._plane = plane
        self._gso = gso
        self._process: asyncio.subprocess.Process | None = None
        self._address: Address = ("127.0.0.1", 0)

    async def start(self, *, core: int | None, profile: SrtpProfile) -> None:
        """Any profile is taken: the clients' offer decides. Raises `PeerMissing` when another plane is all there is."""
        pinned = "-" if core is None else str(core)
        self._process = await asyncio.create_subprocess_exec(
            *python("bench.relay.node", self._plane, "1" if self._gso else "0", pinned),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            limit=1 << 22,
        )
        told = await self._answer()
        if told["plane"] != self._plane:
            raise PeerMissing(name=f"the {self._plane} plane", remedy="see docs/performance.md on compiling it")
        self._address = ("127.0.0.1", told["port"])

    async def publish(
        self, number: int, *, room: int, fingerprint: Fingerprint, tracks: Sequence[OfferedTrack]
    ) -> TransportAnswer:
        told = [asdict(track) for track in tracks]
        return self._description(await self._ask(do="publish", number=number, fingerprint=fingerprint, tracks=told))

    async def subscribe(
        self, number: int, *, room: int, fingerprint: Fingerprint, publishers: Sequence[int]
    ) -> TransportAnswer:
        asked = self._ask(do="subscribe", number=number, fingerprint=fingerprint, publishers=list(publishers))
        return self._description(await asked)

    async def leave(self, number: int) -> None:
        await self._ask(do="leave", number=number)

    async def stats(self) -> PeerStats:
        return PeerStats(**await self._ask(do="stats"))

    async def stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), END_WITHIN_S)
        if process.returncode is None:
            process.kill()
            await process.wait()

    def _description(self, told: dict[str, Any]) -> TransportAnswer:
        return TransportAnswer(
            ufrag=told["ufrag"], pwd=told["pwd"], fingerprint=Fingerprint(*told["fingerprint"]), address=self._address
        )

    async def _ask(self, **command: Any) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        return await self._answer()

    async def _answer(self) -> dict[str, Any]:
        """Commands are asked one at a time."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), ANSWER_WITHIN_S)
        if not line:
            raise RuntimeError("the measured process has ended")
        answer: dict[str, Any] = json.loads(line)
        return answer
