"""A fleet that a roll works on, in memory: SFUs and routers follow orders as real ones do, a look later."""

from __future__ import annotations

from dataclasses import replace

from operators.core.roll import machine
from operators.core.roll.planning import RollOrder, make_plan
from operators.core.roll.seen import RolledRouter, RolledSfu, RollSeen
from shared.records import DrainReport, SfuStatus
from shared.roll_records import RollRecord, RollState


class RollWorld:
    """`now` is Redis' clock; a look takes a second."""

    def __init__(self, *sfus: str, routers: int = 0, version: str = "v1") -> None:
        self.now = 1000.0
        self.run = 1
        self.sfus = {sfu: RolledSfu(run=1, version=version, players=2) for sfu in sfus}
        self.routers = {f"router-{n + 1}": RolledRouter(boot="1", players=3) for n in range(routers)}
        self.reports: tuple[DrainReport, ...] = ()
        self.plan: RollRecord | None = None
        self.begun: set[machine.RollAct] = set()
        self.told: list[str] = []
        """Every act, in order."""
        self.most_active = 0
        self.fewest_ready = len(sfus)
        self.failed = 0
        self.freezes = 0
        self.cold: set[str] = set()
        """SFUs that never warm up."""
        self.broken: set[str] = set()
        """SFUs that can't be started."""
        self.slow: set[str] = set()
        """SFUs whose players stay."""

    def seen(self) -> RollSeen:
        seen = RollSeen(
            sfus=dict(self.sfus),
            routers=dict(self.routers),
            reports=self.reports,
            failed=self.failed,
            freezes=self.freezes,
        )
        self.failed = self.freezes = 0
        return seen

    def begin(self, version: str = "v2", *, spares: tuple[str, ...] = (), surge: int = 1, routers: bool = True) -> None:
        order = RollOrder(version=version, spares=spares, surge=surge, routers=routers)
        self.plan = make_plan(order, self.seen(), roll="r", by="ann", platform="hooks", now=self.now)
        self.begun.clear()

    @property
    def roll(self) -> RollRecord:
        assert self.plan is not None
        return self.plan

    def look(self, *, lose_answers: bool = False) -> None:
        """One look, and what it makes the fleet do."""
        self.now += 1
        self.plan = machine.advance(self.roll, self.seen(), now=self.now)
        for act in machine.acts(self.plan):
            if act not in self.begun:
                self.begun.add(act)
                self._do(act, lose_answers)
        self._follow()
        active = sum(step.stage not in ("waiting", "done") for step in self.plan.steps)
        self.most_active = max(self.most_active, active)
        self.fewest_ready = min(self.fewest_ready, sum(each.ready for each in self.sfus.values()))

    def look_on(self, looks: int = 200) -> RollRecord:
        """Until it is no longer running."""
        for _ in range(looks):
            if self.roll.state != RollState.RUNNING:
                break
            self.look()
        return self.roll

    def go_on(self) -> None:
        """The command was killed, or had paused, and is given again."""
        self.begun.clear()
        self.now += 15
        self.plan = machine.go_on(self.roll, self.seen(), now=self.now)

    def die(self, sfu: str) -> None:
        """Without a word."""
        self.sfus.pop(sfu, None)

    def end(self, sfu: str, *, evicted: int = 0) -> None:
        """Its drain ends."""
        self.sfus.pop(sfu)
        self.reports = (DrainReport(sfu=sfu, to_exit_s=self.now, evicted=evicted, players_at_cordon=2), *self.reports)

    def _do(self, act: machine.RollAct, lose_answers: bool) -> None:
        match act:
            case machine.StartSfu():
                self.told.append(f"start {act.sfu}")
                if act.sfu in self.broken:
                    self.plan = machine.failed(self.roll, act, "no such image")
                elif act.sfu not in self.sfus:
                    self.run += 1
                    self.sfus[act.sfu] = RolledSfu(run=self.run, version=self.roll.version, warmed_up=False)
            case machine.DrainSfu():
                self.told.append(f"drain {act.sfu}")
                if act.sfu in self.sfus:
                    self.sfus[act.sfu] = replace(self.sfus[act.sfu], status=SfuStatus.CORDONED)
            case machine.StopSfu():
                self.told.append(f"stop {act.sfu}")
                if not lose_answers:
                    self.plan = machine.done(self.roll, act, now=self.now)
            case machine.RestartRouter():
                self.told.append(f"restart {act.router}")
                old = self.routers[act.router]
                if old.boot == act.boot:
                    self.routers[act.router] = replace(old, boot=old.boot + "+")

    def _follow(self) -> None:
        for sfu, each in list(self.sfus.items()):
            if not each.warmed_up and sfu not in self.cold:
                self.sfus[sfu] = replace(each, warmed_up=True)
            if each.status is SfuStatus.CORDONED and sfu not in self.slow:
                self.end(sfu)
