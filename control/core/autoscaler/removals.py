"""Removals in progress: cordon, renew while it drains, end when certainly empty (A6)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from control.core.autoscaler.effects import LeaseCordon, PreferVictim, TakeBack, Terminate
from control.core.autoscaler.progress import TickProgress
from control.core.autoscaler.world import Member, Moment, World
from control.core.pool import NodePhase
from control.core.scaling_settings import ScalingSettings
from shared.records import DrainCause, SfuStatus
from shared.scaling_records import RemovalStage, Removing, ScaleAction

RENEW_AT = 1 / 3
"""Part of the cordon's lease after which it is renewed; one renewal may get lost (`least_cordon_lease_s`)."""


def carry_on_removals(
    it: TickProgress, world: World, settings: ScalingSettings, moment: Moment, *, waited_s: float
) -> TickProgress:
    """Take each removal one tick further. `waited_s`: the time that counts against a removal whose SFU does not follow;
    a lease runs on in any case."""
    removals, it = it.state.removals, it.set(removals=())
    for removal in removals:
        removal = msgspec.structs.replace(
            removal,
            waited_s=removal.waited_s + waited_s,
            renewed_s=removal.renewed_s + moment.elapsed_s,
        )
        it = _Step(removal, world.removed(removal), settings, moment).take(it, certain=world.certain)
    return it


def sweep(it: TickProgress, members: Sequence[Member], *, spare: int) -> TickProgress:
    """Tell the pool to forget a node that it lists as failed, if there is one to `spare`.

    One per tick: a platform may count it as one of its own until then, and many at once would leave none. They take
    turns, so that one which can't be ended does not hold up the others. As long as its SFU has a record, a router has
    heard it, and it is not removed.
    """
    failed = [each for each in members if each.node.phase is NodePhase.FAILED and each.report is None]
    if spare <= 0 or not failed:
        return it
    node = failed[it.state.tick % len(failed)].node
    return it.effect(Terminate(node=node.node, sfu=node.sfu))


class _Step:
    """One tick of one removal."""

    def __init__(self, removal: Removing, member: Member | None, settings: ScalingSettings, moment: Moment) -> None:
        self.removal = removal
        self.member = member
        self.settings = settings
        self.moment = moment

    def take(self, it: TickProgress, *, certain: bool) -> TickProgress:
        """The ladder: gone, never known, taken back, held, over. The SFU's own fresh report overrides the platform's
        "failed"."""
        member = self.member
        if member is None:
            return self._gone(it) if certain else self._keep(it)
        if member.node.phase is NodePhase.FAILED and not member.heard:
            return self._gone(it)
        if member.seen:
            self.removal = msgspec.structs.replace(self.removal, registered=True)
        if member.report is None:
            return self._keep(it) if self.removal.registered else self._end(it, member, certain=certain)
        self.removal = msgspec.structs.replace(self.removal, sfu=member.node.sfu)
        if member.status is SfuStatus.ONLINE:
            return self._online(it, member)
        if member.status is SfuStatus.CORDONED:
            return self._cordoned(it, member, certain=certain)
        return self._keep(it)

    def _keep(self, it: TickProgress) -> TickProgress:
        return it.set(removals=(*it.state.removals, self.removal))

    def _next(self, stage: RemovalStage) -> None:
        if self.removal.stage != stage:
            self.removal = msgspec.structs.replace(self.removal, stage=stage.value, waited_s=0.0)

    def _gone(self, it: TickProgress) -> TickProgress:
        if self.removal.stage == RemovalStage.ENDING:
            return it  # it was recorded when it was told to end
        return it.note(ScaleAction.TERMINATED, "ended-by-itself", sfu=self.removal.sfu)

    def _cancelled(self, it: TickProgress, reason: str) -> TickProgress:
        return it.note(ScaleAction.CANCELLED, reason, sfu=self.removal.sfu)

    def _online(self, it: TickProgress, member: Member) -> TickProgress:
        assert member.report is not None
        if not member.report.fresh:
            return self._keep(it)
        if self.removal.stage == RemovalStage.DRAINING or member.report.was_cordoned:
            return self._cancelled(it, "no-longer-cordoned")
        if self.removal.waited_s >= self.settings.launch_timeout_s:
            it = self._cancelled(it, "never-cordoned")
            return it.effect(TakeBack(sfu=self.removal.sfu, node=self.removal.node))
        if self.removal.stage == RemovalStage.ENDING:
            return self._keep(it)
        # Not heard, or not heard yet. The change happens now at the earliest, so the cooldown starts again.
        return self._order(it.set(cooldown_left_s=self.settings.cooldown_s), member, renewal=False)

    def _cordoned(self, it: TickProgress, member: Member, *, certain: bool) -> TickProgress:
        assert member.report is not None
        drain = member.report.state.drain
        if not member.cordoned_by_us:
            ours = self.removal.stage == RemovalStage.ENDING and drain and drain.cause == DrainCause.SIGTERM
            return self._keep(it) if ours else self._cancelled(it, "taken-over")
        if self.removal.stage == RemovalStage.ORDERED:
            self._next(RemovalStage.DRAINING)
        if member.report.empty:
            return self._end(it, member, certain=certain)
        self._next(RemovalStage.DRAINING)
        due = self.removal.renewed_s >= RENEW_AT * self.settings.cordon_lease_s
        if due or self.moment.first:
            it = it.note(ScaleAction.CORDON_RENEWED, "lease", sfu=self.removal.sfu)
            return self._order(it, member, renewal=True)
        return self._keep(it)

    def _order(self, it: TickProgress, member: Member, *, renewal: bool) -> TickProgress:
        self.removal = msgspec.structs.replace(self.removal, renewed_s=0.0)
        streams = member.report.streams if member.report else None
        effects = [LeaseCordon(sfu=self.removal.sfu, node=self.removal.node, streams=streams, renewal=renewal)]
        it = it if renewal else it.effect(PreferVictim(node=self.removal.node))
        return self._keep(it.effect(*effects))

    def _end(self, it: TickProgress, member: Member, *, certain: bool) -> TickProgress:
        """Told to end at each tick until it is gone: the last call may be lost, and repeating it does no harm."""
        if not certain:
            return self._keep(it)
        if self.removal.stage != RemovalStage.ENDING:
            reason = "empty" if member.report else "never-registered"
            it = it.note(ScaleAction.TERMINATED, reason, sfu=self.removal.sfu)
        self._next(RemovalStage.ENDING)
        parts = member.report.state.load_parts if member.report else None
        return self._keep(
            it.effect(
                Terminate(
                    node=self.removal.node,
                    sfu=self.removal.sfu,
                    streams=parts.streams if parts else None,
                    egress_bps=parts.egress_bps if parts else None,
                )
            )
        )


def take_back(it: TickProgress, world: World, reason: str) -> TickProgress | None:
    """Without the newest removal that can be taken back, which is faster than a new node; None: there is none."""
    for removal in reversed(it.state.removals):
        ours_to_end = removal.stage != RemovalStage.ENDING and removal.reason == "scale-in"
        if ours_to_end and _takes_orders(world.by_node(removal.node)):
            it = it.set(removals=tuple(each for each in it.state.removals if each is not removal))
            it = it.effect(TakeBack(sfu=removal.sfu, node=removal.node))
            return it.note(ScaleAction.CANCELLED, reason, sfu=removal.sfu)
    return None


def _takes_orders(member: Member | None) -> bool:
    """It can take new work again. A silent node, or one that got SIGTERM, could not."""
    if member is None or member.node.phase not in (NodePhase.STARTING, NodePhase.RUNNING):
        return False
    return member.heard and member.status in (SfuStatus.ONLINE, SfuStatus.CORDONED)
