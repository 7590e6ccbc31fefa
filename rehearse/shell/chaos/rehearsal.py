"""A chaos run from start to report: a private fleet whose ways all lead through us, bots, and round after round."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict

from localfleet.config import FleetSize
from localfleet.errors import FleetFailed
from localfleet.fleet import Fleet, FleetSpec
from operators.shell.operations import open_store
from operators.shell.target import Target
from rehearse.config import ChaosCrowd, ChaosTime, CrowdSize
from rehearse.core.chaos.events import ChaosEvent
from rehearse.core.chaos.oracles import RECOVER_S, BrokenPrinciple, judge
from rehearse.core.chaos.plan import ChaosPlan
from rehearse.core.chaos.report import ChaosReport, ChaosViolation, done, violation, worst_gap
from rehearse.core.chaos.seen import ChaosSeen, Happened, touched_by
from rehearse.shell.chaos.acts import ChaosActs
from rehearse.shell.chaos.clocks import draw_skews, environments
from rehearse.shell.chaos.roads import ChaosRoads
from rehearse.shell.chaos.watch import ChaosWatch
from rehearse.shell.crowd import Crowd
from rehearse.shell.rehearsal import check
from rehearse.shell.stall import StallMeter
from shared.errors import BadSetting
from shared.store.server_name import server_name

JOINED_WITHIN_S = 60.0
SETTLED_WITHIN_S = 20.0
"""After everybody is heard again: records and views that a restart left are put right within a lease (15 s)."""
CALM_S = 2.0
LOOK_EVERY_S = 0.25


async def rehearse_chaos(
    *, size: FleetSize, crowd: CrowdSize, chaos: ChaosTime, say: Callable[[str], None]
) -> ChaosReport:
    """Run it. Raises `BadSetting` for sizes that make no sense, `FleetFailed` when the test bed fails."""
    check_chaos(size, crowd, chaos)
    names = [*(f"router-{n + 1}" for n in range(size.routers)), *(f"sfu-{n + 1}" for n in range(size.sfus))]
    skews = draw_skews(names, skew_s=chaos.skew_s, seed=crowd.seed)
    run = ChaosRun(size=size, crowd=crowd, chaos=chaos, say=say)
    with _interruptible(run.stopping):
        await run.play(environments(skews))
    return run.report(skews)


class ChaosRun:
    """One run. `stopping` ends it early; what the unfinished round has seen is not judged then."""

    def __init__(self, *, size: FleetSize, crowd: CrowdSize, chaos: ChaosTime, say: Callable[[str], None]) -> None:
        self.stopping = asyncio.Event()
        self._size = size
        self._crowd = crowd
        self._chaos = chaos
        self._say = say
        self._rounds: list[ChaosSeen] = []
        self._violations: list[ChaosViolation] = []
        self._began = self._over = time.monotonic()
        self._stall = StallMeter()
        self._logs = self._server = ""

    async def play(self, clocks: dict[str, dict[str, str]]) -> None:
        """From the fleet's start to its end."""
        plan = ChaosPlan(
            seed=self._crowd.seed,
            routers=tuple(f"router-{n + 1}" for n in range(self._size.routers)),
            sfus=tuple(f"sfu-{n + 1}" for n in range(self._size.sfus)),
            longest_s=self._chaos.longest_s,
        )
        async with self._scene(clocks) as scene, self._stall:
            await scene.wait_joined(self._crowd.bots)
            self._server = await server_name(scene.fleet.redis_url)
            self._began = time.monotonic()
            for events in plan.rounds(self._chaos.first_round):
                self._over = time.monotonic()
                if self._over - self._began > 60 * self._chaos.minutes or self.stopping.is_set():
                    return
                if events and not await self._round(scene, events):
                    return

    def report(self, skews: dict[str, float]) -> ChaosReport:
        """What came of it."""
        times = [seen.recovered_s for seen in self._rounds if seen.recovered_s is not None]
        return ChaosReport(
            violations=self._violations,
            events=[done(each, began=self._began) for seen in self._rounds for each in seen.happened],
            audio_gap_ms_max_unaffected=worst_gap(self._rounds),
            seed=self._crowd.seed,
            minutes=round((self._over - self._began) / 60, 2),
            passed=not self._violations,
            interrupted=self.stopping.is_set(),
            rounds=len(self._rounds),
            audio_gap_ms_bound=self._chaos.bound_ms,
            recovered_s_max=round(max(times), 1) if times else None,
            machine_stall_ms_max=round(self._stall.worst_ms, 1),
            bots=self._crowd.bots,
            rooms=self._crowd.rooms,
            sfus=self._size.sfus,
            routers=self._size.routers,
            clocks=skews,
            redis_server=self._server,
            logs=self._logs,
        )

    async def _round(self, scene: ChaosScene, events: list[ChaosEvent]) -> bool:
        """Play one round and judge it; False when the run can't go on."""
        self._say(f"round {events[0].round}: {', '.join(str(event) for event in events)}")
        watch = scene.watch
        watch.seen = seen = ChaosSeen()
        play = asyncio.create_task(scene.play(events, seen))
        stop = asyncio.create_task(self.stopping.wait())
        await asyncio.wait((play, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if not play.done():
            play.cancel()
            await asyncio.gather(play, return_exceptions=True)
            return False
        play.result()
        seen.stalls += self._stall.take()
        self._rounds.append(seen)
        self._over = time.monotonic()
        for broken in judge(seen, bound_ms=self._chaos.bound_ms):
            self._note(broken, events[0].round, scene, late_s=seen.late_s)
        if seen.recovered_s is not None:
            self._say(f"round {events[0].round}: all heard everybody {seen.recovered_s:.1f} s after the last event")
            return True
        return await scene.comes_back()

    def _note(self, broken: BrokenPrinciple, number: int, scene: ChaosScene, *, late_s: float) -> None:
        scene.fleet.keep_logs = True
        found = violation(
            broken, number=number, seed=self._crowd.seed, logs=self._logs, flags=self._flags(), late_s=late_s
        )
        self._violations.append(found)
        late = f"the machine was up to {found.machine_late_ms:.0f} ms late"
        self._say(f"BROKEN: {found.principle}: {found.sentence}; {late}; log {found.log}")

    def _flags(self) -> str:
        """What makes the plan and the fleet another one than usual, to see a violation again."""
        usual = {**asdict(FleetSize()), **asdict(ChaosCrowd()), **asdict(ChaosTime())}
        now = {**asdict(self._size), **asdict(self._crowd), **asdict(self._chaos)}
        names = ("bots", "rooms", "sfus", "routers", "longest_s", "skew_s")
        return "".join(f" --{name.replace('_', '-')} {now[name]:g}" for name in names if now[name] != usual[name])

    @asynccontextmanager
    async def _scene(self, clocks: dict[str, dict[str, str]]) -> AsyncIterator[ChaosScene]:
        spec = FleetSpec(
            routers=self._size.routers,
            sfus=self._size.sfus,
            server=self._size.server,
            fleet=f"chaos-{secrets.token_hex(4)}",
        )
        roads = ChaosRoads()
        try:
            async with Fleet(spec, say=self._say, roads=roads, clocks=clocks) as fleet:
                self._logs = str(fleet.logs)
                watch = ChaosWatch(fleet)
                target = Target(redis=fleet.redis_url, fleet=spec.fleet)
                async with open_store(target) as store, Crowd(fleet, self._crowd, video=False, hear=watch.hear) as bots:
                    acts = ChaosActs(fleet, roads, store, self._say)
                    looking = asyncio.create_task(watch.run(bots))
                    try:
                        yield ChaosScene(fleet, watch, acts, bots)
                    finally:
                        acts.go_on()
                        looking.cancel()
                        await asyncio.gather(looking, return_exceptions=True)
                watch.close()
        finally:
            await roads.close()


class ChaosScene:
    """The fleet, the bots, and the looking at them."""

    def __init__(self, fleet: Fleet, watch: ChaosWatch, acts: ChaosActs, bots: Crowd) -> None:
        self.fleet = fleet
        self.watch = watch
        self._acts = acts
        self._bots = bots

    async def wait_joined(self, bots: int) -> None:
        """Until all hear everybody. Raises `FleetFailed`."""
        began = time.monotonic()
        if not await self._until(lambda: len(self.watch.newest) == bots and not self.watch.deaf(since=began)):
            detail = f"do not all hear each other after {JOINED_WITHIN_S:.0f} s"
            raise FleetFailed(program="bots", detail=detail, log=self._bots.tail())
        await asyncio.sleep(CALM_S)
        self.watch.new_tracebacks()

    async def play(self, events: list[ChaosEvent], seen: ChaosSeen) -> None:
        """Events, recovery, and a last look."""
        began = time.monotonic()
        with _failures_alone():
            async with asyncio.TaskGroup() as tasks:
                for event in events:
                    tasks.create_task(self._event(event, began, seen))
        over = time.monotonic()
        if await self._until(lambda: not self.watch.deaf(since=over), within_s=RECOVER_S):
            seen.recovered_s = time.monotonic() - over
        await self._settle(seen)
        seen.ended = {name: how for name, how in self._ended().items() if name not in self._acts.down}
        seen.tracebacks = self.watch.new_tracebacks()

    async def comes_back(self) -> bool:
        """Whether everybody hears everybody after all, so that the run can go on."""
        now = time.monotonic()
        return await self._until(lambda: not self.watch.deaf(since=now), within_s=RECOVER_S)

    async def _event(self, event: ChaosEvent, round_began: float, seen: ChaosSeen) -> None:
        await asyncio.sleep(max(0.0, round_began + event.offset_s - time.monotonic()))
        happened = Happened(event, began=time.monotonic(), touched=touched_by(event, self.watch.newest))
        seen.happened.append(happened)
        undo = await self._acts.begin(event)
        due = happened.began + event.lasts_s
        while (left := due - time.monotonic()) > 0:
            await asyncio.sleep(min(left, 1.0))
            if happened.touched:
                # Who comes to a room, or to the SFU, meanwhile may hear it as well.
                happened.touched |= touched_by(event, self.watch.newest)
        await undo()
        happened.ended = time.monotonic()

    async def _settle(self, seen: ChaosSeen) -> None:
        """Give views and records their time; what is wrong after it stays in `seen`."""
        deadline = time.monotonic() + SETTLED_WITHIN_S
        while True:
            seen.unplaceable = await self.watch.unplaceable()
            seen.rooms = await self.watch.rooms()
            wrong = seen.unplaceable or any(sight.wrong for sight in seen.rooms)
            if not wrong or time.monotonic() > deadline:
                return
            await asyncio.sleep(1.0)

    def _ended(self) -> dict[str, str]:
        return {child.name: f"ended with status {child.exit_code}" for child in self.fleet.dead()}

    async def _until(self, condition: Callable[[], bool], *, within_s: float = JOINED_WITHIN_S) -> bool:
        deadline = time.monotonic() + within_s
        while not condition():
            if not self._bots.running:
                raise FleetFailed(program="bots", detail="ended in the middle of it", log=self._bots.tail())
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(LOOK_EVERY_S)
        return True


def check_chaos(size: FleetSize, crowd: CrowdSize, chaos: ChaosTime) -> None:
    """Raise `BadSetting` for what can't be played."""
    check(size, crowd)
    if size.redis:
        raise BadSetting(setting="--redis", detail="is killed and emptied here: chaos takes only a server of its own")
    if size.host != "127.0.0.1":
        raise BadSetting(setting="--host", detail="must be 127.0.0.1: every way of a chaos run stays on this machine")
    if size.routers < 2:
        raise BadSetting(setting="--routers", detail="must be at least 2: one is troubled and one is healthy")
    if not 0 < chaos.minutes <= 24 * 60:
        raise BadSetting(setting="--minutes", detail="must be more than 0, and at most a day")
    if chaos.first_round < 1:
        raise BadSetting(setting="--first-round", detail="counts from 1")
    if not 1 <= chaos.longest_s <= 300:
        raise BadSetting(setting="--longest-s", detail="must be 1 to 300")
    if not 20 <= chaos.bound_ms <= 60_000:
        raise BadSetting(setting="--bound-ms", detail="must be 20 to 60000")
    if not 0 <= chaos.skew_s <= 3600:
        raise BadSetting(setting="--skew-s", detail="must be 0 to 3600")


@contextmanager
def _failures_alone() -> Iterator[None]:
    """A test bed that fails in one of several tasks says so in its own sentence."""
    try:
        yield
    except ExceptionGroup as group:
        failed = group.subgroup(FleetFailed)
        if failed is None:
            raise
        raise next(error for error in failed.exceptions if isinstance(error, FleetFailed)) from None


@contextmanager
def _interruptible(stopping: asyncio.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM end the run in good order, with a report of the rounds that were played to their end."""
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number in numbers:
        loop.add_signal_handler(number, stopping.set)
    try:
        yield
    finally:
        for number in numbers:
            with contextlib.suppress(ValueError):
                loop.remove_signal_handler(number)
