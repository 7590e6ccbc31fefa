"""What of a published m-line the plane is told."""

from __future__ import annotations

from sfu.core.sdp.formats import MediaFormat
from sfu.core.sdp.publish import PublishedLine
from sfu.shell.publishing import producer_spec
from shared.rtc import sdp
from tests.fakes.h264_stream import pps, sps


def test_parameter_sets_of_the_description_go_with_the_producer() -> None:
    fmt = MediaFormat(kind="video", name="H264", profile="42e01f", parameter_sets="Z0LgH8A=,aMA=,!!!!")
    line = PublishedLine(
        mid="0",
        publication="cam",
        generation=1,
        format=fmt,
        codec=sdp.h264(98, profile="42e01f"),
        rtx=None,
        extensions=(),
    )
    assert producer_spec(line, producer=1, peer=1, cap_bps=1).parameter_sets == (sps(0), pps(0))
