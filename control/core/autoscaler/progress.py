"""What a part of a tick has come to: the state it leaves, and what it wants recorded and done."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from control.core.autoscaler.effects import Effect
from shared.scaling_records import ScaleAction, ScalingState


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """An event for the audit; figures, pool and controller are filled in at the end of the tick."""

    action: ScaleAction
    reason: str
    sfu: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress:
    """A state on its way through a tick."""

    state: ScalingState
    notes: tuple[Note, ...] = ()
    effects: tuple[Effect, ...] = ()

    def note(self, action: ScaleAction, reason: str, *, sfu: str = "", detail: str = "") -> Progress:
        """With one more event."""
        return replace(self, notes=(*self.notes, Note(action=action, reason=reason, sfu=sfu, detail=detail)))

    def effect(self, *effects: Effect) -> Progress:
        """With more to do."""
        return replace(self, effects=(*self.effects, *effects))

    def set(self, **fields: object) -> Progress:
        """With other fields of the state."""
        return replace(self, state=msgspec.structs.replace(self.state, **fields))
