"""What only time decides, by the router's one clock."""

from __future__ import annotations

import time

from router.shell.liveness import GONE_AFTER_S, LOST_AFTER_S, PING_AFTER_S
from router.shell.router import Router
from shared.messages.codes import CloseCode
from shared.messages.player import RoomUpdate
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


async def test_a_player_whose_machine_has_died_is_shown_as_lost_within_thirty_seconds(router: Router) -> None:
    """Its room and the API hear of it long before its session ends; a sign of life takes it back."""
    assert LOST_AFTER_S < 30.0
    url = router.state.announced_ws
    ann, bob = await Player.join(url, "kitchen", "ann"), await Player.join(url, "kitchen", "bob")
    dead = ann.welcome.player

    def says(update: RoomUpdate, *, lost: bool) -> bool:
        return any(record.player == dead and record.lost == lost for record in update.players)

    (wire,) = [wire for wire in router._liveness.players if wire.session and wire.session.player == dead]
    wire.heard = router.state.mono() - LOST_AFTER_S - 1.0
    wire.pinged = router.state.mono()  # it was asked, and says nothing
    await bob.hears(RoomUpdate, where=lambda update: says(update, lost=True))
    assert ann.closed is None
    wire.heard = router.state.mono()
    await bob.hears(RoomUpdate, where=lambda update: says(update, lost=False))
    wire.heard = router.state.mono() - GONE_AFTER_S - 1.0
    assert await ann.ends() == CloseCode.IDLE
    assert router.state.rooms.get("kitchen").players[dead].lost  # type: ignore[union-attr]
    assert (await Player.resume(url, ann)).welcome.resumed
    assert not router.state.rooms.get("kitchen").players[dead].lost  # type: ignore[union-attr]
