"""A controller: three loops (lease, look, tick) around the decisions of `control.core.autoscaler`."""

from __future__ import annotations

import asyncio
import logging
import time

import msgspec

from control.core.autoscaler.decide import decide
from control.core.autoscaler.effects import TickDecision
from control.core.autoscaler.line import tick_line
from control.core.autoscaler.samples import NodeCeilings, Samples
from control.core.autoscaler.stages import LaunchWatch, Reached
from control.core.autoscaler.world import Moment, join
from control.core.pool import Listing, Pool
from control.core.scaling_settings import ScalingSettings
from control.errors import PoolError
from control.shell.acting import Acting
from control.shell.leadership import Leadership
from control.shell.scaling_metrics import ControlMetrics
from shared.errors import BadRecord, Fenced, StoreUnavailable
from shared.logs import OncePerMinute, fields
from shared.scaling_records import ScaleAction, ScalingRecord, ScalingState
from shared.store.calls import WrongType
from shared.store.store import Store

log = logging.getLogger("control")


class Controller:
    """Scales one pool while it leads. `run()` goes on until it is cancelled; then call `stop()`."""

    def __init__(
        self, controller: str, settings: ScalingSettings, *, store: Store, pool: Pool, dry_run: bool = False
    ) -> None:
        self.controller = controller
        self.settings = settings
        self.metrics = ControlMetrics(scale_out_at=settings.scale_out_at)
        self._store = store
        self._pool = pool
        self._dry_run = dry_run or settings.dry_run
        self._clock = time.monotonic
        self._limited = OncePerMinute(log, clock=self._clock)
        self._leadership = Leadership(store, controller, lease_s=settings.lease_s, trouble=self._store_trouble)
        self._acting = Acting(store, pool, settings, metrics=self.metrics, leads=lambda: self._leadership.token)
        ceilings = NodeCeilings(
            egress_mbps=settings.egress_ceiling_mbps, streams=settings.stream_ceiling, cpu_guard=settings.cpu_guard
        )
        self._samples = Samples(ceilings=ceilings, max_age_s=settings.report_max_age_s)
        self._watch = LaunchWatch()
        self._state = ScalingState()
        self._redis_ahead_s = time.time() - self._clock()
        """Redis' clock minus ours, as of the last tick; only for telling how long stages took."""
        self._term = 0
        self._ticked: float | None = None
        self._due = 0.0

    async def run(self) -> None:
        """Lead or stand by, for ever."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._leadership.run())
            group.create_task(self._look_for_ever())
            group.create_task(self._tick_for_ever())

    async def stop(self) -> None:
        """Give up the lease and all connections. Nodes and plans stay as they are, for the next leader."""
        await self._leadership.release()
        await self._pool.close()
        await self._store.close()

    # --- looking ---

    async def _look_for_ever(self) -> None:
        while True:
            try:
                states = await self._store.read_sfus()
            except StoreUnavailable as error:
                self._store_trouble(error)
            else:
                now = self._clock()
                self._samples.look(states, now=now)
                if self._leadership.token:
                    self._tell(self._watch.look(self._state, states, now_at=now + self._redis_ahead_s))
            await asyncio.sleep(self.settings.sample_s)

    def _tell(self, stages: list[Reached]) -> None:
        for reached in stages:
            self.metrics.launch.labels(reached.stage.value).observe(reached.seconds)
            words = reached.stage.value.replace("_", "-")
            log.info("[pool] %s %s", words, fields(sfu=reached.sfu, after_s=f"{reached.seconds:.1f}"))

    # --- ticking ---

    async def _tick_for_ever(self) -> None:
        self._due = self._clock() + self.settings.tick_s
        while True:
            token = self._leadership.token
            self.metrics.lead(token)
            self.metrics.store(self._store.counts)
            if token and token != self._term:
                # A term begins with a whole tick of looking; what another leader saw in it is not known here.
                self._term, self._ticked = token, None
                self._samples.next_tick()
                self._due = self._clock() + self.settings.tick_s
            if (wait_s := self._due - self._clock()) > 0:
                await asyncio.sleep(min(wait_s, self.settings.sample_s))
                continue
            outcome = await self._tick(token) if token else "not_leader"
            self.metrics.ticks.labels(outcome).inc()
            self._samples.next_tick()
            now = self._clock()
            self._due += self.settings.tick_s
            if self._due <= now:  # after a tick that took too long comes a whole one, never two at once
                self._due = now + self.settings.tick_s

    async def _tick(self, token: int) -> str:
        """One tick; its outcome, as the metric's label."""
        try:
            return await self._observe_decide_act(token)
        except Fenced as fenced:
            self.metrics.refused_writes.inc()
            self._leadership.lost()
            log.warning("[scale] late write refused %s", fields(token=fenced.token, newest=fenced.newest))
            return "not_leader"
        except BadRecord as error:
            self._bad("bad-state", f"{error}; nothing is scaled until that key is deleted")
            return "held"
        except StoreUnavailable as error:
            self._store_trouble(error)
            return "store_down"

    async def _observe_decide_act(self, token: int) -> str:
        kept = await self._store.read_scaling_state(token)
        before = self._unless_lost(kept.state)
        listing = await self._list()
        now = self._clock()
        moment = Moment(
            now_at=kept.at,
            elapsed_s=0.0 if self._ticked is None else now - self._ticked,
            first=self._ticked is None,
        )
        self._redis_ahead_s = kept.at - now
        decision = decide(
            join(listing, self._samples.reports(now=now), seen=self._samples.seen),
            before,
            self.settings,
            moment=moment,
            token=token,
            controller=self.controller,
            pool=self._pool.name,
            dry_run=self._dry_run,
        )
        # Before it is stored: whether that arrives or not, this time has been counted once.
        self._ticked = now
        await self._store.put_scaling(token, decision.state, decision.records)
        self._state = decision.state
        self._show(before, decision)
        blank = ScalingRecord(controller=self.controller, pool=self._pool.name, figures=decision.figures)
        self._state = await self._acting.act(decision.effects, decision.state, token=token, record=blank)
        if decision.action is ScaleAction.HELD:
            return "held"
        return "idle" if decision.action is ScaleAction.NONE else "acted"

    def _unless_lost(self, kept: ScalingState) -> ScalingState:
        """The stored state. When it is gone, or older than what we have stored, a whole cooldown begins: the last
        change may have been just before. A replica that takes over lacks the writes that had not reached it.

        Plans are not restored from memory, which may be of an earlier term: our cordons are taken back like any that
        belong to no removal, and a node that comes up counts once it is warmed up.
        """
        if kept.tick >= self._state.tick:
            return kept
        self._bad("state-lost", "Redis has lost what was stored of the scaling; a whole cooldown begins")
        return msgspec.structs.replace(kept, cooldown_left_s=self.settings.cooldown_s)

    async def _list(self) -> Listing | None:
        try:
            return await self._pool.list()
        except PoolError as error:
            self._acting.pool_failed(error)
            return None

    def _show(self, before: ScalingState, decision: TickDecision) -> None:
        log.info("%s", tick_line(decision))
        self.metrics.show(decision)
        for record in decision.records:
            self.metrics.decisions.labels(record.action).inc()
            node, detail = record.node or None, record.detail or None
            shown = fields(reason=record.reason, node=node, dry_run=record.dry_run or None, detail=detail)
            log.info("[scale] %s %s", record.action, shown)
        self._tell(self._watch.tick(before, decision.state, now_at=decision.state.ticked_at))
        for kind, detail in decision.faults:
            self._bad(kind, detail)

    # --- trouble ---

    def _store_trouble(self, error: StoreUnavailable) -> None:
        if isinstance(error, WrongType):
            self._bad("wrong-type", f"{error}; nothing is scaled until that key is deleted")

    def _bad(self, kind: str, detail: str) -> None:
        self.metrics.bad_input.labels(kind).inc()
        self._limited.warning(kind, detail)
