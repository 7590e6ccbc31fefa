"""`sluice bench choose`: how long a router takes to choose among ten thousand SFUs, and to take in a report of one.

The real directory, order and plan, without sockets and without Redis, whose part is a round trip of its own. Each
figure is the median of many, in CPU time of this thread, so that other programs of the machine do not count. The target
is a choice within 50 µs. It also checks that what was chosen is what sorting the whole fleet would have chosen.
"""

from __future__ import annotations

import gc
import json
import random
import time
from dataclasses import asdict, dataclass
from typing import Annotated

import msgspec
from cyclopts import App, Parameter

from bench.stats import percentile
from router.core.assignment import Assigner
from router.core.directory import MAX_SFUS, Directory
from router.core.plan import Ask
from router.core.selector.ladder import Preference
from router.core.selector.node_selector import NodeSelector
from shared.errors import BadSetting
from shared.placing import PlacedRoom
from shared.records import LoadParts, RoomPlacement, SfuState

TARGET_US = 50.0
MOST_CHOICES = 1_000_000
CELLS = ("east", "west", "south")
app = App(name="choose", help="Time to choose among many SFUs.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChooseTimes:
    """The figures [µs]. Keys are what `--json` prints."""

    sfus: int
    choices: int
    choose_median_us: float
    """A plan: who is eligible, best first, with scores and reasons."""
    choose_p99_us: float
    choose_in_cell_median_us: float
    """The same for a player that prefers a cell."""
    place_median_us: float
    """A plan, what is in flight counted, and the decision."""
    report_median_us: float
    """One SFU's report taken in and the order kept."""
    sort_median_us: float
    """For comparison: the whole fleet sorted, which is the rule in its plainest form."""
    agrees: bool
    """Each choice checked was the one that sorting gives."""
    target_us: float = TARGET_US
    met: bool = False


@app.default
def choose(
    sfus: Annotated[int, Parameter(help="SFUs in the fleet.")] = 10_000,
    *,
    choices: Annotated[int, Parameter(help="How often to choose.")] = 5_000,
    json_: Annotated[bool, Parameter(name="--json")] = False,
) -> int:
    """Measure and print; status 1 when the median misses the target or a choice is wrong."""
    if not 1 <= sfus <= MAX_SFUS or not 1 <= choices <= MOST_CHOICES:
        detail = f"takes 1 to {MAX_SFUS} SFUs, as many as a router knows, and 1 to {MOST_CHOICES} choices"
        raise BadSetting(setting="bench choose", detail=detail)
    times = measure(sfus=sfus, choices=choices)
    print(json.dumps(asdict(times)) if json_ else text(times))
    return 0 if times.met and times.agrees else 1


def text(times: ChooseTimes) -> str:
    """The report for people."""
    verdict = "met" if times.met else "missed"
    same = "the same as" if times.agrees else "NOT the same as"
    return "\n".join(
        (
            f"{times.sfus} SFUs, {times.choices} choices",
            f"choosing: median {times.choose_median_us:.1f} µs, 99 % {times.choose_p99_us:.1f} µs "
            f"(target < {times.target_us:.0f} µs, {verdict}); in a cell {times.choose_in_cell_median_us:.1f} µs",
            f"choosing, counting and deciding: median {times.place_median_us:.1f} µs",
            f"taking in a report: median {times.report_median_us:.1f} µs",
            f"sorting them all would take {times.sort_median_us:.0f} µs; the choices were {same} its",
        )
    )


def measure(*, sfus: int, choices: int, seed: int = 1) -> ChooseTimes:
    """Build a fleet and choose."""
    fleet = _Fleet(sfus, random.Random(seed))
    gc.collect()
    gc.freeze()
    plans = [fleet.choose() for _ in range(choices)]
    in_cell = [fleet.choose(cell=CELLS[n % len(CELLS)]) for n in range(choices)]
    placed = [fleet.place() for _ in range(choices)]
    reports = [fleet.report() for _ in range(choices)]
    sorts = [fleet.sort() for _ in range(max(5, choices // 500))]
    gc.unfreeze()
    median = percentile(plans, 0.5)
    return ChooseTimes(
        sfus=sfus,
        choices=choices,
        choose_median_us=round(median, 2),
        choose_p99_us=round(percentile(plans, 0.99), 2),
        choose_in_cell_median_us=round(percentile(in_cell, 0.5), 2),
        place_median_us=round(percentile(placed, 0.5), 2),
        report_median_us=round(percentile(reports, 0.5), 2),
        sort_median_us=round(percentile([took for took, _ in sorts], 0.5), 1),
        agrees=all(same for _, same in sorts),
        met=median < TARGET_US,
    )


class _Fleet:
    """Ten thousand reports and a router's core on them."""

    def __init__(self, sfus: int, rng: random.Random) -> None:
        self.rng = rng
        self.directory = Directory()
        self.assigner = Assigner(self.directory, NodeSelector())
        self.states = [self._state(n) for n in range(sfus)]
        for state in self.states:
            self.directory.hear(state, now=0.0)
        self.number = 0

    def _state(self, n: int) -> SfuState:
        clients = self.rng.randrange(400)
        # Two decimals, so that there are as many ties as among reports of real SFUs at rest.
        load = round(min(1.0, clients / 400 * self.rng.uniform(0.5, 1.5)), 2)
        parts = LoadParts(cpu=load / 2, sysload=load, clients=clients, rooms=clients // 8)
        return SfuState(
            sfu=f"sfu-{n}",
            address=f"ws://10.0.{n >> 8}.{n & 255}:7100/media",
            incarnation=1,
            revision=1,
            load=load,
            load_parts=parts,
            cell=CELLS[n % len(CELLS)],
            version="v1",
            warmed_up=True,
        )

    def choose(self, *, cell: str = "") -> float:
        """One plan [µs]."""
        ask = Ask(room="room", preference=Preference(cell=cell))
        start = time.thread_time_ns()
        self.assigner.plan(ask, room_had="", now=1.0, rng=self.rng)
        return (time.thread_time_ns() - start) / 1000

    def place(self) -> float:
        """One placement on this router alone [µs]."""
        start = time.thread_time_ns()
        plan = self.assigner.plan(Ask(room="room"), room_had="", now=1.0, rng=self.rng)
        placed = PlacedRoom(placement=RoomPlacement(sfu=plan.eligible[0]), fresh=True)
        decision = self.assigner.settle(plan, placed, carrying=(), now=1.0)
        assert decision is not None
        assert decision.chosen is not None
        self.assigner.standings.placed_alone(decision.chosen, rooms=1, now=1.0)
        return (time.thread_time_ns() - start) / 1000

    def report(self) -> float:
        """One report of an SFU [µs]."""
        n = self.number = (self.number + 7919) % len(self.states)
        state = self.states[n] = msgspec.structs.replace(self._state(n), revision=self.states[n].revision + 1)
        start = time.thread_time_ns()
        self.directory.hear(state, now=1.0)
        return (time.thread_time_ns() - start) / 1000

    def sort(self) -> tuple[float, bool]:
        """The whole fleet sorted [µs], and whether the choice is as good."""
        standings = self.assigner.standings.all()
        start = time.thread_time_ns()
        best = sorted(each.order for each in standings)
        took_us = (time.thread_time_ns() - start) / 1000
        plan = self.assigner.plan(Ask(room="room"), room_had="", now=1.0, rng=self.rng)
        return took_us, [each.order for each in plan.candidates] == best[: len(plan.candidates)]


if __name__ == "__main__":
    raise SystemExit(app())
