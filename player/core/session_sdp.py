"""A player's session descriptions: its publish offer, and its answer to an SFU's subscribe offer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from player.core.track import AUDIO_PT, MID_EXTENSION, RTX_PT, VIDEO_PT, OutgoingTrack
from shared.errors import BadSdp
from shared.messages.media import TrackOffer
from shared.rtc import sdp

MID = sdp.Extension(id=MID_EXTENSION, uri=sdp.ExtensionUri.MID)
PLAYABLE = ("opus", "vp8")
"""Codecs we can take apart; others are refused line by line."""


@dataclass(frozen=True, slots=True)
class OwnEnd:
    """Our half of a transport."""

    ufrag: str
    pwd: str
    fingerprint: sdp.Fingerprint


@dataclass(frozen=True, slots=True)
class FarEnd:
    """The SFU's half: where it listens and how it proves itself."""

    ufrag: str
    pwd: str
    fingerprints: tuple[sdp.Fingerprint, ...]
    ip: str
    port: int


@dataclass(frozen=True, slots=True)
class Incoming:
    """What an m-line of a subscribe offer brings."""

    publication: str
    kind: str
    ssrc: int
    rtx_ssrc: int | None
    pt: int
    rtx_pt: int | None
    clock: int


def publish_offer(tracks: Iterable[OutgoingTrack], own: OwnEnd, *, version: int, cname: str) -> str:
    """An offer of these tracks, one m-line each."""
    sections = [_publish_section(track, own, cname) for track in tracks]
    return sdp.write(sdp.describe(sections, session_id="1", version=version))


def _publish_section(track: OutgoingTrack, own: OwnEnd, cname: str) -> sdp.MediaSection:
    video = track.kind == "video"
    numbers = track.numbers
    streams = (numbers.ssrc, numbers.rtx_ssrc) if video else (numbers.ssrc,)
    return sdp.MediaSection(
        kind=track.kind,
        mid=track.mid,
        direction=sdp.Direction.SENDONLY,
        ufrag=own.ufrag,
        pwd=own.pwd,
        fingerprints=(own.fingerprint,),
        setup="actpass",
        codecs=(sdp.vp8(VIDEO_PT), sdp.rtx(RTX_PT, apt=VIDEO_PT)) if video else (sdp.opus(AUDIO_PT),),
        extensions=(MID,),
        msid=f"{cname} {track.publication}",
        fid_groups=((numbers.ssrc, numbers.rtx_ssrc),) if video else (),
        ssrcs=tuple(sdp.Ssrc(ssrc=ssrc, cname=cname) for ssrc in streams),
        rtcp_mux=True,
        rtcp_rsize=True,
    )


def far_end(description: sdp.SessionDescription) -> FarEnd:
    """The SFU's transport. Raises `BadSdp` naming what is missing."""
    for section in description.media:
        if section.rejected or not section.ufrag or not section.pwd:
            continue
        candidates = [c for c in section.candidates if c.transport == "udp" and c.component == 1]
        if not candidates or not section.fingerprints:
            raise BadSdp(detail="the SFU named no UDP candidate or no fingerprint")
        best = max(candidates, key=lambda candidate: candidate.priority)
        return FarEnd(section.ufrag, section.pwd, section.fingerprints, best.ip, best.port)
    raise BadSdp(detail="the SFU refused every m-line")


def check_accepted(description: sdp.SessionDescription, tracks: Sequence[OutgoingTrack]) -> None:
    """Raise `BadSdp` unless the SFU takes every track in the codec that we have it in."""
    for track in tracks:
        section = description.section(track.mid)
        if section is None or section.rejected or section.codec(track.payload_type) is None:
            raise BadSdp(detail=f"the SFU does not take our {track.kind}")


def answer_subscribe(offer: sdp.SessionDescription, own: OwnEnd, *, version: int) -> str:
    """Take every m-line in a codec that we can take apart."""
    sections = [_answer_section(section, own) for section in offer.media]
    return sdp.write(sdp.describe(sections, session_id="2", version=version))


def _answer_section(section: sdp.MediaSection, own: OwnEnd) -> sdp.MediaSection:
    codec = _playable(section)
    if section.rejected or codec is None:
        return sdp.refusal(section)
    repair = section.rtx_for(codec.pt)
    mid = section.extension_id(sdp.ExtensionUri.MID)
    return sdp.MediaSection(
        kind=section.kind,
        mid=section.mid,
        direction=sdp.Direction.RECVONLY if section.direction.sends else sdp.Direction.INACTIVE,
        ufrag=own.ufrag,
        pwd=own.pwd,
        fingerprints=(own.fingerprint,),
        setup="active",
        codecs=(codec,) if repair is None else (codec, repair),
        extensions=() if mid is None else (sdp.Extension(id=mid, uri=sdp.ExtensionUri.MID),),
        rtcp_mux=True,
        rtcp_rsize=True,
    )


def incoming(offer: sdp.SessionDescription, tracks: Iterable[TrackOffer]) -> list[Incoming]:
    """The streams that an offer brings, by its `tracks` and the SSRCs it tells."""
    by_mid: Mapping[str, TrackOffer] = {track.mid: track for track in tracks}
    found: list[Incoming] = []
    for section in offer.media:
        track, codec = by_mid.get(section.mid), _playable(section)
        if track is None or codec is None or section.rejected or not section.direction.sends or not section.ssrcs:
            continue
        repairs = dict(section.fid_groups)
        own = set(repairs.values())
        ssrc = next((stream.ssrc for stream in section.ssrcs if stream.ssrc not in own), section.ssrcs[0].ssrc)
        repair_codec = section.rtx_for(codec.pt)
        found.append(
            Incoming(
                publication=track.publication,
                kind=section.kind,
                ssrc=ssrc,
                rtx_ssrc=repairs.get(ssrc) if repair_codec is not None else None,
                pt=codec.pt,
                rtx_pt=repair_codec.pt if repair_codec is not None else None,
                clock=codec.clock,
            )
        )
    return found


def _playable(section: sdp.MediaSection) -> sdp.Codec | None:
    return next((codec for codec in section.codecs if codec.name.lower() in PLAYABLE), None)
