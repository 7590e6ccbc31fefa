"""What is read out of logs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

from rehearse.shell.chaos.clocks import draw_skews, environments
from rehearse.shell.chaos.watch import ChaosWatch, last_lines


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


def test_a_silence_is_written_beside_the_words_with_what_the_machine_did(tmp_path: Path) -> None:
    watch = ChaosWatch(SimpleNamespace(logs=tmp_path))  # type: ignore[arg-type]
    watch.seen.waits.append((9.5, 0.4))
    reports = [
        {"bot": bot, "room": "r", "sfu": "s", "marked_audio_gap_ms": gap_ms, "gaps": {"audio_units": 1}}
        for bot, gap_ms in (("ann", 700.0), ("bob", 20.0), ("cid", None))
    ]
    watch.hear({"event": "report", "t": 10.0, "report": {"marked_send_lag_ms": 300.0, "reports": reports}})
    watch.close()
    (line,) = (tmp_path / "chaos-bots.jsonl").read_text().splitlines()
    assert json.loads(line) == {
        "t": 10.0, "bot": "ann", "event": "silence", "ms": 700, "machine": [[9.5, 0.4]], "lag": [[10.0, 0.3]],
    }  # fmt: skip
