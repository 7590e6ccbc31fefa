"""How an SFU comes up (A5): its milestones, what its probe call sends, why one fails, and when the next is due."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

import msgspec

from sfu.plane.api import ConsumerSpec, EncodingSsrc, ProducerCodec, ProducerSpec
from shared.errors import SluiceError
from shared.records import Milestones
from shared.rtc import rtp

FIRST_DELAY_S = 1.0
MAX_DELAY_S = 30.0
"""A wrong port map is not corrected within seconds; an operator's correction is noticed within half a minute."""

OPUS = ProducerCodec(payload_type=111, name="opus", clock_rate=48_000)
PACKET_TICKS = 960
"""20 ms of Opus."""


class ProbeFailure(StrEnum):
    """At which step a probe call failed. A metric label, and what `SfuState.probe_failure` says."""

    ADDRESS = "address"
    """The announced address can't even be sent to."""
    NO_ANSWER = "no-answer"
    """No authentic answer to a connectivity check: wrong address or port map, a firewall, or another host there."""
    DTLS = "dtls"
    """Checks pass, the handshake does not."""
    NOT_FORWARDED = "not-forwarded"
    """Connected, but the packet sent did not come back through the plane."""
    INTERNAL = "internal"
    """A fault of our own."""


class ProbeFailed(SluiceError):
    """A probe call failed."""

    def __init__(self, failure: ProbeFailure, detail: str = "") -> None:
        super().__init__()
        self.failure = failure
        self.code = failure.value
        self.detail = detail

    def sentence(self) -> str:
        return f"probe call failed ({self.code}){': ' + self.detail if self.detail else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class ProbeTrack:
    """The one track of a probe call: its packets, and what the plane is told of it."""

    producer: int
    consumer: int
    ssrc: int
    forwarded_ssrc: int
    payload: bytes
    """Random: what comes back can be recognised as this call's."""

    @classmethod
    def draw(cls, *, producer: int, consumer: int, rng: random.Random) -> ProbeTrack:
        """A new one."""
        ssrc, forwarded = rng.sample(range(1, 2**32), 2)
        return cls(producer=producer, consumer=consumer, ssrc=ssrc, forwarded_ssrc=forwarded, payload=rng.randbytes(32))

    def produced_by(self, peer: int) -> ProducerSpec:
        """It comes from this peer."""
        ssrcs = (EncodingSsrc(ssrc=self.ssrc),)
        return ProducerSpec(producer=self.producer, peer=peer, kind="audio", mid="", codecs=(OPUS,), ssrcs=ssrcs)

    def consumed_by(self, peer: int) -> ConsumerSpec:
        """It goes to this one."""
        return ConsumerSpec(
            consumer=self.consumer, peer=peer, producer=self.producer, ssrc=self.forwarded_ssrc,
            payload_type=OPUS.payload_type, codec=OPUS.name, cname="probe",
        )  # fmt: skip

    def packet(self, number: int) -> bytes:
        """The packet of this number, from 0."""
        return rtp.build(
            payload_type=OPUS.payload_type, sequence=number & 0xFFFF, timestamp=number * PACKET_TICKS & 0xFFFFFFFF,
            ssrc=self.ssrc, payload=self.payload,
        )  # fmt: skip

    def is_forwarded(self, packet: bytes) -> bool:
        """True for one of its packets after the plane has rewritten it. Raises `BadPacket` for what is no RTP."""
        header = rtp.parse(packet)
        payload = packet[header.payload_start : header.payload_end]
        return header.ssrc == self.forwarded_ssrc and payload == self.payload


def retry_delay_s(attempt: int, *, rng: random.Random) -> float:
    """Seconds to wait after the `attempt`th failure in a row (from 0): a doubling bound, its upper half drawn."""
    bound = min(MAX_DELAY_S, FIRST_DELAY_S * 2 ** min(attempt, 10))
    return rng.uniform(bound / 2, bound)


class ComingUp:
    """The milestones, each reached once, and what is in the way."""

    def __init__(self) -> None:
        self.reached = Milestones()
        self.probe_failure = ""
        """Why the last probe call that failed did, while there is an address that has not proved itself."""

    @property
    def warmed_up(self) -> bool:
        """A first packet has been forwarded."""
        return self.reached.first_packet_s is not None

    def reach(self, milestone: str, *, age_s: float) -> bool:
        """A field of `Milestones` is reached at this age of the process; False when it was before."""
        if getattr(self.reached, milestone) is not None:
            return False
        self.reached = msgspec.structs.replace(self.reached, **{milestone: round(age_s, 3)})
        return True
