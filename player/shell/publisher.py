"""Sends a player's tracks: the same packets to every outlet, so that a move has two equal copies."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from player.core.own_tracks import OwnTracks
from player.core.track import HEADER_BYTES, OutgoingTrack, rtx_packet
from player.shell.transport import MediaTransport
from shared.errors import BadPacket
from shared.rtc import rtcp

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

    transport: MediaTransport
    sent: dict[OutgoingTrack, _Sent] = field(default_factory=dict)
    """A track begins at a key frame, and is absent before."""
    next_report: float = 0.0


class TrackPublisher:
    """A player's tracks. `cname` ties them together at the receivers."""

    def __init__(self, own: OwnTracks, *, cname: str) -> None:
        self._own = own
        self.cname = cname
        self.keyframe_requests = 0
        self.repairs = 0
        self._outlets: dict[MediaTransport, Outlet] = {}

    @property
    def tracks(self) -> tuple[OutgoingTrack, ...]:
        """What there is to offer and to send."""
        return self._own.all

    def remove(self, track: OutgoingTrack) -> None:
        """This track has ended."""
        for outlet in self._outlets.values():
            outlet.sent.pop(track, None)

    def attach(self, transport: MediaTransport) -> None:
        """Send to this transport as well, from now on; twice is once."""
        if transport not in self._outlets:
            self._outlets[transport] = Outlet(transport)
        for track in self.tracks:
            if track not in self._outlets[transport].sent:
                track.want_key()

    def detach(self, transport: MediaTransport) -> None:
        """Send there no longer."""
        self._outlets.pop(transport, None)

    def stop(self) -> None:
        """Send nothing more."""
        self._outlets.clear()

    def send(self, track: OutgoingTrack, packets: Sequence[bytes], *, key: bool, now: float) -> None:
        """Send a unit's packets everywhere; `key`: a copy may begin with it. `now` in monotonic seconds."""
        for outlet in self._outlets.values():
            if not outlet.transport.connected:
                continue
            sent = outlet.sent.get(track)
            if sent is None:
                if not key:
                    continue
                sent = outlet.sent[track] = _Sent()
            for packet in packets:
                outlet.transport.send(packet)
                sent.octets += len(packet) - HEADER_BYTES
            sent.packets += len(packets)
            if now >= outlet.next_report:
                outlet.next_report = now + REPORT_EVERY_S
                self._report(outlet, now)

    def fill(self, now: float) -> None:
        """Send what keeps tracks flowing whose source pauses; call it a few times a second."""
        for track in self.tracks:
            if self._outlets and (packets := track.filler(now)):
                self.send(track, packets, key=True, now=now)

    def _report(self, outlet: Outlet, now: float) -> None:
        """Sender reports tie the tracks' clocks together (RFC 3550 section 6.4.1)."""
        ntp = int((time.time() + _NTP_EPOCH_S) * 2**32)
        parts = [
            rtcp.sender_report(
                rtcp.SenderReport(
                    ssrc=track.numbers.ssrc,
                    ntp=ntp & 0xFFFFFFFFFFFFFFFF,
                    rtp_timestamp=track.timestamp_at(now),
                    packets=sent.packets,
                    octets=sent.octets,
                )
            )
            for track, sent in outlet.sent.items()
        ]
        parts.append(rtcp.source_description(next(iter(outlet.sent)).numbers.ssrc, self.cname))
        outlet.transport.send_rtcp(b"".join(parts))

    def feedback(self, transport: MediaTransport, compound: bytes) -> None:
        """RTCP from an SFU: lost packets are sent again there, and who can make a key frame is asked for one."""
        outlet = self._outlets.get(transport)
        if outlet is None:
            return
        for packet in _read(compound):
            if isinstance(packet, rtcp.Nack):
                self._repair(outlet, packet)
            elif isinstance(packet, rtcp.PictureLoss | rtcp.FullIntraRequest):
                self.keyframe_requests += 1
                self._want_key(packet.media if isinstance(packet.media, tuple) else (packet.media,))

    def _want_key(self, ssrcs: tuple[int, ...]) -> None:
        for track in self.tracks:
            if track.numbers.ssrc in ssrcs:
                track.want_key()

    def _repair(self, outlet: Outlet, nack: rtcp.Nack) -> None:
        track = next((track for track in self.tracks if track.numbers.ssrc == nack.media), None)
        sent = outlet.sent.get(track) if track is not None else None
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
