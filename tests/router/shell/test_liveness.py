"""What only time decides, by the router's one clock."""

from __future__ import annotations

import time

from router.shell.liveness import GONE_AFTER_S, PING_AFTER_S
from router.shell.router import Router
from shared.messages.codes import CloseCode
from tests.router.actors import Player, until


async def test_a_player_silent_for_too_long_is_closed_and_can_resume(router: Router) -> None:
    ann = await Player.join(router.state.announced_ws, "kitchen", "ann")
    router.state.mono = lambda: time.monotonic() + GONE_AFTER_S + 1.0
    assert await ann.ends() == CloseCode.IDLE
    assert (await Player.resume(router.state.announced_ws, ann)).welcome.resumed


async def test_a_player_silent_for_a_while_is_asked_for_a_sign_of_life_and_stays(router: Router) -> None:
    ann = await Player.join(router.state.announced_ws, "kitchen", "ann")
    (wire,) = router._liveness.players
    router.state.mono = lambda: time.monotonic() + PING_AFTER_S + 1.0
    asked_at = router.state.mono()
    await until(lambda: wire.heard >= asked_at, what="the answer to a ping")
    assert ann.closed is None
    await ann.close()
