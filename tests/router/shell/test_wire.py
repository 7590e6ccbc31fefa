"""A websocket of a router: closed with a code that the peer hears, whatever the reason says."""

from __future__ import annotations

import pytest

from router.shell.router import Router
from shared.messages.codes import CloseCode
from tests.router.actors import Player


@pytest.mark.parametrize("reason", ["", "short", "x" * 124, "é" * 62, "名" * 1000])
async def test_a_reason_of_any_length_still_closes_with_its_code(router: Router, reason: str) -> None:
    ann = await Player.join(router.state.announced_ws, "kitchen", "ann")
    (wire,) = router._liveness.players
    wire.end(CloseCode.BAD_MESSAGE, reason)
    assert await ann.ends() == CloseCode.BAD_MESSAGE
    assert reason.startswith(ann.reason)
    assert len(ann.reason.encode()) >= min(121, len(reason.encode()))
