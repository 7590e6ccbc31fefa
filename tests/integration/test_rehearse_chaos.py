"""Chaos runs as a user starts them: short ones, and again the rounds that have found something."""

from __future__ import annotations

import asyncio
import json
import signal
import sys

import pytest

pytestmark = pytest.mark.timeout(400)

FOUND = (
    # Seed, round, what it found.
    (
        1,
        6,
        "an SFU that was killed while Redis was paused stayed placeable for 10 s; resets in a handshake, tracebacks",
    ),
    (2, 14, "two SFUs killed at once: tracebacks of the bots' websockets"),
    (2, 15, "links frozen, and an SFU killed: the same"),
    (2, 23, "an SFU's links cut while its media flowed: its players gave it up"),
    (3, 6, "the same, while another SFU was paused"),
    (1, 3, "an SFU's signalling cut: its players were sent away"),
    (3, 2, "the same, while Redis was paused"),
    (3, 13, "all links cut for three seconds: a player was deaf for good, others until they could follow"),
    (3, 16, "an SFU's media cut: a subscribe connection was never opened again"),
    (12, 116, "a router killed while Redis was paused: players closed as replaced"),
    (11, 1, "an operator who gave up while Redis was away"),
)
"""Mended; a round that still breaks something is an issue, and no test."""
AT_ONCE = 2
"""Rounds that run at the same time: they wait more than they compute."""
NEEDS_QUIET = ("untouched media goes on",)
"""Gaps are for `sluice rehearse chaos` on a quiet machine; here other tests run at the same time."""


async def start(*more: str) -> asyncio.subprocess.Process:
    command = [sys.executable, "-m", "cli.main", "rehearse", "chaos", "--json", *more]
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=pipe)


async def chaos(*more: str) -> dict[str, object]:
    process = await start(*more)
    out, err = await process.communicate()
    assert out, err.decode()
    report: dict[str, object] = json.loads(out)
    assert process.returncode == (0 if report["passed"] else 1)
    return report


def broken(report: dict[str, object]) -> list[str]:
    found = report["violations"]
    assert isinstance(found, list)
    return [f"{each['principle']}: {each['sentence']}" for each in found if each["principle"] not in NEEDS_QUIET]


async def test_a_minute_of_chaos_breaks_no_principle() -> None:
    report = await chaos("--seed", "5", "--minutes", "1", "--longest-s", "8")
    assert broken(report) == []
    assert report["events"]
    assert (report["seed"], report["sfus"], report["bots"]) == (5, 3, 8)
    assert isinstance(report["audio_gap_ms_max_unaffected"], float)


@pytest.mark.timeout(1200)
async def test_rounds_that_found_something_do_not_find_it_again() -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def again(seed: int, number: int, what: str) -> list[str]:
        async with turns:
            report = await chaos("--seed", str(seed), "--first-round", str(number), "--minutes", "0.01")
        assert report["rounds"] == 1
        return [f"seed {seed}, round {number} ({what}): {each}" for each in broken(report)]

    found = await asyncio.gather(*(again(*each) for each in FOUND))
    assert [line for lines in found for line in lines] == []


async def test_ctrl_c_ends_it_with_a_report_of_the_rounds_so_far() -> None:
    process = await start("--minutes", "5")
    assert process.stderr is not None
    while b"round " not in (line := await process.stderr.readline()):
        assert line, "ended before the first round"
    process.send_signal(signal.SIGINT)
    out, _ = await asyncio.wait_for(process.communicate(), 30)
    assert json.loads(out)["rounds"] == 0
    assert process.returncode == 130
