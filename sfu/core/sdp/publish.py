"""The answer to a player's publish offer: which m-lines become publications, with which codec, and what we say back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sfu.core.sdp.formats import MediaFormat, choose
from sfu.core.sdp.transport import LocalTransport, RemoteTransport, remote_transport
from shared.errors import BadSdp
from shared.messages.media import TrackOffer
from shared.rtc.sdp import (
    TRANSPORT_CC,
    Codec,
    Direction,
    Extension,
    ExtensionUri,
    MediaSection,
    Rid,
    SessionDescription,
    describe,
    refusal,
)

_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
ONE_BYTE_IDS = range(1, 15)
"""Extension ids that fit the one-byte form (RFC 8285 section 4.2), the only one forwarded."""
MAX_SSRCS = 8
"""Most SSRC pairs of one publication: simulcast in the old way has three."""
WANTED_EXTENSIONS = {
    "audio": (ExtensionUri.MID, ExtensionUri.AUDIO_LEVEL, ExtensionUri.ABS_SEND_TIME, ExtensionUri.TRANSPORT_CC),
    "video": (
        ExtensionUri.MID,
        ExtensionUri.RID,
        ExtensionUri.REPAIRED_RID,
        ExtensionUri.ABS_SEND_TIME,
        ExtensionUri.TRANSPORT_CC,
        ExtensionUri.VIDEO_ORIENTATION,
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PublishedLine:
    """An m-line that carries a publication."""

    mid: str
    publication: str
    generation: int
    format: MediaFormat
    codec: Codec
    rtx: Codec | None
    extensions: tuple[Extension, ...]
    rids: tuple[str, ...] = ()
    ssrcs: tuple[tuple[int, int | None], ...] = ()
    """Media SSRCs told in the offer, each with that of its retransmissions."""
    nack: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TakenOffer:
    """An offer that can be used."""

    remote: RemoteTransport
    tracks: tuple[PublishedLine, ...]
    sections: tuple[MediaSection, ...]
    """Our m-lines, without our transport."""

    def answer(self, local: LocalTransport, *, session_id: str, version: int) -> SessionDescription:
        """Our answer, with the transport as it is by now."""
        sections = [each if each.rejected else local.fill(each, setup="passive") for each in self.sections]
        return describe(sections, session_id=session_id, version=version, ice_lite=True)


def take_offer(offer: SessionDescription, tracks: Sequence[TrackOffer]) -> TakenOffer:
    """Judge a publish offer, before anything is changed for it. Raises `BadSdp` when it can't be used as a whole.

    M-lines that are no audio or video, or have no codec we forward, are rejected with port zero. Those that send
    nothing, or that `tracks` does not name, are answered `inactive` and can be taken into use by a later offer.
    """
    remote = remote_transport(offer, setups=("actpass", "active"))  # we are passive
    wanted = _by_mid(tracks)
    unknown = set(wanted) - {section.mid for section in offer.media}
    if unknown:
        raise BadSdp(detail=f"no m-line has the mid {sorted(unknown)[0]!r} of a track")
    sections: list[MediaSection] = []
    published: list[PublishedLine] = []
    for section in offer.media:
        track, answered = _answer_section(section, wanted.get(section.mid))
        sections.append(answered)
        if track is not None:
            published.append(track)
    _check_ssrcs(published)
    return TakenOffer(remote=remote, tracks=tuple(published), sections=tuple(sections))


def _by_mid(tracks: Sequence[TrackOffer]) -> dict[str, TrackOffer]:
    by_mid = {track.mid: track for track in tracks}
    if len(by_mid) < len(tracks) or len({track.publication for track in tracks}) < len(tracks):
        raise BadSdp(detail="a mid or a publication is named twice in tracks")
    for track in tracks:
        if not _ID.fullmatch(track.publication):
            raise BadSdp(detail="a publication id is not 1 to 64 of A-Z a-z 0-9 _ -")
        if track.generation < 1:
            raise BadSdp(detail="a generation is less than 1")
    return by_mid


def _answer_section(section: MediaSection, offered: TrackOffer | None) -> tuple[PublishedLine | None, MediaSection]:
    """The track, if the m-line carries one, and our m-line without its transport."""
    if section.rejected or section.kind not in WANTED_EXTENSIONS:
        return None, refusal(section)
    chosen = choose(section)
    if chosen is None:
        if offered is not None:
            raise BadSdp(detail=f"m-line {section.mid} has no codec we forward (opus; VP8, H264 packetization-mode 1)")
        return None, refusal(section)
    if not section.rtcp_mux:
        raise BadSdp(detail=f"a=rtcp-mux is missing in m-line {section.mid}")
    fmt, codec = chosen
    rtx = section.rtx_for(codec.pt)
    extensions = _extensions(section, codec)
    if ExtensionUri.TRANSPORT_CC in {extension.uri for extension in extensions}:
        # With it the publisher's estimate grows by its own probing, and REMB is the cap that it keeps to.
        codec = replace(codec, feedback=(*codec.feedback, TRANSPORT_CC))
    sends = offered is not None and section.direction.sends
    answered = MediaSection(
        kind=section.kind,
        mid=section.mid,
        protocol=section.protocol,
        direction=Direction.RECVONLY if sends else Direction.INACTIVE,
        codecs=(codec,) if rtx is None else (codec, rtx),
        extensions=tuple(replace(extension, direction="") for extension in extensions),
        rtcp_rsize=section.rtcp_rsize,
        ptime_ms=section.ptime_ms,
    )
    if offered is None or not sends:
        return None, answered
    if offered.kind not in ("", section.kind):
        raise BadSdp(detail=f"track {offered.publication} is said to be {offered.kind}, its m-line is {section.kind}")
    rids = _rids(section, extensions)
    answered = replace(answered, rids=tuple(Rid(rid=rid, direction="recv") for rid in rids), simulcast_recv=rids)
    track = PublishedLine(
        mid=section.mid,
        publication=offered.publication,
        generation=offered.generation,
        format=fmt,
        codec=codec,
        rtx=rtx,
        extensions=answered.extensions,
        rids=rids,
        ssrcs=() if rids else _ssrcs(section),
        nack="nack" in codec.feedback,
    )
    return track, answered


def _extensions(section: MediaSection, codec: Codec) -> tuple[Extension, ...]:
    """What we take of the offer; transport-wide sequence numbers only where feedback about them is offered as well."""
    wanted = set(WANTED_EXTENSIONS[section.kind])
    offered = section.codec(codec.pt)
    if offered is None or TRANSPORT_CC not in offered.feedback:
        wanted.discard(ExtensionUri.TRANSPORT_CC)
    return tuple(e for e in section.extensions if e.uri in wanted and e.id in ONE_BYTE_IDS)


def _rids(section: MediaSection, extensions: tuple[Extension, ...]) -> tuple[str, ...]:
    """The simulcast encodings in the player's order; empty when there is only one (RFC 8853)."""
    declared = {rid.rid for rid in section.rids if rid.direction == "send"}
    rids = tuple(dict.fromkeys(rid for rid in section.simulcast_send if rid in declared))
    if not rids:
        return ()
    if not {ExtensionUri.MID, ExtensionUri.RID} <= {extension.uri for extension in extensions}:
        raise BadSdp(detail=f"m-line {section.mid} has simulcast without the header extensions for mid and rid")
    return rids


def _ssrcs(section: MediaSection) -> tuple[tuple[int, int | None], ...]:
    repairs = {repair for _, repair in section.fid_groups}
    partner: dict[int, int] = dict(section.fid_groups)
    media = list(dict.fromkeys([*partner, *(s.ssrc for s in section.ssrcs if s.ssrc not in repairs)]))
    return tuple((ssrc, partner.get(ssrc)) for ssrc in media[:MAX_SSRCS])


def _check_ssrcs(tracks: list[PublishedLine]) -> None:
    told = [ssrc for track in tracks for pair in track.ssrcs for ssrc in pair if ssrc is not None]
    if len(told) != len(set(told)):
        raise BadSdp(detail="an SSRC is used twice")
