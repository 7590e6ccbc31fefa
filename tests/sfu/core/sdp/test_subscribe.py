"""The subscribe negotiation: one offer in flight, m-lines in their places, and nothing forwarded that was not taken."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from sfu.core.sdp.formats import MediaFormat
from sfu.core.sdp.subscribe import Carried, Negotiated, NextOffer, SubscribeSession
from sfu.core.sdp.transport import LocalTransport
from shared.errors import BadSdp
from shared.rtc.sdp import (
    MAX_MEDIA,
    Direction,
    ExtensionUri,
    Fingerprint,
    MediaSection,
    SessionDescription,
    describe,
    host_candidate,
    parse,
    write,
)
from tests.budget import examples

FINGERPRINT = Fingerprint("sha-256", ":".join(["AB"] * 32))
OPUS = MediaFormat(kind="audio", name="opus")
VP8 = MediaFormat(kind="video", name="VP8")


def session() -> SubscribeSession:
    local = LocalTransport(
        ufrag="ours", pwd="o" * 24, fingerprint=FINGERPRINT, candidates=(host_candidate("127.0.0.1", 7101),)
    )
    return SubscribeSession(local=local, rng=random.Random(3))


def carried(publication: str, fmt: MediaFormat = OPUS, *, generation: int = 1, producer: int = 0) -> Carried:
    return Carried(
        publication=publication,
        generation=generation,
        player=f"player-of-{publication}",
        format=fmt,
        producer=producer or sum(publication.encode()),
    )


MIC, CAM, MIC2 = carried("mic"), carried("cam", VP8), carried("mic2")


def browser_answer(offer: NextOffer, **changes: MediaSection) -> SessionDescription:
    """What a browser says: takes all, receives what is sent. `changes` replace sections, as `m0=...`."""
    sections = []
    for number, line in enumerate(offer.description.media):
        section = replace(
            line,
            direction=Direction.RECVONLY if line.direction is Direction.SENDONLY else Direction.INACTIVE,
            ufrag="them",
            pwd="t" * 24,
            setup="active",
            ssrcs=(),
            fid_groups=(),
            msid="",
        )
        sections.append(changes.get(f"m{number}", section))
    return parse(write(describe(sections, session_id="1", version=1)))


def exchange(negotiation: SubscribeSession, *wanted: Carried) -> Negotiated:
    """One whole offer and answer."""
    negotiation.release({item.publication: item for item in wanted})
    offer = negotiation.next_offer(wanted, now=0.0)
    assert offer is not None
    answered = negotiation.answer(offer.negotiation, browser_answer(offer))
    assert answered is not None
    return answered


def test_each_publication_gets_a_line_and_starts_once_it_is_answered() -> None:
    negotiation = session()
    offer = negotiation.next_offer([MIC, CAM], now=0.0)
    assert offer is not None
    assert [(t.mid, t.publication, t.kind) for t in offer.tracks] == [("0", "mic", "audio"), ("1", "cam", "video")]
    audio, video = parse(write(offer.description)).media
    assert (audio.direction, audio.setup, audio.msid) == (Direction.SENDONLY, "actpass", "player-of-mic mic")
    assert audio.ssrcs[0].cname == "player-of-mic"
    assert len(video.fid_groups) == 1
    assert offer.description.ice_lite
    answered = negotiation.answer(1, browser_answer(offer))
    assert answered is not None
    mic, cam = answered.accepted
    assert (mic.codec.pt, mic.ssrc, mic.rtx_pt) == (111, audio.ssrcs[0].ssrc, None)
    assert (cam.codec.pt, cam.rtx_pt, (cam.ssrc, cam.rtx_ssrc)) == (96, 97, video.fid_groups[0])
    assert cam.extensions[ExtensionUri.MID] == 1
    assert answered.remote is not None
    assert answered.remote.ufrag == "them"


def test_transport_wide_numbers_are_offered_everywhere_under_one_id_and_taken_only_with_feedback() -> None:
    negotiation = session()
    offer = negotiation.next_offer([MIC, CAM], now=0.0)
    assert offer is not None
    for offered in offer.description.media:
        assert offered.extension_id(ExtensionUri.TRANSPORT_CC) == 5
        assert "transport-cc" in offered.codecs[0].feedback
        assert ("rrtr" in offered.codecs[0].feedback) == (offered.kind == "video")
    answer = browser_answer(offer)
    silent = tuple(replace(codec, feedback=("nack",)) for codec in answer.media[1].codecs)
    answered = negotiation.answer(1, replace(answer, media=(answer.media[0], replace(answer.media[1], codecs=silent))))
    assert answered is not None
    mic, cam = answered.accepted
    assert mic.extensions[ExtensionUri.TRANSPORT_CC] == 5
    assert ExtensionUri.TRANSPORT_CC not in cam.extensions


def test_one_offer_is_in_flight_at_a_time_and_the_next_has_a_higher_number() -> None:
    negotiation = session()
    first = negotiation.next_offer([MIC], now=0.0)
    assert first is not None
    assert negotiation.next_offer([MIC, CAM], now=0.0) is None
    negotiation.answer(1, browser_answer(first))
    second = negotiation.next_offer([MIC, CAM], now=0.0)
    assert second is not None
    assert second.negotiation == 2
    assert negotiation.answer(1, browser_answer(first)) is None, "an answer to an older offer is ignored"
    answered = negotiation.answer(2, browser_answer(second))
    assert answered is not None
    assert [a.carried for a in answered.accepted] == [CAM]


def test_nothing_is_offered_when_nothing_changed() -> None:
    negotiation = session()
    exchange(negotiation, MIC)
    assert negotiation.next_offer([MIC], now=0.0) is None


def test_a_line_is_inactive_when_its_publication_goes_and_is_taken_by_the_next_of_its_kind() -> None:
    negotiation = session()
    exchange(negotiation, MIC, CAM)
    assert negotiation.release({"cam": CAM}) == ["mic"]
    gone = negotiation.next_offer([CAM], now=0.0)
    assert gone is not None
    assert gone.description.media[0].direction is Direction.INACTIVE
    assert [t.publication for t in gone.tracks] == ["cam"]
    negotiation.answer(gone.negotiation, browser_answer(gone))
    again = negotiation.next_offer([CAM, MIC2], now=0.0)
    assert again is not None
    assert [(t.mid, t.publication) for t in again.tracks] == [("0", "mic2"), ("1", "cam")]
    assert len(again.description.media) == 2


def test_a_republished_publication_is_offered_on_its_line_with_new_numbers() -> None:
    negotiation = session()
    (old,) = exchange(negotiation, CAM).accepted
    newer = replace(CAM, generation=2, producer=99)
    assert negotiation.release({"cam": newer}) == ["cam"]
    (new,) = exchange(negotiation, newer).accepted
    assert new.mid == old.mid
    assert {new.ssrc, new.rtx_ssrc}.isdisjoint({old.ssrc, old.rtx_ssrc})


def test_what_goes_while_its_offer_is_in_flight_is_not_started() -> None:
    negotiation = session()
    offer = negotiation.next_offer([MIC, CAM], now=0.0)
    assert offer is not None
    assert negotiation.release({"cam": CAM}) == [], "it was not forwarded yet"
    answered = negotiation.answer(1, browser_answer(offer))
    assert answered is not None
    assert [a.carried for a in answered.accepted] == [CAM]


def test_a_codec_that_is_not_taken_is_refused_and_not_offered_again() -> None:
    negotiation = session()
    offer = negotiation.next_offer([MIC, CAM], now=0.0)
    assert offer is not None
    video = browser_answer(offer).media[1]
    no_vp8 = replace(video, codecs=video.codecs[1:])
    answered = negotiation.answer(1, browser_answer(offer, m1=no_vp8))
    assert answered is not None
    assert answered.refused == ("cam",)
    assert [a.carried for a in answered.accepted] == [MIC]
    assert exchange(negotiation, MIC, CAM).accepted == (), "one more offer, in which the line is inactive"
    assert negotiation.next_offer([MIC, CAM], now=0.0) is None


def test_a_rejected_line_stays_dead_and_the_rest_goes_on() -> None:
    negotiation = session()
    offer = negotiation.next_offer([MIC, CAM], now=0.0)
    assert offer is not None
    dead = replace(browser_answer(offer).media[0], port=0)
    answered = negotiation.answer(1, browser_answer(offer, m0=dead))
    assert answered is not None
    assert (answered.refused, [a.carried for a in answered.accepted]) == (("mic",), [CAM])
    offer = negotiation.next_offer([CAM, MIC2], now=0.0)
    assert offer is not None
    assert [(section.mid, section.rejected) for section in offer.description.media] == [
        ("0", True),
        ("1", False),
        ("2", False),
    ]


def test_without_rtx_in_the_answer_there_is_none() -> None:
    negotiation = session()
    offer = negotiation.next_offer([CAM], now=0.0)
    assert offer is not None
    video = browser_answer(offer).media[0]
    answered = negotiation.answer(1, browser_answer(offer, m0=replace(video, codecs=video.codecs[:1])))
    assert answered is not None
    assert (answered.accepted[0].rtx_pt, answered.accepted[0].rtx_ssrc) == (None, None)


def test_profiles_of_h264_have_payload_types_of_their_own() -> None:
    negotiation = session()
    formats = [MediaFormat(kind="video", name="H264", profile=f"42e0{n:02x}") for n in range(9)]
    offer = negotiation.next_offer([carried(f"cam{n}", fmt) for n, fmt in enumerate(formats)], now=0.0)
    assert offer is not None
    types = [section.codecs[0].pt for section in offer.description.media]
    assert len(types) == len(set(types)) == 8
    assert negotiation.left_out == 1
    assert offer.description.media[0].codecs[0].parameters["profile-level-id"] == "42e000"


def test_stereo_and_mono_have_payload_types_of_their_own_also_after_a_republication() -> None:
    stereo = replace(OPUS, stereo=True)
    negotiation = session()
    both = exchange(negotiation, carried("music", stereo), MIC).accepted
    assert [(item.codec.pt, item.codec.parameters.get("stereo")) for item in both] == [(111, "1"), (110, None)]
    (again,) = exchange(negotiation, carried("music", stereo, generation=2, producer=9), MIC).accepted
    assert again.codec == both[0].codec
    (now_mono,) = exchange(negotiation, carried("music", generation=3, producer=10), MIC).accepted
    assert now_mono.codec == both[1].codec


def test_an_answer_with_another_h264_profile_is_a_refusal() -> None:
    negotiation = session()
    offer = negotiation.next_offer([carried("cam", MediaFormat(kind="video", name="H264", profile="640c1f"))], now=0.0)
    assert offer is not None
    video = browser_answer(offer).media[0]
    codec = video.codecs[0]
    baseline = replace(codec, fmtp=codec.fmtp.replace("640c1f", "42e01f"))
    answered = negotiation.answer(1, browser_answer(offer, m0=replace(video, codecs=(baseline, *video.codecs[1:]))))
    assert answered is not None
    assert (answered.accepted, answered.refused) == ((), ("cam",))


def test_there_are_no_more_lines_than_a_description_may_have() -> None:
    negotiation = session()
    offer = negotiation.next_offer([carried(f"p{n}") for n in range(MAX_MEDIA + 5)], now=0.0)
    assert offer is not None
    assert len(offer.tracks) == MAX_MEDIA
    assert negotiation.left_out == 5
    parse(write(offer.description))


@pytest.mark.parametrize(
    ("change", "missing"),
    [
        (lambda a: replace(a, media=a.media[:1]), "m-lines"),
        (lambda a: replace(a, bundle=()), "BUNDLE"),
        (lambda a: replace(a, media=tuple(replace(s, setup="passive") for s in a.media)), "setup"),
        (lambda a: replace(a, media=(a.media[1], a.media[0])), "answered with mid"),
        (lambda a: replace(a, media=tuple(replace(s, fingerprints=()) for s in a.media)), "fingerprint"),
    ],
)
def test_a_bad_answer_is_refused_and_leaves_the_way_free(change: object, missing: str) -> None:
    negotiation = session()
    offer = negotiation.next_offer([MIC, CAM], now=0.0)
    assert offer is not None
    with pytest.raises(BadSdp, match=missing):
        negotiation.answer(1, change(browser_answer(offer)))  # type: ignore[operator]
    assert negotiation.next_offer([MIC, CAM], now=0.0) is None, "the same is not offered for ever"
    assert [a.carried for a in exchange(negotiation, MIC, CAM, MIC2).accepted] == [MIC, CAM, MIC2]


def test_an_offer_whose_answer_got_lost_is_made_again() -> None:
    negotiation = session()
    negotiation.next_offer([MIC], now=0.0)
    assert not negotiation.overdue(now=9.9)
    assert negotiation.overdue(now=10.0)
    negotiation.offer_again()
    assert exchange(negotiation, MIC).accepted[0].carried == MIC


class AnyNegotiation(RuleBasedStateMachine):
    """Random wishes and answers: what is forwarded is always what was accepted and is still wanted."""

    def __init__(self) -> None:
        super().__init__()
        self.negotiation = session()
        self.wanted: dict[str, Carried] = {}
        self.forwarded: dict[str, Carried] = {}
        self.offer: NextOffer | None = None
        self.mids: dict[int, str] = {}

    @rule(name=st.sampled_from("abcde"), generation=st.integers(0, 3))
    def wish(self, name: str, generation: int) -> None:
        fmt = VP8 if name in "ab" else OPUS
        if generation:
            self.wanted[name] = carried(name, fmt, generation=generation, producer=100 * generation + ord(name))
        else:
            self.wanted.pop(name, None)
        for publication in self.negotiation.release(self.wanted):
            del self.forwarded[publication]
        self.speak()

    def speak(self) -> None:
        offer = self.negotiation.next_offer(self.wanted.values(), now=0.0)
        if offer is not None:
            assert self.offer is None, "two offers in flight"
            self.offer = offer
            for number, section in enumerate(offer.description.media):
                assert self.mids.setdefault(number, section.mid) == section.mid

    @rule(takes=st.booleans())
    @precondition(lambda self: self.offer is not None)
    def answer(self, takes: bool) -> None:
        offer, self.offer = self.offer, None
        assert offer is not None
        description = browser_answer(offer)
        if not takes:
            description = replace(description, bundle=())
        try:
            answered = self.negotiation.answer(offer.negotiation, description)
        except BadSdp:
            assert not takes
            self.speak()
            return
        assert answered is not None
        for item in answered.accepted:
            assert item.carried.publication not in self.forwarded
            self.forwarded[item.carried.publication] = item.carried
        self.speak()

    @invariant()
    def only_what_is_wanted_is_forwarded(self) -> None:
        assert all(self.wanted.get(name) == item for name, item in self.forwarded.items())

    def teardown(self) -> None:
        """Once everything is answered, and something has changed since the last bad answer, all that is wanted is
        forwarded."""
        for generation in (0, 1):
            self.wish("e", generation)
        for _ in range(4):
            if self.offer is not None:
                self.answer(takes=True)
        assert set(self.forwarded) == set(self.wanted)


TestAnyNegotiation = AnyNegotiation.TestCase
TestAnyNegotiation.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
