"""The payload types of one subscribe connection: within a bundle a number means one configuration of one codec, its
format parameters included (RFC 9143 section 10.1.2)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sfu.core.sdp.formats import MediaFormat
from shared.rtc import h264_profile
from shared.rtc.sdp import REFERENCE_TIME, TRANSPORT_CC, Codec, rtx

OPUS_PTS = (111, 110, 116, 117, 118, 119, 120, 121)
"""One for each of the eight kinds of Opus: stereo or not, with FEC or not, with DTX or not."""
VP8_PTS = (96,)
H264_PTS = (98, 100, 102, 104, 106, 108, 112, 114)
"""One for each profile and level."""
H264_SETS_PTS = tuple(range(36, 64, 2))
"""One for each profile and level with parameter sets of its own; when they are used up the sets are left out."""


@dataclass(slots=True)
class PayloadTypes:
    """What has been given out; a number keeps its meaning for the life of the connection."""

    _given: dict[object, tuple[Codec, ...]] = field(default_factory=dict)

    def codecs(self, fmt: MediaFormat) -> tuple[Codec, ...]:
        """A format's codec and its retransmissions, as offered; empty when there are too many profiles for it."""
        match fmt.name:
            case "opus":
                return self._take(fmt, fmt, OPUS_PTS)
            case "VP8":
                return self._take(fmt, fmt, VP8_PTS)
            case _:
                meaning = h264_profile.read(fmt.profile) or fmt.profile
                if fmt.parameter_sets:
                    taken = self._take((meaning, fmt.parameter_sets), fmt, H264_SETS_PTS)
                    return taken or self.codecs(replace(fmt, parameter_sets=""))
                return self._take(meaning, fmt, H264_PTS)

    def _take(self, meaning: object, fmt: MediaFormat, numbers: tuple[int, ...]) -> tuple[Codec, ...]:
        if meaning not in self._given:
            used = {codecs[0].pt for codecs in self._given.values()}
            pt = next((number for number in numbers if number not in used), None)
            if pt is None:
                return ()
            codec = _with_feedback(fmt.codec(pt))
            self._given[meaning] = (codec,) if fmt.kind == "audio" else (codec, rtx(pt + 1, apt=pt))
        return self._given[meaning]


def _with_feedback(codec: Codec) -> Codec:
    """The codec with feedback about transport-wide sequence numbers and, where packets are asked for again, with the
    reference times by which a receiver knows how long to wait before it asks once more."""
    more = (TRANSPORT_CC, REFERENCE_TIME) if "nack" in codec.feedback else (TRANSPORT_CC,)
    return replace(codec, feedback=(*codec.feedback, *more))
