"""The session descriptions that clients of the load generator exchange with Janus, and what to read from its own.

The generator's address is not in them: Janus learns it from the first connectivity check (a peer-reflexive candidate,
RFC 8445 section 7.3.1.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.janus.process import JanusFailed
from bench.relay.peers import (
    ABS_SEND_TIME_ID,
    AUDIO_PAYLOAD_TYPE,
    LOCAL_PWD,
    LOCAL_UFRAG,
    MID_ID,
    VIDEO_PAYLOAD_TYPE,
    OfferedTrack,
    TransportAnswer,
)
from shared.rtc import dtls, sdp
from shared.rtc.sdp import Codec, Direction, Extension, ExtensionUri, Fingerprint, MediaSection, Ssrc

RTX_PAYLOAD_TYPE = VIDEO_PAYLOAD_TYPE + 1
EXTENSIONS = (
    Extension(id=ABS_SEND_TIME_ID, uri=ExtensionUri.ABS_SEND_TIME),
    Extension(id=MID_ID, uri=ExtensionUri.MID),
)
"""What the generator's packets carry. Subscribers ask for no others."""


def offer(fingerprint: dtls.Fingerprint, tracks: Sequence[OfferedTrack]) -> str:
    """A publisher's offer."""
    sections = [
        MediaSection(
            kind=track.kind,
            mid=track.mid,
            direction=Direction.SENDONLY,
            codecs=_codecs(track.kind),
            extensions=EXTENSIONS,
            ssrcs=(Ssrc(ssrc=track.ssrc, cname=LOCAL_UFRAG),),
        )
        for track in tracks
    ]
    return _written(sections, fingerprint)


def answer(offered: str, fingerprint: dtls.Fingerprint) -> str:
    """A subscriber's answer, which takes all that is offered. Raises `BadSdp`."""
    wanted = {extension.uri for extension in EXTENSIONS}
    sections = [
        MediaSection(
            kind=section.kind,
            mid=section.mid,
            direction=Direction.RECVONLY,
            codecs=section.codecs,
            extensions=tuple(extension for extension in section.extensions if extension.uri in wanted),
        )
        for section in sdp.parse(offered).media
    ]
    return _written(sections, fingerprint)


def remote(text: str) -> TransportAnswer:
    """Janus' transport in its offer or answer. Raises `JanusFailed` when something of it is missing, `BadSdp`."""
    media = sdp.parse(text).media
    if not media or media[0].rejected:
        raise JanusFailed(f"it refuses the media: {text!r}")
    first = media[0]
    if not (first.candidates and first.fingerprints and first.ufrag and first.pwd):
        raise JanusFailed(f"no candidate, credentials or fingerprint in its SDP: {text!r}")
    if first.setup == "active":
        raise JanusFailed("it insists on being the DTLS client")
    return TransportAnswer(
        ufrag=first.ufrag,
        pwd=first.pwd,
        fingerprint=dtls.Fingerprint(first.fingerprints[0].algorithm, first.fingerprints[0].value),
        address=(first.candidates[0].ip, first.candidates[0].port),
    )


def streams(offered: str) -> dict[str, int]:
    """The SSRC of each stream that is offered, by its MID. Raises `JanusFailed`, `BadSdp`."""
    media = sdp.parse(offered).media
    if any(not section.ssrcs for section in media):
        raise JanusFailed(f"a stream without an SSRC in its SDP: {offered!r}")
    return {section.mid: section.ssrcs[0].ssrc for section in media}


def _codecs(kind: str) -> tuple[Codec, ...]:
    if kind == "video":
        return sdp.vp8(VIDEO_PAYLOAD_TYPE), sdp.rtx(RTX_PAYLOAD_TYPE, apt=VIDEO_PAYLOAD_TYPE)
    return (sdp.opus(AUDIO_PAYLOAD_TYPE),)


def _written(sections: Sequence[MediaSection], fingerprint: dtls.Fingerprint) -> str:
    return sdp.write(
        sdp.describe(
            [
                replace(
                    section,
                    ufrag=LOCAL_UFRAG,
                    pwd=LOCAL_PWD,
                    fingerprints=(Fingerprint(*fingerprint),),
                    setup="active",  # all clients of the generator are
                    rtcp_mux=True,
                )
                for section in sections
            ],
            session_id="1",
            version=1,
        )
    )
