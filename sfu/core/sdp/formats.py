"""The one codec of a publication: chosen from its publisher's offer, answered there, and offered to its viewers.

What is answered to the publisher says what we want of it; the SFU has no taste of its own, so that is what it offered.
What is offered to viewers says what they will get. Format parameters that are not named here are dropped: most speak
for the receiver that wrote them (RFC 7587 section 7.1), which a viewer is not, and a stranger's text does not belong
in the descriptions of others. Each value that passes is bounded or rebuilt.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from shared.rtc import h264_profile
from shared.rtc.sdp import VIDEO_FEEDBACK, Codec, MediaSection, h264, opus, vp8

DEFAULT_PROFILE = "42e01f"
"""For a stream without a readable `profile-level-id`: constrained baseline, as browsers take it."""
OPUS_BPS = range(6_000, 510_001)
"""What `maxaveragebitrate` may be [bit/s] (RFC 7587 section 6.1)."""
_PARAMETER_SETS = re.compile(r"[A-Za-z0-9+/]{4,256}={0,2}(,[A-Za-z0-9+/]{4,256}={0,2}){0,7}")
MAX_PARAMETER_SETS = 512
"""Longest `sprop-parameter-sets` passed on; an SPS and a PPS of a camera are some 40 characters."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaFormat:
    """The codec of a publication as its viewers must be offered it."""

    kind: str
    name: str
    """`opus`, `VP8`, `H264`: in our own spelling."""
    profile: str = ""
    """H.264's `profile-level-id`, lower case."""
    parameter_sets: str = ""
    """H.264's `sprop-parameter-sets`: all that a decoder gets of them where the stream does not repeat them."""
    stereo: bool = False
    """Opus: two channels may differ."""
    fec: bool = True
    """Opus: packets may carry a copy of the one before."""
    dtx: bool = False
    """Opus: silence is sent as few packets, which are not lost ones."""

    @property
    def label(self) -> str:
        """For people: `opus`, `H264 640c1f`."""
        return f"{self.name} {self.profile}".rstrip()

    def codec(self, pt: int) -> Codec:
        """As offered to viewers under this payload type."""
        match self.name:
            case "opus":
                return opus(pt, fmtp=";".join(("minptime=10", *self._opus())))
            case "VP8":
                return vp8(pt)
            case _:
                codec = h264(pt, profile=self.profile)
                sets = f";sprop-parameter-sets={self.parameter_sets}" if self.parameter_sets else ""
                return replace(codec, fmtp=codec.fmtp + sets)

    def _opus(self) -> tuple[str, ...]:
        flags = (f"useinbandfec={self.fec:d}", "usedtx=1" if self.dtx else "")
        return tuple(filter(None, (*flags, *(("stereo=1", "sprop-stereo=1") if self.stereo else ()))))


def choose(section: MediaSection) -> tuple[MediaFormat, Codec] | None:
    """What a publication of this m-line is, and the codec as we answer it; None when we forward none of its codecs.

    The first in the player's order that we forward; of several H.264 profiles the one that most decoders have. One
    codec only: then viewers can be offered it before its first packet has come.
    """
    for codec in section.codecs:
        if section.kind == "audio" and codec.is_("opus") and codec.clock == 48000:
            return _opus(codec)
        if section.kind != "video" or codec.clock != 90000:
            continue
        if codec.is_("vp8"):
            return MediaFormat(kind="video", name="VP8"), _as_video(codec, name="VP8", fmtp="")
        if _is_usable_h264(codec):
            return _h264(min(filter(_is_usable_h264, section.codecs), key=_rank))
    return None


def refusal_of(ours: Codec, answered: Codec) -> bool:
    """True when an answer takes the payload type but says that it means something that we don't send.

    The level may differ (RFC 6184 section 8.2.2), and what is left out was taken as offered.
    """
    if not answered.is_(ours.name):
        return True
    if not ours.is_("h264"):
        return False
    said, sent = answered.parameters, ours.parameters
    profile = said.get("profile-level-id", sent["profile-level-id"])
    mode = said.get("packetization-mode", sent["packetization-mode"])
    return mode != sent["packetization-mode"] or not h264_profile.same_profile(profile, sent["profile-level-id"])


def _opus(codec: Codec) -> tuple[MediaFormat, Codec]:
    said = codec.parameters
    fmt = MediaFormat(
        kind="audio",
        name="opus",
        stereo=said.get("sprop-stereo", said.get("stereo")) == "1",
        fec=said.get("useinbandfec") != "0",
        dtx=said.get("usedtx") == "1",
    )
    wanted = [fmt.codec(codec.pt).fmtp]
    if said.get("cbr") == "1":
        wanted.append("cbr=1")
    rate = said.get("maxaveragebitrate", "")
    if rate.isascii() and rate.isdigit() and len(rate) <= 6 and int(rate) in OPUS_BPS:
        wanted.append(f"maxaveragebitrate={int(rate)}")
    return fmt, replace(codec, name="opus", channels=2, fmtp=";".join(wanted), feedback=())


def _is_usable_h264(codec: Codec) -> bool:
    return codec.is_("h264") and codec.clock == 90000 and codec.parameters.get("packetization-mode") == "1"


def _profile(codec: Codec) -> str:
    profile = codec.parameters.get("profile-level-id", "").lower()
    return profile if h264_profile.read(profile) else DEFAULT_PROFILE


def _rank(codec: Codec) -> int:
    """Ordered by how many decoders have the profile; `min` keeps the player's order among equals."""
    known = h264_profile.read(_profile(codec))
    return known.profile if known else h264_profile.H264Profile.OTHER


def _h264(codec: Codec) -> tuple[MediaFormat, Codec]:
    profile = _profile(codec)
    sets = codec.parameters.get("sprop-parameter-sets", "")
    if len(sets) > MAX_PARAMETER_SETS or not _PARAMETER_SETS.fullmatch(sets):
        sets = ""
    fmt = MediaFormat(kind="video", name="H264", profile=profile, parameter_sets=sets)
    return fmt, _as_video(codec, name="H264", fmtp=h264(codec.pt, profile=profile).fmtp)


def _as_video(codec: Codec, *, name: str, fmtp: str) -> Codec:
    feedback = tuple(item for item in VIDEO_FEEDBACK if item in codec.feedback)
    return replace(codec, name=name, fmtp=fmtp, feedback=feedback)
