"""What a tick wants done, as imperatives, and the decision that holds them with the reasons for it."""

from __future__ import annotations

from dataclasses import dataclass

from shared.scaling_records import ScaleAction, ScalingFigures, ScalingRecord, ScalingState


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """Ask the pool for the node of this request; asked again, it is the same node (A7)."""

    request: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PreferVictim:
    """Tell the platform which node is to go."""

    node: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LeaseCordon:
    """Cordon an SFU for a lease, or renew its lease (A6)."""

    sfu: str
    node: str
    streams: int | None = None
    renewal: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TakeBack:
    """Take our cordon back."""

    sfu: str
    node: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Terminate:
    """End a node that has no player."""

    node: str
    sfu: str
    streams: int | None = None
    egress_bps: float | None = None


Effect = Launch | PreferVictim | LeaseCordon | TakeBack | Terminate


@dataclass(frozen=True, kw_only=True, slots=True)
class TickDecision:
    """A tick: store `state` and `records` first, then do `effects` in their order."""

    action: ScaleAction
    """What became of the pool's size: scale-out, scale-in, cancelled, held or none."""
    reason: str
    """The rule that decided."""
    state: ScalingState
    records: tuple[ScalingRecord, ...]
    effects: tuple[Effect, ...]
    figures: ScalingFigures
    faults: tuple[tuple[str, str], ...] = ()
    """Bad input that was ignored: kind and detail."""
