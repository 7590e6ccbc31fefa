"""Which track an SSRC belongs to."""

from __future__ import annotations

import pytest

from sfu.core.media.binder import BindCandidate, Binding, BindReason, Sight, bind


def candidate(
    producer: int,
    mid: str,
    *,
    rids: tuple[str, ...] = (),
    media: tuple[int, ...] = (96,),
    rtx: tuple[int, ...] = (97,),
    ssrcs: dict[int, tuple[str, bool]] | None = None,
) -> BindCandidate:
    return BindCandidate(
        producer=producer,
        mid=mid,
        rids=rids,
        media_types=frozenset(media),
        rtx_types=frozenset(rtx),
        ssrcs=ssrcs or {},
    )


AUDIO = candidate(1, "0", media=(111,), rtx=())
SIMULCAST = candidate(2, "1", rids=("l", "m", "h"))
CAMERA = candidate(3, "2", media=(96,), rtx=(97,), ssrcs={50: ("", False), 51: ("", True)})
SCREEN = candidate(4, "3", media=(98,), rtx=(99,))


@pytest.mark.parametrize(
    ("sight", "candidates", "expected"),
    [
        (Sight(ssrc=50, payload_type=96), [CAMERA], Binding(3, "", False, BindReason.SDP_SSRC)),
        (Sight(ssrc=51, payload_type=97), [CAMERA], Binding(3, "", True, BindReason.SDP_SSRC)),
        (Sight(ssrc=50, payload_type=97), [CAMERA], Binding(None, "", False, BindReason.FOREIGN_PAYLOAD_TYPE)),
        (
            Sight(ssrc=9, payload_type=96, mid="1", rid="m"),
            [AUDIO, SIMULCAST],
            Binding(2, "m", False, BindReason.MID_RID),
        ),
        (
            Sight(ssrc=9, payload_type=97, mid="1", repaired_rid="h"),
            [AUDIO, SIMULCAST],
            Binding(2, "h", True, BindReason.MID_RID),
        ),
        (Sight(ssrc=9, payload_type=111, mid="0"), [AUDIO, SIMULCAST], Binding(1, "", False, BindReason.MID)),
        (Sight(ssrc=9, payload_type=96, mid="1"), [SIMULCAST], Binding(None, "", False, BindReason.AMBIGUOUS)),
        (
            Sight(ssrc=9, payload_type=96, mid="1", rid="x"),
            [SIMULCAST],
            Binding(None, "", False, BindReason.UNKNOWN_RID),
        ),
        (Sight(ssrc=9, payload_type=96, mid="7"), [CAMERA], Binding(None, "", False, BindReason.UNKNOWN_MID)),
        (Sight(ssrc=9, payload_type=5, mid="0"), [AUDIO], Binding(None, "", False, BindReason.FOREIGN_PAYLOAD_TYPE)),
        (Sight(ssrc=9, payload_type=96, rid="l"), [AUDIO, SIMULCAST], Binding(2, "l", False, BindReason.RID)),
        (Sight(ssrc=9, payload_type=96, rid="x"), [SIMULCAST], Binding(None, "", False, BindReason.UNKNOWN_RID)),
        (Sight(ssrc=9, payload_type=99), [AUDIO, CAMERA, SCREEN], Binding(4, "", True, BindReason.PAYLOAD_TYPE)),
        (Sight(ssrc=9, payload_type=96), [SIMULCAST], Binding(None, "", False, BindReason.AMBIGUOUS)),
        (
            Sight(ssrc=9, payload_type=96),
            [CAMERA, candidate(5, "4")],
            Binding(None, "", False, BindReason.AMBIGUOUS),
        ),
        (Sight(ssrc=9, payload_type=96), [], Binding(None, "", False, BindReason.AMBIGUOUS)),
    ],
)
def test_ladder(sight: Sight, candidates: list[BindCandidate], expected: Binding) -> None:
    assert bind(sight, candidates) == expected
