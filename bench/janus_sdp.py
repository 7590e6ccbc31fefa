"""The session descriptions that a load client exchanges with Janus: made from what it sends, read for where to connect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bench.janus_process import JanusFailed
from shared.rtc import sdp
from shared.rtc.sdp import Codec, Direction, Extension, ExtensionUri, Fingerprint, MediaSection, Ssrc

EXTENSIONS = (Extension(id=2, uri=ExtensionUri.ABS_SEND_TIME), Extension(id=4, uri=ExtensionUri.MID))
"""What the generator's packets carry; everything else that Janus would add is not asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Local:
    """What Janus is told of one client's transport."""

    address: tuple[str, int]
    ufrag: str
    pwd: str
    fingerprint: tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Remote:
    """Where and how Janus is reached for one PeerConnection."""

    address: tuple[str, int]
    ufrag: str
    pwd: str
    fingerprint: tuple[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Sent:
    """A stream that a client publishes."""

    mid: str
    kind: str
    """`video` or `audio`."""
    ssrc: int


def offer(local: Local, streams: Sequence[Sent]) -> str:
    """A publisher's offer. It asks for the DTLS client's role, as all clients of the generator have it."""
    sections = [
        _transport(
            MediaSection(
                kind=stream.kind,
                mid=stream.mid,
                direction=Direction.SENDONLY,
                codecs=_codecs(stream.kind),
                extensions=EXTENSIONS,
                ssrcs=(Ssrc(ssrc=stream.ssrc, cname="load"),),
                rtcp_mux=True,
            ),
            local,
        )
        for stream in streams
    ]
    return sdp.write(sdp.describe(sections, session_id="1", version=1))


def answer(offered: str, local: Local) -> str:
    """A subscriber's answer that takes everything offered, with the extensions of `EXTENSIONS` only."""
    wanted = {extension.uri for extension in EXTENSIONS}
    sections = [
        _transport(
            MediaSection(
                kind=section.kind,
                mid=section.mid,
                direction=Direction.RECVONLY,
                codecs=section.codecs,
                extensions=tuple(one for one in section.extensions if one.uri in wanted),
                rtcp_mux=True,
            ),
            local,
        )
        for section in sdp.parse(offered).media
    ]
    return sdp.write(sdp.describe(sections, session_id="1", version=1))


def remote(text: str) -> Remote:
    """Janus' transport in its offer or answer. Raises `JanusFailed` when something is missing, `BadSdp`."""
    description = sdp.parse(text)
    if not description.media:
        raise JanusFailed("its SDP has no media")
    first = description.media[0]
    if first.rejected or not (first.candidates and first.fingerprints and first.ufrag and first.pwd):
        raise JanusFailed(f"its SDP has no candidate, credentials or fingerprint: {text}")
    if first.setup == "active":
        raise JanusFailed("it insists on being the DTLS client")
    candidate = first.candidates[0]
    return Remote(
        address=(candidate.ip, candidate.port),
        ufrag=first.ufrag,
        pwd=first.pwd,
        fingerprint=(first.fingerprints[0].algorithm, first.fingerprints[0].value),
    )


def _codecs(kind: str) -> tuple[Codec, ...]:
    return (sdp.vp8(96), sdp.rtx(97, apt=96)) if kind == "video" else (sdp.opus(111),)


def _transport(section: MediaSection, local: Local) -> MediaSection:
    return replace(
        section,
        ufrag=local.ufrag,
        pwd=local.pwd,
        fingerprints=(Fingerprint(*local.fingerprint),),
        setup="active",
        candidates=(sdp.host_candidate(*local.address),),
        end_of_candidates=True,
    )
