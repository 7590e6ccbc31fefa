"""The differential fuzz for as long as one likes: `python -m tests.sfu.plane.fuzz_twins --packets 10000000`.

Histories as in `test_plane_twins`, longer and with more viewers, on all cores, each named by its seed. A difference
ends it with the seed and the profile that show it. The packets counted are those that each plane sent. RTP is compared
as it was encrypted: with the same keys and indices the plain bytes are the same where these are, and only there.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from itertools import count

from shared.rtc.srtp import SrtpProfile
from tests.sfu.plane.test_twins import Twins

STEPS = 2000
VIEWERS = 48
PROFILES = tuple(SrtpProfile)


@dataclass(frozen=True, slots=True)
class History:
    """What one came to."""

    seed: int
    profile: SrtpProfile
    given: int
    sent: int
    difference: str


def run(seed: int) -> History:
    """Play one history with both planes."""
    profile = PROFILES[seed % len(PROFILES)]
    twins = Twins(seed, profile, viewers=VIEWERS)
    compiled = twins.rigs[1]
    compiled.opens = False
    difference = ""
    try:
        for _ in range(STEPS):
            twins.step()
        twins.check()
    except AssertionError as error:
        difference = str(error).partition("\n")[0] or "an assertion failed"
    return History(seed, profile, compiled.given, len(compiled.wire), difference)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--packets", type=int, default=1_000_000, help="stop after this many were compared")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="seed of the first history")
    parser.add_argument("--processes", type=int, default=None, help="default: one per core")
    options = parser.parse_args()
    given = sent = histories = 0
    started = told = time.monotonic()
    with ProcessPoolExecutor(options.processes) as pool:
        seeds = count(options.seed)
        running: set[Future[History]] = {pool.submit(run, next(seeds)) for _ in range(8)}
        while sent < options.packets:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                history = future.result()
                given, sent, histories = given + history.given, sent + history.sent, histories + 1
                if history.difference:
                    print(f"seed {history.seed}, {history.profile.name}: {history.difference}", file=sys.stderr)
                    pool.shutdown(cancel_futures=True)
                    return 1
                running.add(pool.submit(run, next(seeds)))
            if time.monotonic() - told > 10:
                told = time.monotonic()
                print(f"{given:,} packets given, {sent:,} sent, {histories:,} histories", file=sys.stderr, flush=True)
        pool.shutdown(cancel_futures=True)
    minutes = (time.monotonic() - started) / 60
    print(
        f"no difference: {given:,} packets given to both, {sent:,} sent by each, "
        f"{histories:,} histories from seed {options.seed} on, {minutes:.1f} min"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
