"""The measured half of `sluice bench relay`: an SFU's media port in a process of its own, told what to do line by line.

Each line on stdin is a JSON command, each line on stdout its answer. Everything that costs per packet is what an SFU
runs; only rooms and websockets are left out.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import sys
from typing import Any

import uvloop

from bench.stats import resident_bytes
from sfu.plane.api import Codec, ConsumerSpec, ProducerSpec
from sfu.plane.choice import PlaneKind, make_plane
from sfu.shell.peer import PeerTransport
from sfu.shell.udp import MediaPort
from shared.rtc import rtp

VIDEO = Codec(payload_type=96, name="VP8", clock_rate=90_000, rtx_payload_type=97)
AUDIO = Codec(payload_type=111, name="opus", clock_rate=48_000)
IN_EXTENSIONS = {2: rtp.ABS_SEND_TIME_URI, 4: rtp.MID_URI}
OUT_EXTENSIONS = {rtp.ABS_SEND_TIME_URI: 2, rtp.MID_URI: 4}


class Node:
    """Answers commands."""

    def __init__(self, *, plane: PlaneKind, gso: bool) -> None:
        self.port = MediaPort.open(
            "127.0.0.1", 0, on_events=lambda events: None, make_plane=lambda send: make_plane(send, kind=plane, gso=gso)
        )
        self.peers: dict[int, PeerTransport] = {}
        self.connected = 0
        self.ended = 0

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        match command.pop("do"):
            case "peer":
                return self._peer(**command)
            case "produce":
                return self._produce(**command)
            case "consume":
                return self._consume(**command)
            case "stats":
                return self._stats()
            case other:
                raise ValueError(other)

    def _peer(self, fingerprint: list[str]) -> dict[str, Any]:
        transport = PeerTransport(self.port, on_connected=self._connected, on_ended=self._ended)
        self.peers[transport.peer] = transport
        transport.start([(fingerprint[0], fingerprint[1])], "active")
        credentials = transport.credentials
        return {
            "peer": transport.peer,
            "ufrag": credentials.ufrag,
            "pwd": credentials.pwd,
            "fingerprint": list(transport.fingerprint),
        }

    def _connected(self) -> None:
        self.connected += 1

    def _ended(self, end: object, detail: str) -> None:
        self.ended += 1

    def _produce(self, producer: int, peer: int, kind: str) -> dict[str, Any]:
        spec = ProducerSpec(
            producer=producer,
            peer=peer,
            kind="video" if kind == "video" else "audio",
            mid=str(producer),
            codecs=(VIDEO if kind == "video" else AUDIO,),
            extensions=IN_EXTENSIONS,
            nack=False,
        )
        return {"good": self.port.plane.produce(spec, now=self.port.now)}

    def _consume(self, consumer: int, peer: int, producer: int, kind: str) -> dict[str, Any]:
        video = kind == "video"
        spec = ConsumerSpec(
            consumer=consumer,
            peer=peer,
            producer=producer,
            ssrc=0x10000 + consumer,
            payload_type=96 if video else 111,
            codec="VP8" if video else "opus",
            rtx_ssrc=0x1000000 + consumer if video else None,
            rtx_payload_type=97 if video else None,
            extensions=OUT_EXTENSIONS,
        )
        return {"good": self.port.plane.consume(spec, now=self.port.now)}

    def _stats(self) -> dict[str, Any]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        snapshot = self.port.plane.snapshot()
        sending = getattr(self.port.plane, "sending", None)
        sends, calls, wakes, delays = sending() if sending else (snapshot.totals.packets_out, 0, 0, [])
        return {
            "connected": self.connected,
            "ended": self.ended,
            "user_s": usage.ru_utime,
            "sys_s": usage.ru_stime,
            "rss": resident_bytes(os.getpid()),
            "forwarded": snapshot.totals.forwarded,
            "packets_in": snapshot.totals.packets_in,
            "packets_out": snapshot.totals.packets_out,
            "drops": dict(snapshot.totals.drops),
            "sends": sends,
            "calls": calls,
            "wakes": wakes,
            "delays": delays,
        }


async def serve(plane: PlaneKind, gso: bool) -> None:
    """Until stdin ends."""
    node = Node(plane=plane, gso=gso)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    print(json.dumps({"port": node.port.address[1]}), flush=True)
    while line := await lines.readline():
        print(json.dumps(node.answer(json.loads(line))), flush=True)


def main() -> None:
    """`python -m bench.relay_node KIND GSO CORE`."""
    kind, gso, core = sys.argv[1:]
    if core != "-":
        os.sched_setaffinity(0, {int(core)})
    uvloop.run(serve(PlaneKind(kind), gso == "1"))


if __name__ == "__main__":
    main()
