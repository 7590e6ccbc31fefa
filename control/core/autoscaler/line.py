"""The log lines of A9: one a tick, one an event, with the figures that decided."""

from __future__ import annotations

from control.core.autoscaler.effects import Effect, Launch, LeaseCordon, PreferVictim, TakeBack, Terminate, TickDecision
from shared.logs import fields


def tick_line(decision: TickDecision) -> str:
    """`[scale] tick …`; a mean that is not known is `unknown`, not 0."""
    figures = decision.figures
    return "[scale] tick " + fields(
        mean=_mean(figures.mean_load),
        egress=_mean(figures.mean_egress),
        streams=_mean(figures.mean_streams),
        cpu=_mean(figures.mean_cpu),
        binding=figures.binding or "unknown",
        nodes=figures.nodes,
        capacity=figures.capacity,
        warming=figures.warming,
        draining_own=figures.draining_own,
        draining_other=figures.draining_other,
        unknown=figures.unknown,
        lost=figures.lost,
        hits=f"{figures.out_hits}/{figures.out_window}",
        quiet=f"{figures.quiet_ticks}/{figures.quiet_needed}",
        cooldown_left_s=f"{figures.cooldown_left_s:g}",
        floor=figures.floor,
        max=figures.maximum,
        mean_after=None if figures.mean_after is None else f"{figures.mean_after:.2f}",
        action=decision.action.value,
        reason=decision.reason,
    )


def effect_line(effect: Effect) -> str:
    """What is about to be done."""
    match effect:
        case Launch():
            return "[pool] launch " + fields(request=effect.request)
        case PreferVictim():
            return "[pool] prefer-victim " + fields(node=effect.node)
        case LeaseCordon():
            verb = "renew" if effect.renewal else "cordon"
            return f"[drain] {verb} " + fields(node=effect.node, sfu=effect.sfu, streams=effect.streams)
        case TakeBack():
            return "[drain] uncordon " + fields(node=effect.node, sfu=effect.sfu)
        case Terminate():
            egress = None if effect.egress_bps is None else f"{effect.egress_bps:.0f}"
            return "[pool] terminate " + fields(
                node=effect.node, sfu=effect.sfu, streams=effect.streams, egress_bps=egress
            )


def _mean(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
