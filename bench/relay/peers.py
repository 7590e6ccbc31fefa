"""What `sluice bench relay` needs of a media server, so that ours and others are measured by the same generator.

A publisher and a subscriber are two clients: a player that talks and listens has two connections, as in Sluice.
A run goes `start`, all `publish`, all `subscribe` (each followed by the client's ICE and DTLS with the
`TransportAnswer`), then media flows; `leave` comes at any moment, `stop` at the end.

The generator's clients are ICE controlling, DTLS active, have `LOCAL_UFRAG` and `LOCAL_PWD`, answer the server's checks
if it makes any, and send what `OfferedTrack` says with the header extensions below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import Literal, Protocol

from shared.errors import SluiceError
from shared.rtc.dtls import Fingerprint
from shared.rtc.srtp import SrtpProfile

LOCAL_UFRAG = "load"
LOCAL_PWD = "the-same-for-all-of-them"
"""Of every client of the generator."""

VIDEO_PAYLOAD_TYPE = 96
"""VP8."""

AUDIO_PAYLOAD_TYPE = 111
"""Opus."""

ABS_SEND_TIME_ID = 2
MID_ID = 4
"""Header extensions (RFC 8285) of every packet that publishers send."""

Address = tuple[str, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class OfferedTrack:
    """A track as its publisher's session description would say it."""

    mid: str
    kind: Literal["audio", "video"]
    ssrc: int

    @property
    def payload_type(self) -> int:
        return VIDEO_PAYLOAD_TYPE if self.kind == "video" else AUDIO_PAYLOAD_TYPE


@dataclass(frozen=True, kw_only=True, slots=True)
class TransportAnswer:
    """Whom a client shakes hands with, and where."""

    ufrag: str
    pwd: str
    fingerprint: Fingerprint
    address: Address
    restarted: Mapping[int, int] = field(default_factory=dict)
    """Streams a subscriber will get whose RTP timestamps begin at 0 with the first frame published: SSRC to the SSRC of
    the track. Those of others must be the published ones."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerStats:
    """Counters of the server's process since its start; what it does not count is empty or None."""

    user_s: float
    sys_s: float
    """CPU of the whole process (all threads; children too, if it works in those) [s]."""
    rss_bytes: int
    packets_in: int | None = None
    forwarded: int | None = None
    """RTP packets sent to subscribers; None: the generator's own count of received ones is taken."""
    datagrams: int | None = None
    sends: int | None = None
    """Runs of datagrams handed to the kernel, and the datagrams in them."""
    delays: Sequence[tuple[int, int]] = ()
    """`(upper bound [us], packets)` of the forwarding delay; empty: the generator's own measure is taken."""
    drops: Mapping[str, int] = field(default_factory=dict)


class Peer(Protocol):
    """A media server on this machine. Numbers of publishers and subscribers are the caller's, one space for both."""

    name: str
    version: str
    """The version of the server and of what it is made of, once it has started; empty: this project's own."""

    async def start(self, *, core: int | None, profile: SrtpProfile) -> None:
        """Run, pinned to a core unless None. Raises `PeerMissing` when it is not installed."""

    async def publish(
        self, number: int, *, room: int, fingerprint: Fingerprint, tracks: Sequence[OfferedTrack]
    ) -> TransportAnswer:
        """Expect a publisher who sends these tracks."""

    async def subscribe(
        self, number: int, *, room: int, fingerprint: Fingerprint, publishers: Sequence[int]
    ) -> TransportAnswer:
        """Expect a subscriber to all tracks of these publishers, who are connected by now."""

    async def leave(self, number: int) -> None:
        """Forget a publisher or subscriber."""

    async def stats(self) -> PeerStats: ...

    async def stop(self) -> None:
        """End the process; safe twice, and after a failed `start`."""


class PeerMissing(SluiceError):
    """A media server to compare with is not installed."""

    code = "peer-missing"

    name: str
    remedy: str

    def sentence(self) -> str:
        return f"{self.name} is not installed: {self.remedy}"


PEERS = {"janus": ("bench.janus.server", "JanusPeer", "apt-get install janus")}
"""Servers that `--peer` knows: module, class (called without arguments), how to install the server."""


def peer_named(name: str) -> Peer:
    """A server to compare with. Raises `PeerMissing` for a name that is not there."""
    if name not in PEERS:
        raise PeerMissing(name=name, remedy=f"`--peer` knows {', '.join(PEERS)}")
    module, made_by, remedy = PEERS[name]
    try:
        peer: Peer = getattr(import_module(module), made_by)()
    except ModuleNotFoundError as error:
        raise PeerMissing(name=name, remedy=f"{remedy} ({error})") from None
    return peer
