"""What a session description says, as far as Sluice cares: frozen values, no text (RFC 8866, RFC 8829)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple


class Direction(StrEnum):
    """Which way media flows on an m-line, from the side of its writer."""

    SENDRECV = "sendrecv"
    SENDONLY = "sendonly"
    RECVONLY = "recvonly"
    INACTIVE = "inactive"

    @property
    def sends(self) -> bool:
        """True when the writer may send."""
        return self in (Direction.SENDRECV, Direction.SENDONLY)

    @property
    def receives(self) -> bool:
        """True when the writer is ready to receive."""
        return self in (Direction.SENDRECV, Direction.RECVONLY)


class ExtensionUri(StrEnum):
    """RTP header extensions that Sluice knows by name (RFC 8285)."""

    MID = "urn:ietf:params:rtp-hdrext:sdes:mid"
    RID = "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id"
    REPAIRED_RID = "urn:ietf:params:rtp-hdrext:sdes:repaired-rtp-stream-id"
    AUDIO_LEVEL = "urn:ietf:params:rtp-hdrext:ssrc-audio-level"
    ABS_SEND_TIME = "http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time"
    VIDEO_ORIENTATION = "urn:3gpp:video-orientation"
    TRANSPORT_CC = "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01"


class Fingerprint(NamedTuple):
    """The hash of a certificate; algorithm in lower case, value in upper-case hex with colons (RFC 8122)."""

    algorithm: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Codec:
    """A payload type and what it stands for; `name` keeps the writer's case, compare with `is_`."""

    pt: int
    name: str
    clock: int
    """Clock rate [Hz]."""
    channels: int = 1
    fmtp: str = ""
    """Format parameters as written."""
    feedback: tuple[str, ...] = ()
    """`nack`, `nack pli`, `ccm fir`, `goog-remb`, ..."""

    def is_(self, name: str) -> bool:
        """True for this codec name, in any case (RFC 4855 section 3)."""
        return self.name.lower() == name.lower()

    @property
    def parameters(self) -> dict[str, str]:
        """`fmtp` as a mapping with lower-case names; a parameter without a value maps to an empty string."""
        pairs = (part.partition("=") for part in self.fmtp.split(";") if part.strip())
        return {name.strip().lower(): value.strip() for name, _, value in pairs}

    @property
    def apt(self) -> int | None:
        """The payload type an RTX codec repairs (RFC 4588); None for anything else."""
        value = self.parameters.get("apt", "") if self.is_("rtx") else ""
        return int(value) if value.isascii() and value.isdigit() and len(value) <= 3 else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Extension:
    """A header extension; `id` 1 to 14 fits the one-byte form."""

    id: int
    uri: str
    direction: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Rid:
    """A simulcast encoding by name (RFC 8851); `direction` is `send` or `recv`."""

    rid: str
    direction: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Ssrc:
    """A stream announced by its number."""

    ssrc: int
    cname: str = ""
    msid: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An address at which the writer can be reached (RFC 8839); `ip` may be a name in what browsers write."""

    foundation: str
    component: int
    transport: str
    priority: int
    ip: str
    port: int
    type: str = "host"
    tcptype: str = ""
    """Of a TCP candidate: who connects (RFC 6544); `passive` waits for the other end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaSection:
    """One m-line with its attributes; those of the session level are already filled in where it has none."""

    kind: str
    """`audio`, `video`, `application`."""
    mid: str = ""
    port: int = 9
    protocol: str = "UDP/TLS/RTP/SAVPF"
    formats: tuple[str, ...] = ()
    """The formats of the m-line as written, also those without an rtpmap. Written from `codecs` when there are any."""
    direction: Direction = Direction.SENDRECV
    ufrag: str = ""
    pwd: str = ""
    fingerprints: tuple[Fingerprint, ...] = ()
    setup: str = ""
    """`active`, `passive`, `actpass` (RFC 8842)."""
    codecs: tuple[Codec, ...] = ()
    """The codecs in the writer's order of preference."""
    extensions: tuple[Extension, ...] = ()
    rids: tuple[Rid, ...] = ()
    simulcast_send: tuple[str, ...] = ()
    simulcast_recv: tuple[str, ...] = ()
    ssrcs: tuple[Ssrc, ...] = ()
    fid_groups: tuple[tuple[int, int], ...] = ()
    """Pairs of a media SSRC and the SSRC of its retransmissions (RFC 5576, RFC 4588)."""
    msid: str = ""
    """`<stream> <track>` (RFC 8830)."""
    candidates: tuple[Candidate, ...] = ()
    end_of_candidates: bool = False
    rtcp_mux: bool = False
    rtcp_rsize: bool = False
    bundle_only: bool = False
    sctp_port: int = 0
    ptime_ms: int = 0
    """How much sound the writer would like a packet to hold [ms]; 0 when it does not say (RFC 8866 section 6.4)."""

    @property
    def rejected(self) -> bool:
        """True when the m-line is refused or stopped: port zero, and not merely waiting for its bundle (RFC 9143)."""
        return self.port == 0 and not self.bundle_only

    def codec(self, pt: int) -> Codec | None:
        """The codec of a payload type."""
        return next((codec for codec in self.codecs if codec.pt == pt), None)

    def named(self, name: str) -> tuple[Codec, ...]:
        """The codecs of a name, in the writer's order."""
        return tuple(codec for codec in self.codecs if codec.is_(name))

    def rtx_for(self, pt: int) -> Codec | None:
        """The RTX codec that repairs `pt`."""
        return next((codec for codec in self.codecs if codec.apt == pt), None)

    def extension_id(self, uri: str) -> int | None:
        """The id under which a header extension is used here."""
        return next((extension.id for extension in self.extensions if extension.uri == uri), None)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionDescription:
    """A whole offer or answer."""

    media: tuple[MediaSection, ...] = ()
    bundle: tuple[str, ...] = ()
    """Mids of the first BUNDLE group, its transport's owner first."""
    ice_lite: bool = False
    session_id: str = "1"
    version: int = 1

    def section(self, mid: str) -> MediaSection | None:
        """The m-line with that mid."""
        return next((section for section in self.media if section.mid == mid), None)
