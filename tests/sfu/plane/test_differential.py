"""Whatever the network and the layers do: what viewers decrypt is what was published, and numbers tell one story."""

from __future__ import annotations

import contextlib
import itertools
import random

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import BadPacket
from shared.rtc import rtcp, rtp, vp8
from tests.budget import examples
from tests.fakes.plane_rig import Rig, Seen, vp8_payload

RIDS = ("l", "m", "h")
SSRC = {"l": 100, "m": 200, "h": 300}
PACKETS_PER_FRAME = 3
FRAME_S = 1 / 30


class Publisher:
    """Sends frames of three packets in every layer and answers key frame requests, over a lossy, reordering way."""

    def __init__(self, rig: Rig, rng: random.Random, *, loss: float, reorder: float) -> None:
        self.rig, self.rng, self.loss, self.reorder = rig, rng, loss, reorder
        # Near the wrap of everything, so that every example crosses it.
        self.sequence = {rid: 65_530 - 40 * number for number, rid in enumerate(RIDS)}
        self.base = {rid: 0xFFFF_0000 + 12_345 * number for number, rid in enumerate(RIDS)}
        self.picture = {rid: 0x7FF8 + number for number, rid in enumerate(RIDS)}
        self.frames = 0
        self.answered = 0
        self.published: dict[bytes, tuple[str, int, int]] = {}
        """Body -> (rid, sequence, timestamp); bodies are unique."""
        self._held: list[tuple[str, dict[str, object]]] = []

    def frame(self) -> None:
        wanted = self._wanted()
        for rid in RIDS:
            key = self.frames == 0 or SSRC[rid] in wanted
            for part in range(PACKETS_PER_FRAME):
                self._packet(rid, key=key, part=part)
            self.picture[rid] += 1
        self.frames += 1
        self._release()

    def _wanted(self) -> set[int]:
        asked = self.rig.of(1, rtcp.PictureLoss)
        fresh = asked[self.answered :]
        self.answered = len(asked)
        return {packet.media for packet in fresh if isinstance(packet, rtcp.PictureLoss)}

    def _packet(self, rid: str, *, key: bool, part: int) -> None:
        body = f"{rid}-{self.frames}-{part}".encode()
        timestamp = (self.base[rid] + self.frames * 3000) & 0xFFFFFFFF
        self.published[body] = (rid, self.sequence[rid], timestamp)
        what = {
            "ssrc": SSRC[rid],
            "sequence": self.sequence[rid],
            "timestamp": timestamp,
            "payload": vp8_payload(
                key=key, start=part == 0, picture_id=self.picture[rid] & 0x7FFF, tl0=self.picture[rid], body=body
            ),
            "marker": part == PACKETS_PER_FRAME - 1,
            "mid": "1",
            "rid": rid,
        }
        self.sequence[rid] += 1
        # The first frame always arrives in order, so that each example has something to look at.
        chance = self.rng.random() if self.frames else 1.0
        if chance < self.loss:
            return
        if chance < self.loss + self.reorder:
            self._held.append((rid, what))
        else:
            self.rig.rtp(1, **what)  # type: ignore[arg-type]

    def _release(self) -> None:
        held, self._held = self._held, []
        self.rng.shuffle(held)
        for _, what in held:
            self.rig.rtp(1, **what)  # type: ignore[arg-type]


def body_of(payload: bytes) -> bytes:
    return payload[vp8.parse(payload).length + 1 :]


def media(seen: list[Seen], ssrc: int) -> list[Seen]:
    return [entry for entry in seen if entry[0].ssrc == ssrc]


def check_story(publisher: Publisher, seen: list[Seen]) -> None:
    """Each output number once; in their order, each stretch of one layer has the input's own distances."""
    origins: dict[int, tuple[str, int, int]] = {}
    by_number: dict[int, Seen] = {}
    highest = 0x10000 + seen[0][0].sequence
    for entry in seen:
        number = highest + rtp.sequence_delta(entry[0].sequence, highest & 0xFFFF)
        highest = max(highest, number)
        assert number not in by_number, "a number was used twice"
        by_number[number] = entry
        origins[number] = publisher.published[body_of(entry[2])]
    order = sorted(by_number)
    for before, after in itertools.pairwise(order):
        (rid, sequence, stamp), (next_rid, next_sequence, next_stamp) = origins[before], origins[after]
        old, new = by_number[before], by_number[after]
        old_vp8, new_vp8 = vp8.parse(old[2]), vp8.parse(new[2])
        moved = rtp.timestamp_delta(new[0].timestamp, old[0].timestamp)
        if rid == next_rid and after - before == next_sequence - sequence:
            assert moved == rtp.timestamp_delta(next_stamp, stamp)
            frames = round(moved / 3000)
            assert (new_vp8.picture_id - old_vp8.picture_id) & 0x7FFF == frames
            assert (new_vp8.tl0 - old_vp8.tl0) & 0xFF == frames & 0xFF
        else:
            assert after - before == 1, "a switch leaves no gap"
            assert new_vp8.keyframe_start
            assert 0 < moved < 90_000
            assert 0 < (new_vp8.picture_id - old_vp8.picture_id) & 0x7FFF < 64


actions = st.lists(
    st.sampled_from(["frame", "frame", "frame", "l", "m", "h", "auto", "pli", "pause", "resume"]), max_size=60
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=actions,
    seed=st.integers(0, 1 << 32),
    loss=st.sampled_from([0.0, 0.02, 0.2]),
    reorder=st.sampled_from([0.0, 0.05, 0.3]),
)
def test_viewers_get_what_was_published_in_one_continuous_story(
    steps: list[str], seed: int, loss: float, reorder: float
) -> None:
    rig = Rig(seed=seed)
    for peer in (1, 2, 3):
        rig.peer(peer)
    rig.produce(1, 1, rids=RIDS)
    rig.consume(1, 2, 1)
    rig.consume(2, 3, 1)
    publisher = Publisher(rig, random.Random(seed), loss=loss, reorder=reorder)
    publisher.frame()
    for step in [*steps, "resume", "frame"]:
        match step:
            case "frame":
                rig.run_until(rig.now + FRAME_S)
                publisher.frame()
            case "pli":
                rig.rtcp(2, rtcp.picture_loss(sender=1, media=5001))
            case "pause" | "resume":
                rig.plane.pause(1, step == "pause", now=rig.now)
            case "auto":
                rig.plane.set_layer(1, None, now=rig.now)
            case rid:
                rig.plane.set_layer(1, rid, now=rig.now)
        rig.collect()
    for peer, ssrc in ((2, 5001), (3, 5002)):
        seen = media(rig.sent[peer], ssrc)
        assert seen
        for header, _, payload in seen:
            rid, _, _ = publisher.published[body_of(payload)]
            assert rid in RIDS
            assert header.payload_type == 100
        check_story(publisher, seen)


@settings(max_examples=examples(30), deadline=None)
@given(seed=st.integers(0, 1 << 32), loss=st.sampled_from([0.05, 0.3]))
def test_viewer_repairs_its_own_losses_by_nack(seed: int, loss: float) -> None:
    rig, rng = Rig(seed=seed), random.Random(seed)
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1)
    rig.consume(1, 2, 1)
    for number in range(120):
        rig.run_until(rig.now + 0.01)
        payload = vp8_payload(key=number == 0, picture_id=number, tl0=number, body=f"{number}".encode())
        rig.rtp(1, ssrc=10, sequence=65_500 + number, timestamp=number * 900, payload=payload, mid="1")
    sent = media(rig.sent[2], 5001)
    lost = [entry for entry in sent if rng.random() < loss]
    rig.run_until(rig.now + 1.0)
    rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[header.sequence for header, _, _ in lost]))
    repaired = {payload[:2]: (header.timestamp, payload[2:]) for header, _, payload in media(rig.sent[2], 6001)}
    assert repaired == {header.sequence.to_bytes(2, "big"): (header.timestamp, payload) for header, _, payload in lost}


@settings(max_examples=examples(60), deadline=None)
@given(datagrams=st.lists(st.binary(max_size=80), max_size=20), packets=st.lists(st.binary(min_size=12, max_size=80)))
def test_nothing_a_peer_sends_raises(datagrams: list[bytes], packets: list[bytes]) -> None:
    rig = Rig()
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1, rids=("l", "h"))
    rig.consume(1, 2, 1)
    session = rig._sessions[1]
    for datagram in datagrams:
        rig.plane.handle(datagram, rig.address(1), now=rig.now)
    protected: list[bytes] = []
    for packet in packets:
        for head in (b"\x80\x60", b"\x90\xe0", b"\x81\xcd", b"\x81\xce", b"\x81\xc8"):
            body = head + packet[2:]
            protect = session.protect_rtcp if body[1] >= 192 and body[1] < 224 else session.protect
            # Our own client's SRTP refuses some of these before they are sent.
            with contextlib.suppress(BadPacket):
                protected.append(protect(body))
    for datagram in protected:
        rig.datagram(1, datagram)
    rig.run_until(rig.now + 5.0)
