"""Does what a tick has decided, one effect after the other, each only while this controller still leads (A7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import msgspec

from control.core.autoscaler.decide import confirm_launch
from control.core.autoscaler.effects import Effect, Launch, LeaseCordon, PreferVictim, TakeBack, Terminate
from control.core.autoscaler.line import effect_line
from control.core.pool import Pool
from control.core.scaling_settings import ScalingSettings
from control.errors import PoolError
from control.shell.scaling_metrics import ControlMetrics
from shared.errors import Fenced, Refused
from shared.logs import fields
from shared.records import CommandVerb
from shared.scaling_records import ScaleAction, ScalingRecord, ScalingState
from shared.store.answers import Wake, WakeKind
from shared.store.store import Store

log = logging.getLogger("control")


class Acting:
    """Carries out effects. Effects that are not done, because the store or the pool fails or another controller leads,
    are done by a later tick, which finds them in the state."""

    def __init__(
        self,
        store: Store,
        pool: Pool,
        settings: ScalingSettings,
        *,
        metrics: ControlMetrics,
        leads: Callable[[], int],
    ) -> None:
        """`leads` gives the token while this controller leads."""
        self._store = store
        self._pool = pool
        self._settings = settings
        self._metrics = metrics
        self._leads = leads

    async def act(
        self, effects: Sequence[Effect], state: ScalingState, *, token: int, record: ScalingRecord
    ) -> ScalingState:
        """Do the effects of a decision that is stored; the state with their results. `record` is a blank one.

        Raises `Fenced` and `StoreUnavailable`.
        """
        for effect in effects:
            if self._leads() != token:
                # We were perhaps paused past our lease: the new leader has read the plan and carries it out.
                log.warning("[scale] no longer leading: the rest of the plan is the next leader's")
                break
            log.info("%s", effect_line(effect))
            state = await self._do(effect, state, token, record)
        return state

    async def _do(self, effect: Effect, state: ScalingState, token: int, record: ScalingRecord) -> ScalingState:
        try:
            match effect:
                case Launch():
                    return await self._launch(effect, state, token, record)
                case PreferVictim():
                    await self._pool.prefer_victim(effect.node)
                case Terminate():
                    await self._pool.terminate(effect.node)
                case LeaseCordon():
                    lease_s, drain_max_s = self._settings.cordon_lease_s, self._settings.drain_max_s
                    await self._command(CommandVerb.CORDON, effect.sfu, token, lease_s=lease_s, drain_max_s=drain_max_s)
                case TakeBack():
                    await self._command(CommandVerb.UNCORDON, effect.sfu, token)
        except PoolError as error:
            self.pool_failed(error)
        return state

    async def _launch(self, effect: Launch, state: ScalingState, token: int, record: ScalingRecord) -> ScalingState:
        try:
            node = await self._pool.launch(effect.request)
        except PoolError as error:
            self.pool_failed(error)
            failed = msgspec.structs.replace(
                record,
                action=ScaleAction.LAUNCH_FAILED.value,
                reason=error.kind.value,
                detail=f"request {effect.request}: {error.detail}"[:200],
            )
            self._metrics.decisions.labels(failed.action).inc()
            await self._store.put_scaling(token, state, [failed])
            return state
        log.info("[pool] launched %s", fields(request=effect.request, node=node.node, sfu=node.sfu or None))
        state = confirm_launch(state, effect.request, node=node.node, sfu=node.sfu, settings=self._settings)
        await self._store.put_scaling(token, state)
        return state

    async def _command(self, verb: CommandVerb, sfu: str, token: int, **terms: float) -> None:
        """`terms`: `lease_s` and `drain_max_s` of a cordon."""
        try:
            await self._store.command_fenced(verb, sfu, token=token, reason="autoscaling", **terms)
        except Fenced:
            raise
        except Refused as refused:  # a person has just commanded this SFU; the next tick sees the result
            log.info("[drain] held back %s", fields(sfu=sfu, why=refused.detail))
            return
        await self._store.wake(Wake(WakeKind.COMMAND, sfu))

    def pool_failed(self, error: PoolError) -> None:
        """Log and count it."""
        self._metrics.pool_errors.labels(error.pool, error.call).inc()
        said = fields(pool=error.pool, call=error.call, kind=error.kind.value, detail=error.detail)
        log.warning("[pool] error %s", said)
