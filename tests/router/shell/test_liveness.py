"""What only time decides, by the router's one clock."""

from __future__ import annotations

import time
from collections.abc import Callable

from router.shell.liveness import GONE_AFTER_S, LOST_AFTER_S, PING_AFTER_S
from router.shell.router import Router
from router.shell.sessions import LOST_AFTER_S as LOST_WITHOUT_WEBSOCKET_S
from shared.messages import player
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


def about(identity: str, *, lost: bool) -> Callable[[player.RoomUpdate], bool]:
    return lambda update: any(each.identity == identity and each.lost is lost for each in update.players)


async def test_a_player_whose_machine_died_is_lost_for_the_others_and_is_not_when_it_answers(router: Router) -> None:
    ann = await Player.join(router.state.announced_ws, "kitchen", "ann")
    bob = await Player.join(router.state.announced_ws, "kitchen", "bob")
    ann.connection.transport.pause_reading()  # no close, no answer: a cable that was pulled
    router.state.mono = lambda: time.monotonic() + LOST_AFTER_S + 1.0
    await bob.hears(player.RoomUpdate, where=about("ann", lost=True))
    room = router.state.rooms.get("kitchen")
    assert room is not None
    assert room.sessions[ann.welcome.player].wire is not None, "it is told, not cut"
    bob.heard.clear()
    ann.connection.transport.resume_reading()
    await bob.hears(player.RoomUpdate, where=about("ann", lost=False))
    for each in (ann, bob):
        await each.close()


async def test_a_player_whose_program_was_killed_is_lost_within_seconds_and_gone_after_the_window(
    router: Router,
) -> None:
    ann = await Player.join(router.state.announced_ws, "kitchen", "ann")
    bob = await Player.join(router.state.announced_ws, "kitchen", "bob")
    ann.connection.transport.abort()  # as a kernel closes what a killed program had open
    await until(lambda: bool(list(router.state.rooms.detached_for(0.0, now=router.state.mono()))), what="the end")
    router.state.mono = lambda: time.monotonic() + LOST_WITHOUT_WEBSOCKET_S + 0.1
    await bob.hears(player.RoomUpdate, where=about("ann", lost=True))
    router.state.mono = lambda: time.monotonic() + 26.0
    await bob.hears(player.RoomUpdate, where=lambda update: ann.welcome.player in update.left)
    await bob.close()


async def test_one_that_resumes_is_lost_no_longer(router: Router) -> None:
    ann = await Player.join(router.state.announced_ws, "kitchen", "ann")
    bob = await Player.join(router.state.announced_ws, "kitchen", "bob")
    ann.connection.transport.abort()
    await until(lambda: bool(list(router.state.rooms.detached_for(0.0, now=router.state.mono()))), what="the end")
    router.state.mono = lambda: time.monotonic() + LOST_WITHOUT_WEBSOCKET_S + 0.1
    await bob.hears(player.RoomUpdate, where=about("ann", lost=True))
    bob.heard.clear()
    again = await Player.resume(router.state.announced_ws, ann)
    await bob.hears(player.RoomUpdate, where=about("ann", lost=False))
    for each in (again, bob):
        await each.close()


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
