"""Sends a player's tracks: the same packets to every outlet, so that a move has two equal copies."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from client_sim.core.replay import Track, rtx_packet
from player.shell.transport import PeerTransport
from shared.errors import BadPacket
from shared.rtc import rtcp

MAX_LAG_S = 1.0
"""After a longer stall of this process units are skipped rather than sent in one burst."""
REPORT_EVERY_S = 1.0
_NTP_EPOCH_S = 2_208_988_800
"""Seconds from 1900 to 1970 (RFC 5905)."""


@dataclass(slots=True)
class _Sent:
    """What one outlet has had of one track."""

    packets: int = 0
    octets: int = 0
    repaired: int = 0


@dataclass(slots=True, eq=False)
class Outlet:
    """One SFU that gets the tracks."""

    transport: PeerTransport
    sent: dict[str, _Sent] = field(default_factory=dict)
    """By kind; a track begins at a key frame, and is absent before."""
    next_report: float = 0.0


class Publisher:
    """A player's tracks over time; runs on the pacer. `cname` ties its tracks together at the receivers."""

    def __init__(self, tracks: Sequence[Track], *, start: float, cname: str) -> None:
        self.tracks = tuple(tracks)
        self.cname = cname
        self.start = start
        self.keyframe_requests = 0
        self.repairs = 0
        self._next = [0 for _ in self.tracks]
        self._outlets: dict[PeerTransport, Outlet] = {}
        self._stopped = False

    def attach(self, transport: PeerTransport) -> None:
        """Send to this transport as well, from now on; twice is once."""
        self._outlets.setdefault(transport, Outlet(transport))

    def detach(self, transport: PeerTransport) -> None:
        """Send there no longer."""
        self._outlets.pop(transport, None)

    def stop(self) -> None:
        """Send nothing more."""
        self._stopped = True
        self._outlets.clear()

    def run(self, now: float) -> float | None:
        """Send all units that are due."""
        if self._stopped:
            return None
        for position, track in enumerate(self.tracks):
            unit = self._next[position]
            if now - self.start - track.due_at(unit) > MAX_LAG_S:
                unit = int((now - self.start) / track.unit_s)
            while self.start + track.due_at(unit) <= now:
                self._send(track, unit)
                unit += 1
            self._next[position] = unit
        for outlet in self._outlets.values():
            if now >= outlet.next_report and outlet.sent:
                outlet.next_report = now + REPORT_EVERY_S
                self._report(outlet, now)
        return self.start + min(track.due_at(unit) for track, unit in zip(self.tracks, self._next, strict=True))

    def _send(self, track: Track, unit: int) -> None:
        packets = track.unit(unit)
        for outlet in self._outlets.values():
            if not outlet.transport.connected:
                continue
            sent = outlet.sent.get(track.kind)
            if sent is None:
                if not track.is_key(unit):
                    continue
                sent = outlet.sent[track.kind] = _Sent()
            for packet in packets:
                outlet.transport.send(packet)
                sent.octets += len(packet) - 20
            sent.packets += len(packets)

    def _report(self, outlet: Outlet, now: float) -> None:
        """Sender reports tie the tracks' clocks together (RFC 3550 section 6.4.1)."""
        if not outlet.transport.connected:
            return
        ntp = int((time.time() + _NTP_EPOCH_S) * 2**32)
        parts: list[bytes] = []
        for track in self.tracks:
            sent = outlet.sent.get(track.kind)
            if sent is not None:
                report = rtcp.SenderReport(
                    ssrc=track.numbers.ssrc,
                    ntp=ntp & 0xFFFFFFFFFFFFFFFF,
                    rtp_timestamp=track.timestamp_at(now - self.start),
                    packets=sent.packets,
                    octets=sent.octets,
                )
                parts.append(rtcp.sender_report(report))
        parts.append(rtcp.source_description(self.tracks[0].numbers.ssrc, self.cname))
        outlet.transport.send_rtcp(b"".join(parts))

    def feedback(self, transport: PeerTransport, compound: bytes) -> None:
        """RTCP from an SFU: lost packets are sent again there; key frames can't be made on demand and are counted."""
        outlet = self._outlets.get(transport)
        if outlet is None:
            return
        for packet in _read(compound):
            if isinstance(packet, rtcp.Nack):
                self._repair(outlet, packet)
            elif isinstance(packet, rtcp.PictureLoss | rtcp.FullIntraRequest):
                self.keyframe_requests += 1

    def _repair(self, outlet: Outlet, nack: rtcp.Nack) -> None:
        track = next((track for track in self.tracks if track.numbers.ssrc == nack.media), None)
        sent = outlet.sent.get(track.kind) if track is not None else None
        if track is None or sent is None or track.kind != "video":
            return
        for sequence in nack.sequences:
            lost = track.repeat(sequence)
            if lost is not None:
                number = (track.numbers.sequence + sent.repaired) & 0xFFFF
                outlet.transport.send(rtx_packet(lost, ssrc=track.numbers.rtx_ssrc, sequence=number))
                sent.repaired += 1
                self.repairs += 1


def _read(compound: bytes) -> list[rtcp.RtcpPacket]:
    try:
        return rtcp.parse(compound)
    except BadPacket:
        return []
