"""Which simulcast layer a consumer should get, from what flows and what it prefers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

STALLED_AFTER_S = 0.5
"""A layer with no media for this long, while another layer has some, does not flow: the browser has switched it off."""


class LayerReason(StrEnum):
    """The rule that chose."""

    PREFERRED = "preferred"
    """The layer asked for flows."""
    BELOW_PREFERRED = "below-preferred"
    """It does not; the next one down that does."""
    ABOVE_PREFERRED = "above-preferred"
    """Nothing at or below it flows; the lowest one that does."""
    HIGHEST = "highest"
    """No preference: the highest that flows."""
    NOTHING_FLOWS = "nothing-flows"


@dataclass(frozen=True, slots=True)
class LayerFact:
    """One layer of a producer; `last_media` is when its last media packet came, None before the first."""

    rid: str
    last_media: float | None


@dataclass(frozen=True, slots=True)
class LayerChoice:
    rid: str | None
    reason: LayerReason


def choose_layer(layers: Sequence[LayerFact], *, preferred: str | None) -> LayerChoice:
    """Choose among `layers`, lowest quality first.

    "Flows" compares with the newest media of the producer, not with the clock: a still screen sends nothing on any
    layer for seconds and must not cause switches.
    """
    newest = max((layer.last_media for layer in layers if layer.last_media is not None), default=None)
    if newest is None:
        return LayerChoice(None, LayerReason.NOTHING_FLOWS)
    flows = [layer.last_media is not None and newest - layer.last_media < STALLED_AFTER_S for layer in layers]
    order = [layer.rid for layer in layers]
    if preferred not in order:
        top = max(index for index, flowing in enumerate(flows) if flowing)
        return LayerChoice(order[top], LayerReason.HIGHEST)
    wanted = order.index(preferred)
    if flows[wanted]:
        return LayerChoice(preferred, LayerReason.PREFERRED)
    for index in range(wanted - 1, -1, -1):
        if flows[index]:
            return LayerChoice(order[index], LayerReason.BELOW_PREFERRED)
    above = min(index for index, flowing in enumerate(flows) if flowing)
    return LayerChoice(order[above], LayerReason.ABOVE_PREFERRED)
