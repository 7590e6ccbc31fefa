"""The result of a part of a tick: the state it leaves, and what it wants recorded and done."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from control.core.autoscaler.effects import Effect
from shared.scaling_records import ScaleAction, ScalingState


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditNote:
    """An event for the audit; figures, pool and controller are filled in at the end of the tick."""

    action: ScaleAction
    reason: str
    sfu: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TickProgress:
    """A state on its way through a tick."""

    state: ScalingState
    notes: tuple[AuditNote, ...] = ()
    effects: tuple[Effect, ...] = ()

    def note(self, action: ScaleAction, reason: str, *, sfu: str = "", detail: str = "") -> TickProgress:
        """This progress with one more event."""
        return replace(self, notes=(*self.notes, AuditNote(action=action, reason=reason, sfu=sfu, detail=detail)))

    def effect(self, *effects: Effect) -> TickProgress:
        """This progress with more to do."""
        return replace(self, effects=(*self.effects, *effects))

    def set(self, **fields: object) -> TickProgress:
        """This progress with other fields of the state."""
        return replace(self, state=msgspec.structs.replace(self.state, **fields))
