"""The two bounds of a drain, checked against each other and scaled for short graces (D7)."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shared.errors import BadSetting

FINAL_BOUND_S = 10.0
"""Longest final sequence (D7)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainBounds:
    """The two bounds of a drain (D7). Raises `BadSetting` when they leave no room for each other."""

    drain_max_s: float = 1800.0
    """From the beginning of the drain to the moment the remaining players are asked to move [s]."""
    grace_s: float = 3600.0
    """From the beginning to the kill from outside: Kubernetes' `terminationGracePeriodSeconds` [s]."""
    final_lead_s: float = 60.0
    """The final sequence begins this long before the kill [s], but never more than a quarter of `grace_s`."""

    def __post_init__(self) -> None:
        for name in ("drain_max_s", "grace_s", "final_lead_s"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise BadSetting(setting=name, detail=f"{value} is no length of time; give seconds >= 0")
        if self.grace_s < 1:
            raise BadSetting(setting="grace_s", detail=f"{self.grace_s:g} s is too short to end in; give at least 1 s")
        if self.final_lead_s <= 0:
            raise BadSetting(setting="final_lead_s", detail="the final sequence needs time; give more than 0 s")
        if self.drain_max_s >= self.final_after_s:
            raise BadSetting(
                setting="drain_max_s",
                detail=f"{self.drain_max_s:g} s must be less than grace_s - final_lead_s = {self.final_after_s:g} s; "
                "lower drain_max_s or raise grace_s",
            )

    @property
    def lead_s(self) -> float:
        """`final_lead_s`, scaled down for a short grace."""
        return min(self.final_lead_s, self.grace_s / 4)

    @property
    def final_after_s(self) -> float:
        """From the beginning of the drain to the final sequence."""
        return self.grace_s - self.lead_s

    @property
    def tail_s(self) -> float:
        """From asking to the final sequence."""
        return self.final_after_s - self.drain_max_s

    @property
    def final_bound_s(self) -> float:
        """Longest final sequence; a fifth of the lead is kept for the process to end in."""
        return min(FINAL_BOUND_S, 0.8 * self.lead_s)
