"""How often one identity may join."""

from __future__ import annotations

import pytest

from router.core import join_pace
from router.core.join_pace import JoinPace


def test_an_identity_that_joins_for_ever_is_held_back_and_others_are_not() -> None:
    pace = JoinPace(per_minute=6)
    assert [pace.take("r", "ann", now=0.0) for _ in range(8)] == [True] * 6 + [False] * 2
    assert pace.take("r", "bob", now=0.0)
    assert pace.take("other", "ann", now=0.0)
    assert not pace.take("r", "ann", now=9.0)
    assert pace.take("r", "ann", now=10.0)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_pace, "MAX_IDENTITIES", 10)
    pace = JoinPace(per_minute=1)
    for number in range(100):
        assert pace.take("r", str(number), now=0.0)
    assert len(pace._buckets) == 10
    assert not pace.take("r", "99", now=0.0)
