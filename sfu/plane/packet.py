"""One decrypted RTP packet with all that its consumers share, worked out once."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING

from shared.rtc import rtp
from shared.rtc.vp8 import Vp8Descriptor

if TYPE_CHECKING:
    from sfu.plane.encoding import Encoding

HOP_BY_HOP = frozenset(
    {
        rtp.MID_URI,
        rtp.RID_URI,
        rtp.REPAIRED_RID_URI,
        rtp.TRANSPORT_CC_URI,
        "urn:ietf:params:rtp-hdrext:toffset",
        "https://aomediacodec.github.io/av1-rtp-spec/#dependency-descriptor-rtp-header-extension",
        "http://www.webrtc.org/experiments/rtp-hdrext/video-layers-allocation00",
    }
)
"""Extensions that speak of the publisher's own transport, streams or layers: false on the next hop, so never copied."""


class MediaPacket:
    """Not to be changed once its encoding has looked at it, but for `block`'s cache."""

    __slots__ = (
        "_blocks",
        "_stamp",
        "arrived",
        "elements",
        "encoding",
        "index",
        "keyframe_start",
        "lead",
        "marker",
        "payload",
        "payload_type",
        "size",
        "timestamp",
        "vp8",
    )

    def __init__(self, encoding: Encoding, index: int, packet: bytes, header: rtp.RtpHeader, now: float) -> None:
        self.encoding = encoding
        self.index = index
        self.timestamp = header.timestamp
        self.marker = 0x80 if header.marker else 0
        self.payload_type = header.payload_type
        # Padding goes: its receiver would count it as media, and ours is another transport.
        self.payload = packet[header.payload_start : header.payload_end]
        self.elements = [
            (identifier, packet[start:end]) for identifier, start, end in rtp.walk_extensions(packet, header)
        ]
        self.size = len(packet)
        self.arrived = now
        self.keyframe_start = False
        self.vp8: Vp8Descriptor | None = None
        self.lead: MediaPacket | None = None
        """What a consumer that begins with this packet is sent before it."""
        self._stamp: float | None = None
        self._blocks: dict[ExtensionPlan, bytes] = {}

    def led_by(self, payload: bytes) -> None:
        """Make its `lead`: the same picture's, and not its end."""
        lead = self.lead = copy(self)
        lead.payload, lead.marker = payload, 0
        lead._blocks = {}

    def block(self, plan: ExtensionPlan, now: float) -> bytes:
        """Its extension block; stamped with the moment of its first sending, each time the same to the byte."""
        if self._stamp is None:
            self._stamp = now
        block = self._blocks.get(plan)
        if block is None:
            block = self._blocks[plan] = plan.encode(self, self._stamp)
        return block


class ExtensionPlan:
    """How header extensions of one producer look to consumers that negotiated the same ids."""

    __slots__ = ("_copied", "_stamped", "_transport_cc")

    def __init__(self, incoming: Mapping[int, str], outgoing: Mapping[str, int]) -> None:
        self._copied = {
            identifier: outgoing[uri]
            for identifier, uri in incoming.items()
            if uri in outgoing and uri not in HOP_BY_HOP and uri != rtp.ABS_SEND_TIME_URI
        }
        self._stamped = outgoing.get(rtp.ABS_SEND_TIME_URI)
        self._transport_cc = outgoing.get(rtp.TRANSPORT_CC_URI)

    @property
    def sequenced(self) -> bool:
        """Whether each packet needs a transport-wide sequence number of its own: see `with_sequence`."""
        return self._transport_cc is not None

    def encode(self, packet: MediaPacket, now: float) -> bytes:
        """The extension block for a packet sent at `now`; a transport-wide sequence number comes first in it, as 0."""
        copied = self._copied
        elements = [(self._transport_cc, b"\0\0")] if self._transport_cc is not None else []
        elements += [(copied[identifier], value) for identifier, value in packet.elements if identifier in copied]
        if self._stamped is not None:
            elements.append((self._stamped, rtp.abs_send_time(now)))
        return rtp.encode_extensions(elements)


def with_sequence(block: bytes, sequence: int) -> bytes:
    """A copy of the block of a plan that is `sequenced`, with the transport-wide sequence number of one packet."""
    at = 5 if block[0] == rtp.ONE_BYTE_PROFILE >> 8 else 6
    return block[:at] + sequence.to_bytes(2, "big") + block[at + 2 :]
