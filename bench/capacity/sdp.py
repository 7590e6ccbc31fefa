"""Session descriptions of the generator's clients, as an SFU wants them from its players."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.relay.peers import ABS_SEND_TIME_ID, LOCAL_PWD, LOCAL_UFRAG, MID_ID, OfferedTrack, TransportAnswer
from shared.errors import BadSdp
from shared.rtc import sdp
from shared.rtc.dtls import Fingerprint

EXTENSIONS = (
    sdp.Extension(id=ABS_SEND_TIME_ID, uri=sdp.ExtensionUri.ABS_SEND_TIME),
    sdp.Extension(id=MID_ID, uri=sdp.ExtensionUri.MID),
)
TAKEN = (sdp.ExtensionUri.MID, sdp.ExtensionUri.ABS_SEND_TIME)
"""Header extensions that a subscriber takes."""


def publish_offer(tracks: Sequence[OfferedTrack], fingerprint: Fingerprint) -> str:
    """A publisher's offer, an m-line a track."""
    return _write([_published(track, fingerprint) for track in tracks])


def subscribe_answer(offer: sdp.SessionDescription, fingerprint: Fingerprint) -> str:
    """A subscriber takes every m-line in the codec offered first, and what repairs it."""
    return _write([_taken(section, fingerprint) for section in offer.media])


def far_end(description: sdp.SessionDescription) -> TransportAnswer:
    """The SFU's transport. Raises `BadSdp`."""
    for section in description.media:
        if not section.rejected and section.candidates and section.fingerprints:
            candidate, fingerprint = section.candidates[0], section.fingerprints[0]
            return TransportAnswer(
                ufrag=section.ufrag,
                pwd=section.pwd,
                fingerprint=Fingerprint(fingerprint.algorithm, fingerprint.value),
                address=(candidate.ip, candidate.port),
            )
    raise BadSdp(detail="the SFU refused every m-line")


def _published(track: OfferedTrack, fingerprint: Fingerprint) -> sdp.MediaSection:
    """Retransmissions are agreed on, as browsers do, though the generator sends none."""
    video, pt = track.kind == "video", track.payload_type
    section = sdp.MediaSection(
        kind=track.kind,
        mid=track.mid,
        direction=sdp.Direction.SENDONLY,
        setup="actpass",
        codecs=(sdp.vp8(pt), sdp.rtx(pt + 1, apt=pt)) if video else (sdp.opus(pt),),
        extensions=EXTENSIONS,
        ssrcs=(sdp.Ssrc(ssrc=track.ssrc, cname="load"),),
    )
    return _with_transport(section, fingerprint)


def _taken(section: sdp.MediaSection, fingerprint: Fingerprint) -> sdp.MediaSection:
    codec = section.codecs[0]
    repair = section.rtx_for(codec.pt)
    taken = sdp.MediaSection(
        kind=section.kind,
        mid=section.mid,
        direction=sdp.Direction.RECVONLY if section.direction.sends else sdp.Direction.INACTIVE,
        setup="active",
        codecs=(codec,) if repair is None else (codec, repair),
        extensions=tuple(one for one in section.extensions if one.uri in TAKEN),
    )
    return _with_transport(taken, fingerprint)


def _with_transport(section: sdp.MediaSection, fingerprint: Fingerprint) -> sdp.MediaSection:
    return replace(
        section,
        ufrag=LOCAL_UFRAG,
        pwd=LOCAL_PWD,
        fingerprints=(sdp.Fingerprint(fingerprint.algorithm, fingerprint.value),),
        rtcp_mux=True,
        rtcp_rsize=True,
    )


def _write(sections: Sequence[sdp.MediaSection]) -> str:
    return sdp.write(sdp.describe(sections, session_id="1", version=1))
