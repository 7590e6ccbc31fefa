"""A publisher whose layer starts again with SSRC after SSRC: old packets of so many starts can be asked for."""

from __future__ import annotations

from shared.rtc import rtcp
from tests.fakes.plane_rig import Rig, vp8_payload

BEGINNINGS = 20
KEPT = 16
"""Besides the one in use."""


def test_packets_of_the_last_beginnings_are_sent_again_and_of_older_ones_not() -> None:
    rig = Rig()
    rig.peer(1)
    rig.peer(2)
    rig.produce(1, 1)
    rig.consume(1, 2, 1)
    for number in range(BEGINNINGS):
        payload = vp8_payload(key=True, picture_id=number, tl0=number, body=bytes([number]))
        rig.rtp(1, ssrc=100 + number, sequence=number, timestamp=number, payload=payload, mid="1", marker=True)
    sequences = [header.sequence for header, _, _ in rig.sent[2]]
    assert len(sequences) == BEGINNINGS
    for sequence in sequences:
        rig.rtcp(2, rtcp.nack(sender=1, media=5001, sequences=[sequence]))
    again = [payload for header, _, payload in rig.sent[2] if header.ssrc == 6001]
    assert [int.from_bytes(payload[:2], "big") for payload in again] == sequences[-(KEPT + 1) :]
    assert rig.drops("resend-unknown") == BEGINNINGS - KEPT - 1
