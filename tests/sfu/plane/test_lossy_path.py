"""Calls over 3 % loss, 20 ms of jitter and the reordering that makes, counted to the packet, in virtual time."""

from __future__ import annotations

from client_sim.core.impairment import Impairment
from tests.fakes.lossy_call import LossyCall, Viewer
from tests.fakes.plane_rig import Rig

PERFECT = Impairment()
JITTER = Impairment(delay_s=0.01, jitter_s=0.02)
BAD = Impairment(loss=0.03, delay_s=0.01, jitter_s=0.02)
CALL_S = 30.0


def call(publisher: Impairment, *viewers: Impairment, seconds: float = CALL_S, **settings: float) -> LossyCall:
    """The same network in both directions of each leg."""
    lossy = LossyCall(
        Rig(), publisher=(publisher, publisher), viewers=[(each, each) for each in viewers], **settings  # type: ignore[arg-type]
    )  # fmt: skip
    lossy.run(seconds)
    return lossy


def resend_drops(lossy: LossyCall) -> dict[str, int]:
    drops = lossy.rig.plane.snapshot().totals.drops
    return {reason: count for reason, count in drops.items() if reason.startswith("resend-") and count}


def worst(lossy: LossyCall, viewer: Viewer) -> float:
    return max(lossy.delays(viewer))


def test_jitter_alone_asks_the_publisher_for_next_to_nothing() -> None:
    lossy = call(JITTER, PERFECT)
    assert lossy.up.counts.overtook > 1000
    totals = lossy.rig.plane.snapshot().totals
    assert totals.nacks_sent < 0.01 * lossy.up.counts.overtook
    assert totals.plis_sent == 0
    assert worst(lossy, lossy.viewers[0]) < 0.05


def test_each_nack_of_a_viewer_is_answered_exactly_once() -> None:
    lossy = call(PERFECT, BAD)
    (viewer,) = lossy.viewers
    (consumer,) = lossy.rig.plane.snapshot().consumers
    assert viewer.down.counts.lost > 50
    assert viewer.asked == viewer.answers
    assert consumer.nacks == consumer.resent == sum(viewer.asked.values())
    assert consumer.unanswered == 0
    assert resend_drops(lossy) == {}
    assert lossy.plis == 0
    assert worst(lossy, viewer) < 0.4


def test_over_bad_networks_on_both_legs_every_frame_arrives_without_a_key_frame_or_a_storm() -> None:
    lossy = call(BAD, BAD, BAD)
    snapshot = lossy.rig.plane.snapshot()
    for viewer in lossy.viewers:
        assert worst(lossy, viewer) < 0.6, "everything is repaired, nearly always by the first try"
        assert set(viewer.asked) <= set(viewer.arrived)
        assert not viewer.answers - viewer.asked, "no answer without a question"
    not_yet = sum((viewer.asked - viewer.answers).total() for viewer in lossy.viewers)
    assert resend_drops(lossy) == {"resend-awaited": not_yet}
    assert [consumer.unanswered for consumer in snapshot.consumers] == [0, 0]
    assert (lossy.plis, lossy.keyframes) == (0, 1)
    (encoding,) = snapshot.producers[0].encodings
    assert encoding.lost > 50
    assert encoding.lost == encoding.repaired
    assert encoding.lost <= encoding.nacked < 1.1 * encoding.lost, "what is merely late is hardly asked for"
    assert snapshot.totals.nacks_sent < 1.5 * encoding.lost
    assert snapshot.totals.rtx_received < 1.5 * encoding.lost


def test_an_impatient_viewer_gets_one_answer_a_round_trip_and_the_rest_is_counted() -> None:
    lossy = call(PERFECT, BAD, patience_s=0.0, again_s=0.005)
    (viewer,) = lossy.viewers
    (consumer,) = lossy.rig.plane.snapshot().consumers
    asked, distinct = sum(viewer.asked.values()), len(viewer.asked)
    assert asked > 2 * distinct
    assert consumer.nacks == asked
    assert consumer.resent == sum(viewer.answers.values())
    assert set(viewer.answers) == set(viewer.asked)
    assert consumer.resent < 1.3 * distinct
    assert resend_drops(lossy) == {"resend-repeated": asked - consumer.resent}


def test_retransmissions_stay_within_their_share_of_a_viewer_that_asks_for_everything() -> None:
    lossy = call(PERFECT, Impairment(loss=0.7, delay_s=0.01), seconds=10.0)
    (consumer,) = lossy.rig.plane.snapshot().consumers
    assert resend_drops(lossy)["resend-over-budget"] > 0
    assert consumer.resent <= 50 + 0.5 * (consumer.packets - consumer.resent)
