"""Which layer a consumer should get."""

from __future__ import annotations

import pytest

from sfu.core.media.layers import STALLED_AFTER_S, LayerChoice, LayerFact, LayerReason, choose_layer

NOW = 100.0
OLD = NOW - STALLED_AFTER_S


@pytest.mark.parametrize(
    ("last_media", "preferred", "expected"),
    [
        ((NOW, NOW, NOW), None, LayerChoice("h", LayerReason.HIGHEST)),
        ((NOW, NOW, None), None, LayerChoice("m", LayerReason.HIGHEST)),
        ((NOW, NOW, OLD), None, LayerChoice("m", LayerReason.HIGHEST)),
        ((OLD, OLD, OLD), None, LayerChoice("h", LayerReason.HIGHEST)),
        ((None, None, None), None, LayerChoice(None, LayerReason.NOTHING_FLOWS)),
        ((None, None, None), "l", LayerChoice(None, LayerReason.NOTHING_FLOWS)),
        ((NOW, NOW, NOW), "m", LayerChoice("m", LayerReason.PREFERRED)),
        ((NOW, OLD, NOW), "m", LayerChoice("l", LayerReason.BELOW_PREFERRED)),
        ((OLD, OLD, NOW), "m", LayerChoice("h", LayerReason.ABOVE_PREFERRED)),
        ((OLD, NOW, NOW), "l", LayerChoice("m", LayerReason.ABOVE_PREFERRED)),
        ((NOW, NOW, NOW), "x", LayerChoice("h", LayerReason.HIGHEST)),
    ],
)
def test_ladder(last_media: tuple[float | None, ...], preferred: str | None, expected: LayerChoice) -> None:
    layers = [LayerFact(rid, last) for rid, last in zip(("l", "m", "h"), last_media, strict=True)]
    assert choose_layer(layers, preferred=preferred) == expected
