"""What a listener makes of contents, and what the audience remembers."""

from __future__ import annotations

import pytest

from client_sim.core.audience import Audience
from client_sim.core.clip import BadClip, Clip, ClipIndex, check_clip
from client_sim.core.gaps import Stretch
from client_sim.core.listener import Listener, source_of
from shared.records import PublicationRecord

CLIP = Clip(
    audio=tuple(b"opus-%d" % n for n in range(50)),
    video=tuple(b"frame-%d" % n for n in range(20)),
    keys=(0, 10),
    fps=20,
    width=320,
    height=180,
)
INDEX = ClipIndex(CLIP)
OURS = source_of(CLIP.id)


def listener(kind: str = "audio", source: str = OURS) -> Listener:
    return Listener(publication="p", player="ann", kind=kind, source=source, index=INDEX)


def test_laps_of_the_clip_are_followed() -> None:
    one = listener()
    for n in range(120):
        assert one.take(CLIP.audio[n % 50], at=n * 0.02)
    report = one.report(now=120 * 0.02)
    assert (report.units, report.missing, report.duplicates, report.damaged) == (120, 0, 0, 0)


def test_a_lost_lap_is_counted_in_full() -> None:
    one = listener("video")
    one.take(CLIP.video[0], at=0.0)
    one.take(CLIP.video[1], at=1.05)
    report = one.report(now=1.05)
    assert (report.missing, report.longest_content_gap_ms) == (20, 1000.0)


def test_one_changed_byte_is_damage_and_no_unit() -> None:
    one = listener()
    assert not one.take(b"opus-X", at=0.0)
    assert one.report(now=0.0).damaged == 1
    assert one.report(now=0.0).units == 0


def test_a_foreign_publication_is_not_checked() -> None:
    one = listener(source="camera")
    assert not one.checked
    assert one.take(b"whatever", at=0.0)
    assert one.take(b"whatever", at=0.05)
    assert one.report(now=0.05).longest_gap_ms == pytest.approx(50)


def test_the_audience_keeps_what_ended_and_measures_since_a_mark() -> None:
    audience = Audience(INDEX)
    record = PublicationRecord(publication="p", player="ann", kind="audio", source=OURS, sfu="a")
    assert audience.since(Stretch.MOVE, "audio", now=0.0) is None
    audience.take(record, CLIP.audio[0], at=0.0)
    audience.take(record, CLIP.audio[1], at=0.5)
    audience.mark(Stretch.MOVE)
    audience.take(record, CLIP.audio[2], at=0.52)
    assert audience.since(Stretch.MOVE, "audio", now=0.52) == pytest.approx(20)
    audience.ended("p", now=5.0)
    (received,) = audience.received(now=9.0)
    assert received.report.longest_gap_ms == pytest.approx(500)
    assert audience.since(Stretch.MOVE, "audio", now=9.0) is None


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"audio": ()}, "no sound"),
        ({"video": ()}, "no sound"),
        ({"keys": ()}, "no key frame"),
        ({"keys": (3,)}, "no key frame"),
        ({"audio": CLIP.audio[:-1]}, "length"),
        ({"audio": (*CLIP.audio[:-1], CLIP.audio[0])}, "sound packets are the same"),
        ({"video": (*CLIP.video[:-1], CLIP.video[0])}, "frames are the same"),
        ({"format": 1}, "another version"),
    ],
)
def test_a_clip_that_can_not_be_told_apart_is_refused(changes: dict[str, object], word: str) -> None:
    facts = {name: getattr(CLIP, name) for name in Clip.__struct_fields__}
    with pytest.raises(BadClip, match=word):
        check_clip(Clip(**{**facts, **changes}))
