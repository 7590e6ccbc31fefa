"""The face of the media plane: control calls in, past facts and counters out.

The Python reference (`sfu.plane.reference`) and a compiled plane both stand behind it. Peers, producers and consumers
are named by ints that the caller chooses and does not reuse. All times are monotonic seconds, given as `now`.

A session goes `add_peer` when a peer connection is negotiated, `produce` and `consume` at any time after, `add_address`
with each authentic check, `set_keys` when DTLS has finished. `sfu.core.media.addresses` has the rule for which of its
addresses a peer is sent to.
Removing is safe at any moment and twice. Calls come from one thread at a time; a plane's own thread minds itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from sfu.core.media.addresses import Address as Address
from sfu.core.media.delivery import Delivered
from shared.rtc.srtp import SrtpKeys

Kind = Literal["audio", "video"]

DEFAULT_REMB_BPS = 2_500_000
"""Bandwidth allowed to a publisher [bit/s] unless its spec says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerCodec:
    """A codec of a producer, as negotiated with its publisher."""

    payload_type: int
    name: str
    """Encoding name in any case: `opus`, `VP8`, `H264`."""
    clock_rate: int
    """RTP clock [Hz]."""
    rtx_payload_type: int | None = None
    """The RTX payload type whose `apt` is this one (RFC 4588)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingSsrc:
    """An SSRC that the publisher's SDP told (`a=ssrc`), with its RTX partner (`a=ssrc-group:FID`)."""

    ssrc: int
    rtx_ssrc: int | None = None
    rid: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSpec:
    """A track that a peer publishes."""

    producer: int
    peer: int
    kind: Kind
    mid: str
    """Value of the MID header extension; empty when the peer sends none."""
    codecs: tuple[ProducerCodec, ...]
    extensions: Mapping[int, str] = field(default_factory=dict)
    """Negotiated header extensions: id -> URI. With that of transport-wide congestion control the peer gets feedback
    about all that it sends, whichever track it belongs to."""
    rids: tuple[str, ...] = ()
    """Simulcast layers in the order of `a=simulcast`, lowest quality first; empty without simulcast."""
    ssrcs: tuple[EncodingSsrc, ...] = ()
    """SSRCs known from SDP; browsers' simulcast tells none."""
    remb_bps: int = DEFAULT_REMB_BPS
    """What this track may use [bit/s]; REMB tells the publisher the sum over its video tracks."""
    nack: bool = True
    """Ask for lost packets of a video (`a=rtcp-fb nack`)."""
    parameter_sets: tuple[bytes, ...] = ()
    """H.264's SPS and PPS as the SDP told them, for a stream that does not bring its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSpec:
    """A producer's track on its way to one peer."""

    consumer: int
    peer: int
    producer: int
    ssrc: int
    """SSRC towards the peer; never used towards it before, nor is `rtx_ssrc`: draw new ones for each consumer."""
    payload_type: int
    codec: str
    """The one codec this consumer gets; packets of others are dropped. Any case."""
    rtx_ssrc: int | None = None
    """SSRC of retransmissions; None: lost packets are sent again as they were. Needs `rtx_payload_type`."""
    rtx_payload_type: int | None = None
    extensions: Mapping[str, int] = field(default_factory=dict)
    """Negotiated header extensions towards the peer: URI -> id. Others are dropped. Transport-wide sequence numbers are
    the plane's own, one count over all consumers of the peer; a video without RTX bears none, because its packets are
    sent again the same to the byte, and an audio that bears them is never sent again."""
    cname: str = ""
    """CNAME in sender reports: consumers that must play in sync share it."""

    @property
    def has_rtx(self) -> bool:
        """Lost packets are sent again as RTX."""
        return self.rtx_ssrc is not None and self.rtx_payload_type is not None

    @property
    def ssrcs(self) -> tuple[int, ...]:
        """All SSRCs it sends with."""
        return (self.ssrc,) if self.rtx_ssrc is None else (self.ssrc, self.rtx_ssrc)


@dataclass(frozen=True, slots=True)
class ProducerFlowing:
    """The first packet of a producer arrived; for video the first packet of a key frame that a decoder can begin with:
    in H.264 an SPS, or an IDR picture whose parameter sets are known. Once per producer."""

    producer: int


@dataclass(frozen=True, slots=True)
class ProducerSilent:
    """A flowing producer has sent nothing for `SILENT_AFTER_S`."""

    producer: int


@dataclass(frozen=True, slots=True)
class ProducerResumed:
    """A silent producer sends again."""

    producer: int


@dataclass(frozen=True, slots=True)
class ProducerEnded:
    """The publisher said BYE for every SSRC of a producer."""

    producer: int


@dataclass(frozen=True, slots=True)
class ConsumerFlowing:
    """The first packet of a consumer was sent. Once per consumer."""

    consumer: int


@dataclass(frozen=True, slots=True)
class LayerSwitched:
    """A consumer now gets another layer."""

    consumer: int
    rid: str


@dataclass(frozen=True, slots=True)
class PeerHeard:
    """The first authentic media packet (RTP or RTCP) of a peer arrived. Once per peer."""

    peer: int


@dataclass(frozen=True, slots=True)
class DeliveryReported:
    """One transport-cc feedback of a peer that `follow_delivery` was called for: what is new in it."""

    peer: int
    at: float
    """When it came."""
    packets: tuple[Delivered, ...]
    """In the order of their sending, at most the 4096 last sent."""


Event = (
    ProducerFlowing
    | ProducerSilent
    | ProducerResumed
    | ProducerEnded
    | ConsumerFlowing
    | LayerSwitched
    | PeerHeard
    | DeliveryReported
)

SILENT_AFTER_S = 3.0
"""Muted microphones with DTX still send about every 0.4 s; 3 s of nothing is silence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodingSnapshot:
    """One SSRC of a producer, counted since it was first seen; bytes are whole decrypted RTP packets."""

    rid: str
    ssrc: int
    packets: int
    bytes: int
    lost: int
    """Cumulative loss as told to the publisher, before any repair by RTX (RFC 4588 section 6.3)."""
    jitter_ms: float
    keyframes: int
    nacked: int
    """Packets asked for again, each counted once."""
    repaired: int
    """Packets that came by RTX and were still useful."""
    plis: int
    probes: int
    """RTX or padding packets that carried nothing new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerSnapshot:
    producer: int
    peer: int
    kind: Kind
    flowing: bool
    """Has had its first (key frame) packet and is not silent."""
    encodings: tuple[EncodingSnapshot, ...]
    consumers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSnapshot:
    consumer: int
    peer: int
    producer: int
    flowing: bool
    paused: bool
    rid: str
    """The layer it gets now; empty without simulcast or before the first packet."""
    packets: int
    bytes: int
    nacks: int
    """Sequence numbers the peer asked for."""
    resent: int
    unanswered: int
    """Asked for and no longer in the cache; not those that we are asking the publisher for ourselves."""
    plis: int
    fraction_lost: float
    """As the peer's last report said [0..1]."""
    rtt_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySnapshot:
    """What a peer's transport-cc feedback says of all that it was sent with transport-wide sequence numbers.

    Of `sent` the rest is on its way, or its feedback was lost. Bytes are whole RTP packets before SRTP.
    """

    sent: int
    feedbacks: int
    acknowledged: int
    acknowledged_bytes: int
    lost: int
    """Told lost and not arrived since."""
    receive_rate_bps: int | None
    """Of arrival, by the peer's clock, over the last half second or more that feedback covers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerSnapshot:
    peer: int
    packets_in: int
    bytes_in: int
    packets_out: int
    bytes_out: int
    last_heard: float | None
    """Monotonic seconds of the last authentic media packet."""
    feedbacks_sent: int = 0
    """Transport-cc feedback packets about what it publishes."""
    delivery: DeliverySnapshot | None = None
    """None before a consumer of it has negotiated transport-wide sequence numbers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneTotals:
    """Since the plane was made, closed peers included. Bytes are UDP payload on the wire."""

    packets_in: int = 0
    bytes_in: int = 0
    packets_out: int = 0
    bytes_out: int = 0
    forwarded: int = 0
    """RTP packets sent to consumers, resends included."""
    forwarded_bytes: int = 0
    nacks_sent: int = 0
    nacks_received: int = 0
    plis_sent: int = 0
    plis_received: int = 0
    rtx_received: int = 0
    resent: int = 0
    feedbacks_sent: int = 0
    """Transport-cc."""
    feedbacks_received: int = 0
    drops: Mapping[str, int] = field(default_factory=dict)
    """Packets dropped, by a reason of `DropReason`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaneSnapshot:
    totals: PlaneTotals
    peers: tuple[PeerSnapshot, ...]
    producers: tuple[ProducerSnapshot, ...]
    consumers: tuple[ConsumerSnapshot, ...]


class Plane(Protocol):
    """What the session code may ask of a media plane."""

    def add_peer(self, peer: int) -> None:
        """Make a peer known. Raises `ValueError` when the id is in use."""

    def set_keys(self, peer: int, keys: SrtpKeys, *, address: Address, now: float) -> None:
        """DTLS has finished, with a datagram from this address, which media is sent to from now on.

        A second call replaces the keys. Nothing happens when the peer is gone.
        """

    def add_address(self, peer: int, address: Address, *, nominated: bool, now: float) -> None:
        """An authentic check came from there: media is taken from this address too, and sent there once it has earned
        that. Nothing happens when another peer has just been seen there, or the peer is gone."""

    def peer_at(self, address: Address) -> int | None:
        """Whose address it is."""

    def address_of(self, peer: int) -> Address | None:
        """Where media is sent to; None when no address has earned it."""

    def remove_peer(self, peer: int) -> None:
        """Forget a peer, its producers (with their consumers) and its consumers."""

    def produce(self, spec: ProducerSpec, *, now: float) -> bool:
        """Expect a track. False when the peer is gone. Raises `ValueError` when the id is in use."""

    def close_producer(self, producer: int) -> None:
        """End a producer and every consumer of it."""

    def consume(self, spec: ConsumerSpec, *, now: float) -> bool:
        """Forward a producer to a peer, video from its next key frame, which is asked for.

        False when the peer or the producer is gone. Raises `ValueError` when the id is in use, or an SSRC has been used
        towards that peer. After either nothing has changed: SSRCs count as used once all checks have passed.
        """

    def close_consumer(self, consumer: int) -> None: ...

    def set_layer(self, consumer: int, rid: str | None, *, now: float) -> None:
        """Prefer a simulcast layer; None: the highest that flows. The switch comes with that layer's next key frame."""

    def pause(self, consumer: int, paused: bool, *, now: float) -> None:
        """Stop or go on; video goes on at a key frame, which is asked for."""

    def request_keyframe(self, producer: int, *, now: float) -> None:
        """Ask the publisher for a key frame of each layer in use, within the throttle."""

    def follow_delivery(self, peer: int, wanted: bool) -> None:
        """Tell `DeliveryReported` for each transport-cc feedback of a peer from now on, or no longer."""

    def handle(self, datagram: bytes, address: Address, *, now: float) -> None:
        """Take an SRTP or SRTCP datagram (first byte 128..191). Never raises: what can't be used is counted."""

    def tick(self, *, now: float) -> None:
        """Do what is due: reports, NACK and PLI retries, silence. Call it at `next_deadline()`."""

    def next_deadline(self) -> float | None:
        """When `tick` must be called next; None: nothing is waiting."""

    def events(self) -> list[Event]:
        """The facts since the last call, in order."""

    def snapshot(self) -> PlaneSnapshot:
        """All counters; cheap enough for once a second."""


@runtime_checkable
class SocketPlane(Plane, Protocol):
    """A plane that can own the socket: its thread reads, forwards and sends, and Python hears facts.

    Until `start` it is driven by `handle` and `tick` like any plane; after it those do nothing that is needed.
    """

    def start(self, fd: int) -> None:
        """Read and write this bound UDP socket from now on, in an own thread. Raises `OSError`.

        The socket stays the caller's: others may send on it, and it is closed after `stop`.
        """

    def stop(self) -> None:
        """End the thread; safe twice."""

    @property
    def gso(self) -> bool:
        """Whether runs of datagrams are sent as one (UDP GSO): as asked for before `start`, and as the kernel and the
        network device can afterwards. Once False it stays so."""

    def sending(self) -> tuple[int, int, int, list[tuple[int, int]]]:
        """`(sends, sendmmsg calls, wakes, delays)`: how well sends are batched, and the forwarding delay.

        It is from the kernel's receive time-stamp to the return of the send, `(upper bound [us], packets)` pairs.
        """

    @property
    def event_fd(self) -> int:
        """Readable when `datagrams` or `events` has something; -1 before `start`."""

    def streamed(self) -> list[tuple[bytes, Address]]:
        """What is to be sent over TCP, with its connection, in order."""

    def datagrams(self) -> list[tuple[bytes, Address]]:
        """What has arrived that is STUN or DTLS, with its source, in order; call `events` after it, each time."""
