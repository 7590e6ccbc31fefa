"""A pool, its SFUs, a store and controllers on a clock that a test holds: the autoscaler without any I/O."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from control.core.autoscaler.decide import confirm_launch, decide
from control.core.autoscaler.effects import Effect, Launch, LeaseCordon, PreferVictim, TakeBack, Terminate, TickDecision
from control.core.autoscaler.samples import NodeCeilings, Samples
from control.core.autoscaler.world import Moment, join
from control.core.pool import Listing, NodePhase, PoolNode
from control.core.scaling_settings import ScalingSettings
from shared.records import Capacities, Drain, DrainCause, LoadParts, SfuState
from shared.scaling_records import AUTOSCALER, ScaleAction, ScalingRecord, ScalingState

START_AT = 1_800_000_000.0


@dataclass
class Sfu:
    """One SFU as it really is. A test changes its fields as it likes."""

    sfu: str
    streams: int = 100
    players: int = 10
    cpu: float = 0.1
    egress_bps: float = 50e6
    warmed_up: bool = True
    registered: bool = True
    """False: no router knows it."""
    silent: bool = False
    """Its record stands, but it does not report."""
    by: str = ""
    """Who has cordoned it."""
    sigterm: bool = False
    deaf: bool = False
    """Commands do not reach it."""
    incarnation: int = 1
    revision: int = 0
    capacities: Capacities = field(default_factory=lambda: Capacities(egress_mbps=700, streams=1000))

    def empty(self) -> None:
        """Its last player leaves."""
        self.streams = self.players = 0
        self.egress_bps = 0.0

    def state(self) -> SfuState:
        cordoned = bool(self.by) or self.sigterm
        cause = DrainCause.SIGTERM if self.sigterm else DrainCause.OPERATOR
        return SfuState(
            address=f"ws://{self.sfu}",
            sfu=self.sfu,
            status="CORDONED" if cordoned else "ONLINE",
            drain=Drain(by=self.by or "signal", cause=cause.value, exit_when_empty=False) if cordoned else None,
            incarnation=self.incarnation,
            revision=self.revision,
            warmed_up=self.warmed_up,
            capacities=self.capacities,
            load_parts=LoadParts(cpu=self.cpu, egress_bps=self.egress_bps, streams=self.streams, rooms=1),
            players=self.players,
            consumers=self.streams,
            producers=self.players,
        )


@dataclass(frozen=True)
class Done:
    """Something that has really happened to the pool."""

    at: float
    """Real seconds."""
    what: str
    node: str
    streams: int | None = None
    request: str = ""
    late: bool = False
    """Done by a controller that was paused within the call and led no longer."""


class PoolDown(Exception):
    """The pool does not answer, or its answer got lost."""


class RigPool:
    """The pool: idempotent by request, with a journal of what was really done."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self.nodes: dict[str, PoolNode] = {}
        self.down = False
        self.partial = False
        self.loses_answers = False
        """Calls are done, and say that they failed."""
        self.launches_warm = True
        """A launched node is capacity at once."""
        self.stuck: set[str] = set()
        """Nodes that can't be ended."""

    def listing(self) -> Listing | None:
        if self.down:
            return None
        nodes = tuple(self.nodes.values())
        return Listing(nodes=nodes[1:] if self.partial else nodes, complete=not self.partial)

    def add(self, name: str, **fields: Any) -> Sfu:
        """A node that was there before."""
        sfu = self._rig.sfus[name] = Sfu(name, **fields)
        self.nodes[name] = PoolNode(node=name, sfu=name, phase=NodePhase.RUNNING)
        return sfu

    def launch(self, request: str) -> PoolNode:
        if self.down:
            raise PoolDown
        node = next((node for node in self.nodes.values() if node.request == request), None)
        if node is None:
            name = f"n-{request}"
            node = PoolNode(node=name, sfu=name, phase=NodePhase.RUNNING, request=request)
            self.nodes[name] = node
            new = self._rig.sfus[name] = Sfu(name, streams=0, players=0, egress_bps=0.0)
            new.warmed_up = new.registered = self.launches_warm
            self._rig.did("launch", name, request=request)
        if self.loses_answers:
            raise PoolDown
        return node

    def terminate(self, node: str) -> None:
        if self.down:
            raise PoolDown
        if node in self.stuck:
            raise PoolDown
        if node in self.nodes:
            sfu = self._rig.sfus.get(node)
            failed = self.nodes[node].phase is NodePhase.FAILED
            self._rig.did("sweep" if failed else "terminate", node, streams=sfu.streams if sfu else None)
            if sfu is not None and sfu.streams and not failed:
                sfu.sigterm = True  # it drains, as it does at any SIGTERM
                return
            del self.nodes[node]
            self._rig.sfus.pop(node, None)
        if self.loses_answers:
            raise PoolDown


@dataclass
class Controller:
    """One controller process; `held` is what it had decided and stored when it was paused."""

    name: str
    samples: Samples
    token: int = 0
    last_tick: float | None = None
    held: tuple[TickDecision, int] | None = None


class Rig:
    """All of it. `tick()` is a tick of the leader, `pass_time` lets the world go on without one."""

    def __init__(self, settings: ScalingSettings | None = None, *, nodes: int = 3, **fields: Any) -> None:
        self.settings = settings or ScalingSettings()
        self.now = 1000.0
        """Real, monotonic seconds."""
        self.clock_error_s = 0.0
        """How wrong Redis' clock is."""
        self.sfus: dict[str, Sfu] = {}
        self.journal: list[Done] = []
        self.pool = RigPool(self)
        self.state = ScalingState()
        self.audit: list[ScalingRecord] = []
        self.token = 0
        self.refused = 0
        self.late = False
        self.deaf_store = False
        """Commands are lost on their way to Redis."""
        self.routers_away = False
        """No report of any SFU gets through."""
        self.decisions: list[tuple[float, TickDecision]] = []
        self.leader = self.new_leader("a")
        for number in range(nodes):
            self.pool.add(f"s{number}", **fields)

    # --- the world ---

    def did(self, what: str, node: str, *, streams: int | None = None, request: str = "") -> None:
        self.journal.append(Done(self.now, what, node, streams, request, self.late))

    def done(self, what: str) -> list[Done]:
        return [each for each in self.journal if each.what == what]

    def load(self, share: float) -> None:
        """Give each SFU that takes new work this share of its stream ceiling."""
        for sfu in self.sfus.values():
            if not sfu.by and not sfu.sigterm and sfu.warmed_up:
                sfu.streams, sfu.players, sfu.egress_bps = int(share * sfu.capacities.streams), 10, 1e6

    def pass_time(self, seconds: float) -> None:
        """The leader looks at the world and does not tick."""
        for part in (seconds / 2, seconds - seconds / 2):
            self.now += part
            for sfu in self.sfus.values():
                sfu.revision += not sfu.silent and not self.routers_away
            self.leader.samples.look((s.state() for s in self.sfus.values() if s.registered), now=self.now)

    # --- controllers ---

    def new_leader(self, name: str) -> Controller:
        """Another controller leads from now on."""
        self.token += 1
        ceilings = NodeCeilings(egress_mbps=self.settings.egress_ceiling_mbps, streams=self.settings.stream_ceiling)
        samples = Samples(ceilings=ceilings, max_age_s=self.settings.report_max_age_s)
        self.leader = Controller(name, samples, token=self.token)
        return self.leader

    def tick(self, *, crash_after: int | None = None) -> TickDecision:
        """A tick of the leader, a tick's length after the last. `crash_after`: it dies after that many effects."""
        self.pass_time(self.settings.tick_s)
        decision = self._think()
        self.store(self.leader.token, decision)
        self.act(self.leader.token, decision, upto=crash_after)
        if any(isinstance(effect, LeaseCordon | TakeBack) for effect in decision.effects):
            self.pass_time(0.0)  # what was commanded is followed, reported and seen within a second or two
        return decision

    def pause(self) -> Controller:
        """The leader decides, stores, and is stopped before it acts."""
        self.pass_time(self.settings.tick_s)
        decision = self._think()
        self.store(self.leader.token, decision)
        self.leader.held = (decision, self.leader.token)
        return self.leader

    def resume(self, controller: Controller) -> None:
        """A stopped controller goes on where it was, within its first call: the worst moment there is. Before any other
        it looks at the clock and finds that its lease is over."""
        if controller.held is not None:
            decision, token = controller.held
            controller.held = None
            self.late = True
            self.act(token, decision, upto=1)
            self.late = False

    def _think(self) -> TickDecision:
        leader, now = self.leader, self.now
        first = leader.last_tick is None
        moment = Moment(
            now_at=START_AT + now + self.clock_error_s,
            elapsed_s=0.0 if leader.last_tick is None else now - leader.last_tick,
            first=first,
        )
        world = join(self.pool.listing(), leader.samples.reports(now=now), seen=leader.samples.seen)
        decision = decide(
            world, self.state, self.settings, moment=moment, token=leader.token, controller=leader.name, pool="rig"
        )
        leader.last_tick = now
        leader.samples.next_tick()
        self.decisions.append((now, decision))
        return decision

    # --- the store ---

    def store(self, token: int, decision: TickDecision) -> None:
        if token != self.token:
            self.refused += 1
            return
        raw = msgspec.json.encode(decision.state)
        self.state = msgspec.json.decode(raw, type=ScalingState)
        self.audit += decision.records

    def act(self, token: int, decision: TickDecision, *, upto: int | None) -> None:
        for effect in decision.effects[:upto]:
            self._act(token, effect)

    def _act(self, token: int, effect: Effect) -> None:
        try:
            match effect:
                case Launch():
                    node = self.pool.launch(effect.request)
                    if token == self.token:
                        self.state = confirm_launch(
                            self.state, effect.request, node=node.node, sfu=node.sfu, settings=self.settings
                        )
                    else:
                        self.refused += 1
                case Terminate():
                    self.pool.terminate(effect.node)
                case LeaseCordon() | TakeBack():
                    self._command(token, effect)
                case PreferVictim():
                    pass
        except PoolDown:
            pass

    def _command(self, token: int, effect: LeaseCordon | TakeBack) -> None:
        sfu = self.sfus.get(effect.sfu)
        if token != self.token:
            self.refused += 1
        elif sfu is not None and not sfu.deaf and not self.deaf_store:
            if isinstance(effect, LeaseCordon):
                if not sfu.by and not sfu.sigterm:
                    sfu.by = AUTOSCALER
                    self.did("cordon", effect.node, streams=sfu.streams)
                else:
                    self.did("renew", effect.node)
            elif sfu.by == AUTOSCALER:
                sfu.by = ""
                self.did("uncordon", effect.node)

    # --- reading ---

    def ticks(self, n: int) -> list[TickDecision]:
        return [self.tick() for _ in range(n)]

    def until(self, action: ScaleAction, *, within: int = 50) -> TickDecision:
        """Ticks until one decides on `action`."""
        for _ in range(within):
            decision = self.tick()
            if decision.action is action:
                return decision
        raise AssertionError(f"no {action} within {within} ticks; the last: {decision.action} {decision.reason}")

    def recorded(self) -> list[tuple[str, str]]:
        return [(record.action, record.reason) for record in self.audit]

    def fail(self, node: str) -> None:
        """Its process ends; the SFU's record is gone."""
        self.call_failed(node)
        self.sfus.pop(node, None)

    def call_failed(self, node: str, *, failed: bool = True) -> None:
        """The platform says that it has failed, which may be wrong; or no longer."""
        phase = NodePhase.FAILED if failed else NodePhase.RUNNING
        self.pool.nodes[node] = replace(self.pool.nodes[node], phase=phase)
