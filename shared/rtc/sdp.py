"""Session descriptions: read them with `parse`, write them with `write`, and build the usual parts with the rest.

A bot offers like this, and reads the answer with `parse`:

    section = MediaSection(kind="audio", mid="0", direction=Direction.SENDONLY, codecs=(opus(111),), ...)
    text = write(describe([section], session_id="7", version=1))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shared.rtc.sdp_model import (
    Candidate,
    Codec,
    Direction,
    Extension,
    ExtensionUri,
    Fingerprint,
    MediaSection,
    Rid,
    SessionDescription,
    Ssrc,
)
from shared.rtc.sdp_parse import MAX_CHARS, MAX_MEDIA, parse

__all__ = [
    "MAX_CHARS",
    "MAX_MEDIA",
    "TRANSPORT_CC",
    "VIDEO_FEEDBACK",
    "Candidate",
    "Codec",
    "Direction",
    "Extension",
    "ExtensionUri",
    "Fingerprint",
    "MediaSection",
    "Rid",
    "SessionDescription",
    "Ssrc",
    "describe",
    "h264",
    "host_candidate",
    "opus",
    "parse",
    "refusal",
    "rtx",
    "tcp_candidate",
    "vp8",
    "write",
]

VIDEO_FEEDBACK = ("goog-remb", "ccm fir", "nack", "nack pli")
"""RTCP feedback of every video codec here."""
REFERENCE_TIME = "rrtr"
"""RTCP feedback of a video codec whose receiver tells its clock, to learn its round trip (RFC 3611 section 4.4)."""
TRANSPORT_CC = "transport-cc"
"""RTCP feedback of any codec whose packets bear transport-wide sequence numbers; without those it says nothing."""
_HOST_PREFERENCE = 126
"""Type preference of a host candidate (RFC 8445 section 5.1.2.2)."""
_TCP_HOST_PREFERENCE = 90
"""That of one over TCP, where UDP is better (RFC 6544 section 4.2): below every direct way by UDP."""
_PASSIVE_PREFERENCE = 4
"""Direction preference of a passive TCP candidate (RFC 6544 section 4.2)."""


def opus(pt: int = 111, *, fmtp: str = "minptime=10;useinbandfec=1") -> Codec:
    """Opus at 48 kHz (RFC 7587)."""
    return Codec(pt=pt, name="opus", clock=48000, channels=2, fmtp=fmtp)


def vp8(pt: int = 96) -> Codec:
    """VP8 (RFC 7741)."""
    return Codec(pt=pt, name="VP8", clock=90000, feedback=VIDEO_FEEDBACK)


def h264(pt: int = 102, *, profile: str = "42e01f") -> Codec:
    """H.264 in packetization mode 1 (RFC 6184); `profile` is the `profile-level-id`, default constrained baseline."""
    fmtp = f"level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={profile}"
    return Codec(pt=pt, name="H264", clock=90000, fmtp=fmtp, feedback=VIDEO_FEEDBACK)


def rtx(pt: int, *, apt: int) -> Codec:
    """Retransmissions of payload type `apt` (RFC 4588)."""
    return Codec(pt=pt, name="rtx", clock=90000, fmtp=f"apt={apt}")


def host_candidate(ip: str, port: int, *, index: int = 0) -> Candidate:
    """A host candidate over UDP; a lower `index` is preferred (RFC 8445 section 5.1.2.1)."""
    priority = (_HOST_PREFERENCE << 24) | ((65535 - index) << 8) | 255
    return Candidate(foundation=str(index + 1), component=1, transport="udp", priority=priority, ip=ip, port=port)


def tcp_candidate(ip: str, port: int, *, index: int = 0) -> Candidate:
    """A host candidate over TCP that waits for connections (RFC 6544); a lower `index` is preferred."""
    local_preference = _PASSIVE_PREFERENCE << 13 | 8191 - index
    return Candidate(
        foundation=f"t{index + 1}",
        component=1,
        transport="tcp",
        priority=_TCP_HOST_PREFERENCE << 24 | local_preference << 8 | 255,
        ip=ip,
        port=port,
        tcptype="passive",
    )


def refusal(section: MediaSection) -> MediaSection:
    """The answer that refuses an offered m-line: port zero, its formats repeated (RFC 3264 section 6)."""
    return MediaSection(
        kind=section.kind,
        mid=section.mid,
        port=0,
        protocol=section.protocol,
        formats=section.formats,
        direction=Direction.INACTIVE,
    )


def describe(
    media: Iterable[MediaSection], *, session_id: str, version: int, ice_lite: bool = False
) -> SessionDescription:
    """A description whose BUNDLE group is every m-line that is not rejected."""
    sections = tuple(media)
    return SessionDescription(
        media=sections,
        bundle=tuple(section.mid for section in sections if section.mid and not section.rejected),
        ice_lite=ice_lite,
        session_id=session_id,
        version=version,
    )


def write(description: SessionDescription) -> str:
    """The text of a description, CRLF after each line."""
    lines = [
        "v=0",
        f"o=- {description.session_id} {description.version} IN IP4 127.0.0.1",
        "s=-",
        "t=0 0",
    ]
    if description.bundle:
        lines.append(f"a=group:BUNDLE {' '.join(description.bundle)}")
    lines += ["a=extmap-allow-mixed", "a=msid-semantic: WMS *"]
    if description.ice_lite:
        lines.append("a=ice-lite")
    for section in description.media:
        lines += _section_lines(section)
    return "".join(f"{line}\r\n" for line in lines)


def _section_lines(section: MediaSection) -> Iterator[str]:
    formats = " ".join(str(codec.pt) for codec in section.codecs) or " ".join(section.formats) or "0"
    yield f"m={section.kind} {section.port} {section.protocol} {formats}"
    yield "c=IN IP4 0.0.0.0"
    if section.mid:
        yield f"a=mid:{section.mid}"
    yield from _transport_lines(section)
    if section.kind == "application":
        if section.sctp_port:
            yield f"a=sctp-port:{section.sctp_port}"
        return
    yield f"a={section.direction}"
    for extension in section.extensions:
        suffix = f"/{extension.direction}" if extension.direction else ""
        yield f"a=extmap:{extension.id}{suffix} {extension.uri}"
    if section.msid:
        yield f"a=msid:{section.msid}"
    if section.rtcp_mux:
        yield "a=rtcp-mux"
    if section.rtcp_rsize:
        yield "a=rtcp-rsize"
    for codec in section.codecs:
        yield from _codec_lines(codec)
    if section.ptime_ms:
        yield f"a=ptime:{section.ptime_ms}"
    yield from _stream_lines(section)


def _transport_lines(section: MediaSection) -> Iterator[str]:
    if section.bundle_only:
        yield "a=bundle-only"
    if section.ufrag:
        yield f"a=ice-ufrag:{section.ufrag}"
    if section.pwd:
        yield f"a=ice-pwd:{section.pwd}"
    for fingerprint in section.fingerprints:
        yield f"a=fingerprint:{fingerprint.algorithm} {fingerprint.value}"
    if section.setup:
        yield f"a=setup:{section.setup}"
    for c in section.candidates:
        line = f"a=candidate:{c.foundation} {c.component} {c.transport} {c.priority} {c.ip} {c.port} typ {c.type}"
        yield f"{line} tcptype {c.tcptype}" if c.tcptype else line
    if section.end_of_candidates:
        yield "a=end-of-candidates"


def _codec_lines(codec: Codec) -> Iterator[str]:
    channels = f"/{codec.channels}" if codec.channels > 1 else ""
    yield f"a=rtpmap:{codec.pt} {codec.name}/{codec.clock}{channels}"
    for feedback in codec.feedback:
        yield f"a=rtcp-fb:{codec.pt} {feedback}"
    if codec.fmtp:
        yield f"a=fmtp:{codec.pt} {codec.fmtp}"


def _stream_lines(section: MediaSection) -> Iterator[str]:
    for rid in section.rids:
        yield f"a=rid:{rid.rid} {rid.direction}"
    sides = [("send", section.simulcast_send), ("recv", section.simulcast_recv)]
    simulcast = " ".join(f"{side} {';'.join(rids)}" for side, rids in sides if rids)
    if simulcast:
        yield f"a=simulcast:{simulcast}"
    for first, second in section.fid_groups:
        yield f"a=ssrc-group:FID {first} {second}"
    for ssrc in section.ssrcs:
        if ssrc.cname or not ssrc.msid:
            yield f"a=ssrc:{ssrc.ssrc} cname:{ssrc.cname or '-'}"
        if ssrc.msid:
            yield f"a=ssrc:{ssrc.ssrc} msid:{ssrc.msid}"
