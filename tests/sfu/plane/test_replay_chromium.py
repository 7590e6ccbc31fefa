"""Eleven seconds of a real Chromium's simulcast through the plane: three layers, RTX probes, MID and RID that stop."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from sfu.plane.api import LayerSwitched, ProducerFlowing
from shared.rtc import rtcp, rtp, vp8
from tests.fakes.plane_rig import Rig, vp8_payload

TRACE = Path(__file__).parents[2] / "data" / "chromium-simulcast-trace.csv"
MEDIA_RIDS = {"2": "l", "4": "m", "5": "h"}
RTX_RIDS = {"1": "h", "3": "l"}
"""Which layer each RTX stream of the trace repairs, as its MID and RRID said."""

ANNOUNCED = 18
"""Packets of each SSRC that carry MID and RID, at the least seen (18 to 50)."""


@dataclass(frozen=True)
class Row:
    at: float
    stream: str
    payload_type: int
    timestamp: int
    sequence: int
    marker: bool
    size: int


def rows() -> Iterator[Row]:
    with TRACE.open() as file:
        for row in csv.DictReader(file):
            yield Row(
                at=int(row["t_us"]) / 1e6,
                stream=row["stream"],
                payload_type=int(row["payload_type"]),
                timestamp=int(row["rtp_timestamp"]),
                sequence=int(row["sequence"]),
                marker=row["marker"] == "1",
                size=int(row["packet_bytes"]) - int(row["header_bytes"]),
            )


class Replay:
    """Sends the trace's packets with bodies that name them; its pictures are told apart by timestamp."""

    def __init__(self) -> None:
        self.rig = Rig()
        for peer in (1, 2, 3):
            self.rig.peer(peer)
        self.rig.produce(1, 1, rids=("l", "m", "h"))
        self.rig.produce(2, 1, kind="audio")
        self.rig.consume(1, 2, 1)
        self.rig.consume(2, 3, 1)
        self.rig.consume(3, 3, 2, codec="opus")
        self.rig.plane.set_layer(2, "l", now=self.rig.now)
        self.count: Counter[str] = Counter()
        self.pictures: dict[str, int] = {}
        self.last_stamp: dict[str, int] = {}
        self.asked: set[int] = set()
        self.answered = 0

    def run(self) -> None:
        start = self.rig.now
        for row in rows():
            self.rig.run_until(start + row.at)
            self._send(row)

    def _send(self, row: Row) -> None:
        self.count[row.stream] += 1
        announced = self.count[row.stream] <= ANNOUNCED
        common = {"ssrc": 1000 + int(row.stream), "sequence": row.sequence, "timestamp": row.timestamp}
        body = bytes(max(0, row.size - 7))
        if row.stream == "0":
            payload = f"{row.sequence}".encode().ljust(row.size, b" ")
            self.rig.rtp(1, **common, payload=payload, payload_type=111, mid="2" if announced else "")
        elif row.stream in RTX_RIDS:
            # The trace does not tell original numbers: probes repeat what has been, here always packet 0.
            rrid = RTX_RIDS[row.stream] if announced else ""
            self.rig.rtp(
                1, **common, payload=bytes(2) + body, payload_type=97, mid="1" if rrid else "", repaired_rid=rrid
            )
        else:
            self._video(row, MEDIA_RIDS[row.stream], common, body, announced=announced)

    def _video(self, row: Row, rid: str, common: dict[str, int], body: bytes, *, announced: bool) -> None:
        begins = self.last_stamp.get(rid) != row.timestamp
        if begins:
            self.last_stamp[rid] = row.timestamp
            self.pictures[rid] = self.pictures.get(rid, -1) + 1
            self._listen()
        key = begins and (self.pictures[rid] == 0 or common["ssrc"] in self.asked)
        if key:
            self.asked.discard(common["ssrc"])
        picture = self.pictures[rid]
        payload = vp8_payload(key=key, start=begins, picture_id=picture, tl0=picture, body=body)
        self.rig.rtp(
            1, **common, payload=payload, marker=row.marker, mid="1" if announced else "", rid=rid if announced else ""
        )

    def _listen(self) -> None:
        asked = self.rig.of(1, rtcp.PictureLoss)
        self.asked |= {packet.media for packet in asked[self.answered :] if isinstance(packet, rtcp.PictureLoss)}
        self.answered = len(asked)


@pytest.fixture(scope="module")
def replay(plane_kind: str) -> Replay:
    replay = Replay()
    replay.run()
    return replay


def test_every_stream_finds_its_layer(replay: Replay) -> None:
    assert replay.rig.drops("unknown-ssrc") == 0
    snapshot = replay.rig.plane.snapshot()
    packets = {e.rid: e.packets for e in snapshot.producers[0].encodings}
    assert packets == {"l": replay.count["2"], "m": replay.count["4"], "h": replay.count["5"]}
    assert [encoding.lost for encoding in snapshot.producers[0].encodings] == [0, 0, 0]
    assert ProducerFlowing(1) in replay.rig.events
    assert ProducerFlowing(2) in replay.rig.events


def test_probes_are_counted_and_go_nowhere(replay: Replay) -> None:
    assert replay.rig.plane.snapshot().totals.rtx_received == replay.count["1"] + replay.count["3"] == 211
    assert replay.rig.drops("probe") == 211
    assert replay.rig.plane.snapshot().totals.nacks_sent == 0


def test_viewer_climbs_to_the_highest_layer_and_stays(replay: Replay) -> None:
    switches = [e.rid for e in replay.rig.events if isinstance(e, LayerSwitched) and e.consumer == 1]
    assert switches == ["l", "m", "h"]
    assert replay.rig.plane.snapshot().consumers[0].rid == "h"


def test_each_viewer_sees_one_continuous_stream(replay: Replay) -> None:
    for peer, ssrc in ((2, 5001), (3, 5002), (3, 5003)):
        seen = [entry for entry in replay.rig.sent[peer] if entry[0].ssrc == ssrc]
        for (before, _, a), (after, _, b) in itertools.pairwise(seen):
            assert rtp.sequence_delta(after.sequence, before.sequence) == 1
            assert 0 <= rtp.timestamp_delta(after.timestamp, before.timestamp) < 90_000
            if ssrc != 5003:
                old, new = vp8.parse(a), vp8.parse(b)
                assert (new.picture_id - old.picture_id) & 0x7FFF in (0, 1)
    preferred_low = [entry for entry in replay.rig.sent[3] if entry[0].ssrc == 5002]
    assert len(preferred_low) == replay.count["2"]
    assert len([entry for entry in replay.rig.sent[3] if entry[0].ssrc == 5003]) == replay.count["0"]


def test_key_frames_are_asked_for_sparingly(replay: Replay) -> None:
    assert len(replay.rig.of(1, rtcp.PictureLoss)) <= 3
