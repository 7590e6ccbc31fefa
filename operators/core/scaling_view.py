"""The autoscaler as `sluice scaling` shows it: who leads, how close a change is, what is under way, in plain words."""

from __future__ import annotations

from operators.core.fleet_view import span
from shared.scaling_records import Launching, Removing, ScalingFigures, ScalingRecord, ScalingState
from shared.store.answers import Leader


def leader_words(leader: Leader | None) -> str:
    """Who may scale."""
    if leader is None:
        return "no controller leads: is a 'sluice control' running that reaches this Redis?"
    return f"{leader.controller} (token {leader.token}, lease ends in {leader.left_s:.1f} s unless it is renewed)"


def load_words(figures: ScalingFigures) -> str:
    """The last tick's mean and its parts."""
    if figures.mean_load is None:
        return "not known"
    parts = f"egress {share(figures.mean_egress)}, streams {share(figures.mean_streams)}, CPU {share(figures.mean_cpu)}"
    return f"{share(figures.mean_load)} ({parts}; {figures.binding} binds)"


def node_words(figures: ScalingFigures) -> str:
    """What the pool consists of."""
    kinds = {
        "capacity": figures.capacity,
        "warming up": figures.warming,
        "draining, ours": figures.draining_own,
        "draining, other people's": figures.draining_other,
        "unknown": figures.unknown,
        "lost": figures.lost,
    }
    shown = ", ".join(f"{count} {kind}" for kind, count in kinds.items() if count) or "none"
    return f"{figures.nodes}: {shown} (floor {figures.floor}, maximum {figures.maximum})"


def streak_words(figures: ScalingFigures) -> str:
    """How close a change is."""
    hot = f"hot {figures.out_hits}/{figures.out_window} ticks"
    cooldown = f"{span(figures.cooldown_left_s)} of cooldown left" if figures.cooldown_left_s else "no cooldown"
    return f"{hot}, quiet {figures.quiet_ticks}/{figures.quiet_needed}, {cooldown}"


def plan_words(state: ScalingState) -> list[str]:
    """What is under way, a line each."""
    lines = [_launch(state.launch)] if state.launch else []
    lines += [_removal(removal) for removal in state.removals]
    if state.held:
        lines.append(f"held: {state.held.replace('-', ' ')}")
    return lines or ["nothing"]


def _launch(launch: Launching) -> str:
    stage = {"first_packet": "warmed up", "healthy": "healthy"}.get(launch.stages[-1] if launch.stages else "", "")
    what = launch.sfu or launch.node or "not confirmed by the pool yet"
    return f"launch {launch.request}: {what}{', ' + stage if stage else ''}, for {span(launch.waited_s)}"


def _removal(removal: Removing) -> str:
    return f"removal of {removal.sfu or removal.node}: {removal.stage} for {span(removal.waited_s)} ({removal.reason})"


def record_figures(record: ScalingRecord) -> str:
    """The figures that decided a record, in one cell."""
    figures = record.figures
    parts = [f"mean {share(figures.mean_load)}"]
    if figures.binding:
        parts.append(figures.binding)
    if figures.mean_after is not None:
        parts.append(f"after {share(figures.mean_after)}")
    parts.append(f"hot {figures.out_hits}/{figures.out_window}")
    parts.append(f"quiet {figures.quiet_ticks}/{figures.quiet_needed}")
    parts.append(f"{figures.capacity} of {figures.nodes}")
    return " · ".join(parts)


def share(value: float | None) -> str:
    """A normalised load as text, also when it is not known."""
    return "?" if value is None else f"{value:.2f}"
