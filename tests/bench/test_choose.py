"""The benchmark of choosing runs, agrees with sorting, and says whether it met its target."""

from __future__ import annotations

import json

import pytest

from bench.choose import ChooseTimes, app, measure, text
from router.core.selector.decision import Standing
from router.core.selector.index import Index


def test_it_measures_and_agrees_with_sorting() -> None:
    times = measure(sfus=60, choices=20)
    assert times.agrees
    assert min(times.choose_median_us, times.report_median_us, times.sort_median_us, times.place_median_us) > 0
    assert times.met == (times.choose_median_us < 50.0)


def test_a_choice_that_sorting_would_not_make_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Index.best

    def backwards(self: Index, **how: object) -> tuple[list[Standing], bool]:
        standings, ignored = honest(self, **how | {"count": 60})  # type: ignore[arg-type]
        return standings[::-1][:8], ignored

    monkeypatch.setattr(Index, "best", backwards)
    assert not measure(sfus=60, choices=20).agrees


def test_json_has_every_figure(capsys: pytest.CaptureFixture[str]) -> None:
    app(["40", "--choices", "10", "--json"], result_action="return_value")
    report = json.loads(capsys.readouterr().out)
    assert ChooseTimes(**report).sfus == 40
    assert "40 SFUs" in text(ChooseTimes(**report))
