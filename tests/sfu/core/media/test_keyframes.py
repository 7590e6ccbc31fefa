"""Key frame requests: merged, paced, repeated, dropped when no consumer asks any more."""

from __future__ import annotations

from sfu.core.media.keyframes import LAPSE_S, KeyframeRequests


def test_first_request_goes_out_at_once_and_others_join_it() -> None:
    requests = KeyframeRequests(interval_s=0.5)
    assert requests.request(now=10.0)
    assert not requests.request(now=10.1)
    assert not requests.request(now=10.4)
    assert requests.next_at(now=10.4) == 10.5


def test_open_request_is_repeated_each_interval() -> None:
    requests = KeyframeRequests(interval_s=0.5)
    requests.request(now=10.0)
    assert not requests.due(now=10.49)
    assert requests.due(now=10.5)
    assert not requests.due(now=10.6)
    assert requests.due(now=11.0)


def test_a_key_frame_answers_all_but_not_the_throttle() -> None:
    requests = KeyframeRequests(interval_s=0.5)
    requests.request(now=10.0)
    requests.keyframe_seen()
    assert not requests.due(now=12.0)
    requests = KeyframeRequests(interval_s=0.5)
    requests.request(now=10.0)
    requests.keyframe_seen()
    assert not requests.request(now=10.2), "so soon after the last one"
    assert requests.due(now=10.5)


def test_request_that_is_not_repeated_lapses() -> None:
    requests = KeyframeRequests(interval_s=0.5)
    requests.request(now=10.0)
    assert not requests.due(now=10.0 + LAPSE_S + 0.01)
    assert not requests.wanted
