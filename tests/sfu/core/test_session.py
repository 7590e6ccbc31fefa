"""How long a session outlives its websocket; what a frame costs; which tokens are spent."""

from __future__ import annotations

from sfu.core.rate import frame_cost
from sfu.core.session import SessionLife
from sfu.core.spent import MAX_KEPT, SpentTokens
from shared.rate import TokenBucket


def test_with_a_websocket_it_lives() -> None:
    assert SessionLife().over(now=1e9, media_heard_at=None) == ""


def test_without_one_it_has_some_seconds_to_come_back() -> None:
    life = SessionLife(websocket_lost_at=100.0)
    assert life.over(now=104.9, media_heard_at=None) == ""
    assert life.over(now=105.0, media_heard_at=None) == "silent"


def test_while_its_media_goes_on_it_has_longer_but_not_for_ever() -> None:
    life = SessionLife(websocket_lost_at=100.0)
    assert life.over(now=110.0, media_heard_at=108.0) == ""
    assert life.over(now=110.0, media_heard_at=105.0) == "silent"
    assert life.over(now=3699.0, media_heard_at=3698.0) == "", "a player that has working media keeps it"
    assert life.over(now=3700.0, media_heard_at=3700.0) == "websocket"


def test_who_left_is_gone() -> None:
    assert SessionLife(left=True).over(now=0.0, media_heard_at=0.0) == "left"


def test_long_frames_cost_more() -> None:
    assert frame_cost(10) == 1
    rate = TokenBucket(now=0.0)
    assert sum(rate.take(frame_cost(200_000), now=0.0) for _ in range(10)) == 4


def test_spent_tokens_are_kept_until_they_would_have_expired() -> None:
    spent = SpentTokens(ttl_s=60.0)
    spent.spend("one", now=0.0)
    assert "one" in spent
    assert "two" not in spent
    spent.spend("two", now=60.0)
    assert "one" not in spent


def test_spent_tokens_are_bounded() -> None:
    spent = SpentTokens(ttl_s=60.0)
    for number in range(MAX_KEPT + 1):
        spent.spend(str(number), now=0.0)
    assert "0" not in spent
    assert str(MAX_KEPT) in spent
