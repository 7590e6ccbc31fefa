"""What a process has slept through is not held against others."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from websockets.asyncio.client import connect
from websockets.asyncio.server import ServerConnection, serve

from shared.patience import PatientClient, PatientClock, PatientServer, patient_timeout, stalled_s


class Hands:
    """A clock that is set by hand."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_clock_that_is_not_ticked_is_an_ordinary_one() -> None:
    hands = Hands()
    clock = PatientClock(clock=hands)
    hands.now += 50
    assert clock() == 150.0


def test_a_clock_stands_still_in_a_stall_and_never_goes_back() -> None:
    hands = Hands()
    clock = PatientClock(period_s=0.25, clock=hands)
    assert clock.tick() == 0.0
    hands.now += 0.25
    assert (clock.tick(), clock()) == (0.0, 100.25)
    hands.now += 10.25
    during = clock()
    assert during == 101.5, "the period and a second, whatever the stall"
    assert clock.tick() == 10.0
    assert clock() == during
    hands.now += 0.25
    clock.tick()
    assert clock() == during + 0.25


def test_lateness_of_less_than_a_second_is_no_stall() -> None:
    hands = Hands()
    clock = PatientClock(period_s=0.25, clock=hands)
    clock.tick()
    hands.now += 1.2
    assert clock.tick() == pytest.approx(0.95)
    assert clock() == 101.2
    assert (stalled_s(1.0), stalled_s(1.5)) == (0.0, 1.5)


@pytest.mark.process
async def test_a_time_out_does_not_count_the_time_in_which_the_loop_stood_still() -> None:
    done = asyncio.Event()
    asyncio.get_running_loop().call_later(0.8, done.set)
    async with patient_timeout(1.4):
        await asyncio.sleep(0)
        time.sleep(1.6)  # noqa: ASYNC251 - this is the stall
        await asyncio.sleep(0.4)
    with pytest.raises(TimeoutError):
        async with patient_timeout(0.05):
            await asyncio.sleep(5)


@pytest.mark.process
async def test_a_websocket_outlives_a_stall_of_its_own_process_that_is_longer_than_its_ping_time_out() -> None:
    """The far end answers the ping only after the stall."""
    ready, over, port = threading.Event(), threading.Event(), [0]
    stalled_until = [0.0]

    async def far_end() -> None:
        async def stay(connection: ServerConnection) -> None:
            await connection.wait_closed()

        async with serve(stay, "127.0.0.1", 0, ping_interval=None, create_connection=PatientServer) as server:
            port[0] = next(iter(server.sockets)).getsockname()[1]
            ready.set()
            while not over.is_set():
                await asyncio.sleep(0.02)
                if time.monotonic() < stalled_until[0]:
                    time.sleep(stalled_until[0] - time.monotonic())  # noqa: ASYNC251

    thread = threading.Thread(target=lambda: asyncio.run(far_end()))
    thread.start()
    await asyncio.to_thread(ready.wait)
    try:
        url = f"ws://127.0.0.1:{port[0]}"
        async with connect(
            url, ping_interval=0.3, ping_timeout=0.6, close_timeout=0.1, create_connection=PatientClient
        ) as near:
            stalled_until[0] = time.monotonic() + 1.9
            await asyncio.sleep(0.35)  # a ping is out
            time.sleep(1.4)  # noqa: ASYNC251
            await asyncio.sleep(0.5)
            await (await near.ping())
            stalled_until[0] = time.monotonic() + 3.0
            async with asyncio.timeout(2.5):
                await near.wait_closed()  # the other's silence alone is judged as ever
    finally:
        over.set()
        thread.join()
