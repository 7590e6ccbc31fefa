"""A publisher and viewers at a plane over networks that turn bad, in virtual time: who asked for what, what came."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from client_sim.core.impairment import ImpairedPath, Impairment
from shared.rtc import rtcp, rtp
from tests.fakes.plane_rig import Rig, vp8_payload

FPS = 30
PACKETS_PER_FRAME = 4
PUBLISHER = 1
SSRC, RTX_SSRC = 10, 11
REPORT_S = 1.0
WARM_UP_S = 1.0
"""The networks are perfect for this long, so that everybody is seen and heard before they turn bad."""

TAIL_S = 1.0
"""Losses at the very end go unnoticed."""


@dataclass
class Viewer:
    """A receiver that asks for what it misses: after `patience_s`, and again each `again_s`."""

    peer: int
    up: ImpairedPath
    down: ImpairedPath
    patience_s: float
    again_s: float
    first: int | None = None
    """The first sequence number; the rest count from there, without wrapping."""
    highest: int = -1
    arrived: dict[int, float] = field(default_factory=dict)
    missing: dict[int, float] = field(default_factory=dict)
    """Number -> when to ask (again)."""
    asked: Counter[int] = field(default_factory=Counter)
    """What it asked for, as often as the SFU got to hear of it."""
    answers: Counter[int] = field(default_factory=Counter)
    """RTX packets that the SFU sent, by the number that they repair."""
    last_sr: tuple[int, float] | None = None
    frames: dict[int, dict[int, float]] = field(default_factory=dict)
    """Frame -> its part -> when that arrived."""

    def number(self, sequence: int) -> int:
        if self.first is None:
            self.first = sequence
        return (sequence - self.first + 0x8000 & 0xFFFF) - 0x8000 if self.highest < 0 else self._near(sequence)

    def _near(self, sequence: int) -> int:
        assert self.first is not None
        return self.highest + rtp.sequence_delta(sequence, (self.first + self.highest) & 0xFFFF)


class LossyCall:
    """`run` it for some seconds; each leg has its own paths, `up` towards the SFU."""

    def __init__(
        self,
        rig: Rig,
        *,
        publisher: tuple[Impairment, Impairment],
        viewers: list[tuple[Impairment, Impairment]],
        seed: int = 1,
        patience_s: float = 0.025,
        again_s: float = 0.12,
    ) -> None:
        self.rig = rig
        self.began = rig.now
        self.rng = random.Random(seed)
        self._turning: list[tuple[ImpairedPath, Impairment]] = []
        self.up, self.down = (self._path(impairment) for impairment in publisher)
        self.frames = 0
        self.keyframes = 0
        self.sent: dict[int, tuple[int, bytes, bool, int]] = {}
        """Sequence number -> timestamp, payload, marker, how often it was sent again."""
        self.sent_at: dict[int, float] = {}
        """Frame -> when."""
        self.plis = 0
        self._rtx_sequence = 0
        self._agenda: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._next_sequence = 65_000  # it wraps within the first seconds
        self._want_key = True
        self._until = 0.0
        rig.peer(PUBLISHER)
        rig.produce(1, PUBLISHER)
        self.viewers = []
        for peer, (up, down) in enumerate(viewers, 2):
            rig.peer(peer)
            rig.consume(peer, peer, 1)
            self.viewers.append(Viewer(peer, self._path(up), self._path(down), patience_s, again_s))
        self._seen = {viewer.peer: 0 for viewer in self.viewers}
        self._heard = dict.fromkeys([PUBLISHER, *self._seen], 0)

    def _path(self, impairment: Impairment) -> ImpairedPath:
        path = ImpairedPath(Impairment(), rng=random.Random(self.rng.random()))
        self._turning.append((path, impairment))
        return path

    def _turn_bad(self) -> None:
        for path, impairment in self._turning:
            path.impairment = impairment

    def run(self, seconds: float) -> None:
        """Publish for that long, and let everything arrive."""
        self._until = self.rig.now + seconds
        self._at(self.rig.now, self._frame)
        self._at(self.rig.now, self._sender_report)
        self._at(self.rig.now + WARM_UP_S, self._turn_bad)
        for viewer in self.viewers:
            self._at(self.rig.now + REPORT_S, lambda viewer=viewer: self._report(viewer))  # type: ignore[misc]
            self._at(self.rig.now, lambda viewer=viewer: self._ask(viewer))  # type: ignore[misc]
        while self._agenda and self._agenda[0][0] < self._until + 3.0:
            when, _, action = heapq.heappop(self._agenda)
            self.rig.run_until(max(when, self.rig.now))
            self._drain()
            action()
            self._drain()

    def _at(self, when: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._agenda, (when, next(self._order), action))

    def _send(self, path: ImpairedPath, size: int, action: Callable[[], None]) -> None:
        for when in path.take(size, now=self.rig.now):
            self._at(when, action)

    # -- publisher

    def _frame(self) -> None:
        if self.rig.now >= self._until:
            return
        number, key = self.frames, self._want_key
        self.frames += 1
        self.keyframes += key
        self._want_key = False
        self.sent_at[number] = self.rig.now
        for part in range(PACKETS_PER_FRAME):
            body = number.to_bytes(4, "big") + bytes((part,)) + bytes(900 + part)
            payload = vp8_payload(key=key, start=part == 0, picture_id=number & 0x7FFF, tl0=number & 0xFF, body=body)
            sequence, self._next_sequence = self._next_sequence, (self._next_sequence + 1) & 0xFFFF
            self.sent[sequence] = (number * 3000, payload, part == PACKETS_PER_FRAME - 1, 0)
            self._send(self.up, len(payload), lambda sequence=sequence: self._media(sequence))  # type: ignore[misc]
        self._at(self.began + self.frames / FPS, self._frame)

    def _sender_report(self) -> None:
        now = self.rig.now
        report = rtcp.SenderReport(
            ssrc=SSRC, ntp=int(now * 2**32), rtp_timestamp=int((now - self.began) * 90_000), packets=0, octets=0
        )
        compound = rtcp.sender_report(report)
        self._send(self.up, len(compound), lambda: self.rig.rtcp(PUBLISHER, compound))
        self._at(now + REPORT_S, self._sender_report)

    def _media(self, sequence: int) -> None:
        timestamp, payload, marker, _ = self.sent[sequence]
        self.rig.rtp(
            PUBLISHER, ssrc=SSRC, sequence=sequence, timestamp=timestamp, payload=payload, marker=marker, mid="1"
        )

    def _resend(self, sequence: int) -> None:
        timestamp, payload, marker, times = self.sent[sequence]
        self.sent[sequence] = (timestamp, payload, marker, times + 1)
        rtx, self._rtx_sequence = self._rtx_sequence, self._rtx_sequence + 1
        whole = sequence.to_bytes(2, "big") + payload

        def arrive() -> None:
            self.rig.rtp(
                PUBLISHER, ssrc=RTX_SSRC, sequence=rtx, timestamp=timestamp, payload=whole, payload_type=97,
                marker=marker, mid="1",
            )  # fmt: skip

        self._send(self.up, len(whole), arrive)

    def _publisher_hears(self, packet: rtcp.RtcpPacket) -> None:
        if isinstance(packet, rtcp.Nack):
            for sequence in packet.sequences:
                self._resend(sequence)
        elif isinstance(packet, rtcp.PictureLoss):
            self.plis += 1
            self._want_key = True

    # -- viewers

    def _viewer_gets(self, viewer: Viewer, header: rtp.RtpHeader, payload: bytes) -> None:
        if header.payload_type == 101:
            number, payload = viewer.number(int.from_bytes(payload[:2], "big")), payload[2:]
        else:
            number = viewer.number(header.sequence)
        now = self.rig.now
        for skipped in range(viewer.highest + 1, number):
            viewer.missing[skipped] = now + viewer.patience_s
        viewer.highest = max(viewer.highest, number)
        viewer.missing.pop(number, None)
        if number in viewer.arrived:
            return
        viewer.arrived[number] = now
        frame, part = int.from_bytes(payload[7:11], "big"), payload[11]
        viewer.frames.setdefault(frame, {})[part] = now

    def _ask(self, viewer: Viewer) -> None:
        now = self.rig.now
        due = [number for number, when in viewer.missing.items() if when <= now]
        for number in due:
            viewer.missing[number] = now + viewer.again_s
        if due:
            assert viewer.first is not None
            sequences = [(viewer.first + number) & 0xFFFF for number in due]
            nack = rtcp.nack(sender=viewer.peer, media=5000 + viewer.peer, sequences=sequences)

            def arrive() -> None:
                viewer.asked.update(due)
                self.rig.rtcp(viewer.peer, nack)

            self._send(viewer.up, len(nack), arrive)
        self._at(now + 0.005, lambda: self._ask(viewer))

    def _report(self, viewer: Viewer) -> None:
        if viewer.last_sr is not None:
            last_sr, at = viewer.last_sr
            block = rtcp.ReportBlock(
                ssrc=5000 + viewer.peer, fraction_lost=0, lost=0, highest=0, jitter=0,
                last_sr=last_sr, delay_since_sr=int((self.rig.now - at) * 65536),
            )  # fmt: skip
            compound = rtcp.receiver_report(viewer.peer, [block])
            self._send(viewer.up, len(compound), lambda: self.rig.rtcp(viewer.peer, compound))
        self._at(self.rig.now + REPORT_S, lambda: self._report(viewer))

    def _viewer_hears(self, viewer: Viewer, packet: rtcp.RtcpPacket) -> None:
        if isinstance(packet, rtcp.SenderReport):
            viewer.last_sr = (packet.ntp >> 16 & 0xFFFFFFFF, self.rig.now)

    # -- what the plane has sent

    def _drain(self) -> None:
        for viewer in self.viewers:
            new = self.rig.sent[viewer.peer][self._seen[viewer.peer] :]
            self._seen[viewer.peer] += len(new)
            for header, _, payload in new:
                if header.payload_type == 101 and viewer.first is not None:
                    viewer.answers[viewer.number(int.from_bytes(payload[:2], "big"))] += 1
                self._send(
                    viewer.down,
                    len(payload),
                    lambda header=header, payload=payload, viewer=viewer: self._viewer_gets(viewer, header, payload),  # type: ignore[misc]
                )
            self._feedback(viewer.peer, viewer.down, lambda packet, viewer=viewer: self._viewer_hears(viewer, packet))  # type: ignore[misc]
        self._feedback(PUBLISHER, self.down, self._publisher_hears)

    def _feedback(self, peer: int, path: ImpairedPath, hear: Callable[[rtcp.RtcpPacket], None]) -> None:
        new = self.rig.feedback[peer][self._heard[peer] :]
        self._heard[peer] += len(new)
        for packet in new:
            self._send(path, 60, lambda packet=packet: hear(packet))  # type: ignore[misc]

    # -- what came of it

    def delays(self, viewer: Viewer) -> list[float]:
        """For each frame of the bad time: from sending to its last part's arrival [s]; inf: incomplete."""
        return [
            max(parts.values()) - self.sent_at[frame] if len(parts) == PACKETS_PER_FRAME else float("inf")
            for frame in range(int(WARM_UP_S * FPS), self.frames - int(TAIL_S * FPS))
            for parts in [viewer.frames.get(frame, {})]
        ]
