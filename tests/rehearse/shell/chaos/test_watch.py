"""What is read out of logs."""

from __future__ import annotations

from rehearse.shell.chaos.clocks import draw_skews, environments
from rehearse.shell.chaos.watch import last_lines


def test_a_traceback_is_named_by_its_exception() -> None:
    text = b"""12:00 INFO fine
Traceback (most recent call last):
  File "a.py", line 1, in f
    g()
ValueError: no
12:01 INFO more
Traceback (most recent call last):
  File "b.py", line 2, in h
"""
    assert last_lines(text) == ["ValueError: no", "see the file"]
    assert last_lines(b"12:00 INFO fine\n") == []


def test_wrong_clocks_come_from_the_seed_and_only_when_asked_for() -> None:
    names = ["router-1", "sfu-1"]
    assert draw_skews(names, skew_s=0.0, seed=1) == {}
    assert environments({}) == {}
    skews = draw_skews(names, skew_s=20.0, seed=1)
    assert skews == draw_skews(names, skew_s=20.0, seed=1) != draw_skews(names, skew_s=20.0, seed=2)
    assert set(skews) == set(names)
    assert all(-20 <= skew <= 20 for skew in skews.values())
