"""A load of so many forwarded streams is what it says."""

from __future__ import annotations

import pytest

from bench.capacity.workload import count_streams, frames_of, has_camera, meeting


@pytest.mark.parametrize("room_size", [2, 3, 8, 30])
@pytest.mark.parametrize("cameras", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("streams", [2, 10, 100, 112, 113, 1000])
def test_it_has_as_many_streams_as_asked_or_one_less(streams: int, cameras: float, room_size: int) -> None:
    setup = meeting(streams, room_size=room_size, kbps=500, cameras=cameras)
    assert streams - 1 <= count_streams(setup) <= streams
    for subscriber in setup.subscribers:
        assert len(set(subscriber.publishers)) == len(subscriber.publishers) < room_size
        assert {setup.publishers[other].room for other in subscriber.publishers} == {subscriber.room}


def test_in_a_full_room_everybody_gets_the_others() -> None:
    setup = meeting(112, room_size=8, kbps=500, cameras=1.0)
    assert len(setup.publishers) == len(setup.subscribers) == 8
    for number, subscriber in enumerate(setup.subscribers):
        assert set(subscriber.publishers) == set(range(8)) - {number}


@pytest.mark.parametrize(("cameras", "shown"), [(0.0, 0), (0.25, 2), (0.5, 4), (1.0, 8)])
def test_the_share_of_cameras_is_kept(cameras: float, shown: int) -> None:
    assert sum(has_camera(place, cameras) for place in range(8)) == shown


@pytest.mark.parametrize("kbps", [50, 500, 1200, 2000, 4000])
def test_a_camera_is_as_fast_as_it_says(kbps: float) -> None:
    (frame,) = frames_of(kbps)
    assert sum(frame) * 8 * 30 / 1000 == pytest.approx(kbps, rel=0.01)
    assert max(frame) <= 1178
    assert max(frame) - min(frame) <= 1
