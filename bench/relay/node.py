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

from bench.machine import socket_drops
from bench.relay.peers import ABS_SEND_TIME_ID, AUDIO_PAYLOAD_TYPE, MID_ID, VIDEO_PAYLOAD_TYPE
from bench.stats import resident_bytes
from sfu.plane.api import ConsumerSpec, ProducerCodec, ProducerSpec
from sfu.plane.choice import PlaneKind, make_plane
from sfu.plane.reference import ReferencePlane
from sfu.shell.peer import PeerTransport
from sfu.shell.udp import MediaPort
from shared.rtc import rtp

HOST = "127.0.0.1"
VIDEO = ProducerCodec(
    payload_type=VIDEO_PAYLOAD_TYPE, name="VP8", clock_rate=90_000, rtx_payload_type=VIDEO_PAYLOAD_TYPE + 1
)
AUDIO = ProducerCodec(payload_type=AUDIO_PAYLOAD_TYPE, name="opus", clock_rate=48_000)
IN_EXTENSIONS = {ABS_SEND_TIME_ID: rtp.ABS_SEND_TIME_URI, MID_ID: rtp.MID_URI}
OUT_EXTENSIONS = {rtp.ABS_SEND_TIME_URI: ABS_SEND_TIME_ID, rtp.MID_URI: MID_ID}
FIRST_SSRC, FIRST_RTX_SSRC = 0x10000, 0x1000000
"""Of the first consumer; the others' follow."""


class Node:
    """Answers commands."""

    def __init__(self, *, plane: PlaneKind, gso: bool) -> None:
        self.port = MediaPort.open(
            HOST, 0, on_events=lambda events: None, make_plane=lambda send: make_plane(send, kind=plane, gso=gso)
        )
        self._transports: dict[int, PeerTransport] = {}
        self._produced: dict[int, list[ProducerSpec]] = {}
        self._producers = 0
        self._consumers = 0

    async def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        match command.pop("do"):
            case "publish":
                return self._publish(**command)
            case "subscribe":
                return self._subscribe(**command)
            case "leave":
                await self._transports.pop(command["number"]).close()
                self._produced.pop(command["number"], None)
                return {}
            case "stats":
                return self._stats()
            case other:
                raise ValueError(other)

    def _publish(self, number: int, fingerprint: list[str], tracks: list[dict[str, Any]]) -> dict[str, Any]:
        transport = self._transport(number, fingerprint)
        specs = self._produced[number] = []
        for track in tracks:
            self._producers += 1
            video = track["kind"] == "video"
            spec = ProducerSpec(
                producer=self._producers,
                peer=transport.peer,
                kind="video" if video else "audio",
                mid=track["mid"],
                codecs=(VIDEO if video else AUDIO,),
                extensions=IN_EXTENSIONS,
                nack=False,
            )
            self.port.plane.produce(spec, now=self.port.now)
            specs.append(spec)
        return self._description(transport)

    def _subscribe(self, number: int, fingerprint: list[str], publishers: list[int]) -> dict[str, Any]:
        transport = self._transport(number, fingerprint)
        for spec in [spec for publisher in publishers for spec in self._produced[publisher]]:
            self._consumers += 1
            video = spec.kind == "video"
            consumer = ConsumerSpec(
                consumer=self._consumers,
                peer=transport.peer,
                producer=spec.producer,
                ssrc=FIRST_SSRC + self._consumers,
                payload_type=(VIDEO if video else AUDIO).payload_type,
                codec=(VIDEO if video else AUDIO).name,
                rtx_ssrc=FIRST_RTX_SSRC + self._consumers if video else None,
                rtx_payload_type=VIDEO.rtx_payload_type if video else None,
                extensions=OUT_EXTENSIONS,
            )
            self.port.plane.consume(consumer, now=self.port.now)
        return self._description(transport)

    def _transport(self, number: int, fingerprint: list[str]) -> PeerTransport:
        transport = PeerTransport(self.port, on_connected=lambda: None, on_ended=lambda end, detail: None)
        self._transports[number] = transport
        transport.start([(fingerprint[0], fingerprint[1])], "active")
        return transport

    def _description(self, transport: PeerTransport) -> dict[str, Any]:
        credentials = transport.credentials
        return {"ufrag": credentials.ufrag, "pwd": credentials.pwd, "fingerprint": list(transport.fingerprint)}

    def _stats(self) -> dict[str, Any]:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        totals = self.port.plane.snapshot().totals
        sending = getattr(self.port.plane, "sending", None)
        sends, _, _, delays = sending() if sending else (totals.packets_out, 0, 0, [])
        return {
            "user_s": usage.ru_utime,
            "sys_s": usage.ru_stime,
            "rss_bytes": resident_bytes(os.getpid()),
            "packets_in": totals.packets_in,
            "forwarded": totals.forwarded,
            "datagrams": totals.packets_out,
            "sends": sends,
            "delays": delays,
            "drops": dict(totals.drops) | {"socket-full": socket_drops(self.port.address[1], host=HOST)},
        }


async def serve(plane: PlaneKind, gso: bool) -> None:
    """Until stdin ends."""
    node = Node(plane=plane, gso=gso)
    loop = asyncio.get_running_loop()
    lines = asyncio.StreamReader(limit=1 << 20)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    loaded = PlaneKind.REFERENCE if isinstance(node.port.plane, ReferencePlane) else PlaneKind.COMPILED
    print(json.dumps({"port": node.port.address[1], "plane": loaded}), flush=True)
    while line := await lines.readline():
        print(json.dumps(await node.answer(json.loads(line))), flush=True)


def main() -> None:
    """`python -m bench.relay.node KIND GSO CORE`."""
    kind, gso, core = sys.argv[1:]
    if core != "-":
        os.sched_setaffinity(0, {int(core)})
    uvloop.run(serve(PlaneKind(kind), gso == "1"))


if __name__ == "__main__":
    main()
