"""The play of a scale rehearsal: load comes until a node is launched, and goes until one is drained."""

from __future__ import annotations

from rehearse.core.scale.plan import LAUNCH_TIMEOUT_S, PAIR, TRIO
from rehearse.core.scale.seen import Seen
from rehearse.shell.scale.stage import ScaleStage, Stuck
from shared.records import SfuStatus, status_of
from shared.scaling_records import ScaleAction

CALM_TICKS = 2
DRAINED_WITHIN_S = 90.0


async def play(stage: ScaleStage, seen: Seen) -> None:
    """The whole of it; what is seen goes into `seen`. When it gets stuck, that says where."""
    try:
        await _grow(stage)
        await _shrink(stage)
        await _drain(stage, seen)
    except Stuck as stuck:
        seen.stuck = str(stuck)


async def _grow(stage: ScaleStage) -> None:
    """Pairs, then three to a room; a node is launched, and gets a room of its own."""
    stage.say("a pair of bots opens a first room")
    await stage.all_hear()
    for number in range(2, stage.plan.nodes + 1):
        await _open_room(stage, f"lobby-{number}")
    await stage.ticks(CALM_TICKS)
    stage.say("a third one joins each room")
    for room in sorted({bot.room for bot in stage.view.bots.values()}):
        await stage.join(room, TRIO - PAIR)
    await stage.all_hear()
    await stage.decided(ScaleAction.SCALE_OUT, ticks=stage.plan.settings().scale_out_window)
    launched = await stage.decided(ScaleAction.LAUNCHED, within_s=LAUNCH_TIMEOUT_S)
    await stage.ticks(1)  # the controller stores first and logs then: its line is certainly there with the next tick
    await _open_room(stage, "newcomers")
    await stage.until(
        lambda: all(each.sfu != launched for each in stage.recorder.state.newcomers),
        f"the controller did not see a room on {launched}",
    )


async def _shrink(stage: ScaleStage) -> None:
    """Pairs again; every node has a room, so that whichever goes has players to move."""
    rooms: dict[str, list[str]] = {}
    for bot in stage.view.bots.values():
        rooms.setdefault(bot.room, []).append(bot.bot)
    stage.say(f"{len(rooms)} rooms shrink to pairs, one of each in a conversation")
    for bots in rooms.values():
        for third in bots[PAIR:]:
            await stage.leave(third)
        # A bot in a conversation stays when its SFU is cordoned, so that the drain has to wait.
        await stage.crowd.tell(cmd="presence", bot=bots[0], at_desk=False, in_conversation=True)
    await stage.all_hear()
    await stage.crowd.tell(cmd="mark")


async def _drain(stage: ScaleStage, seen: Seen) -> None:
    """A node is cordoned; one of its pair moves, new players go elsewhere, the other one moves, the node is ended."""
    victim = await stage.decided(ScaleAction.SCALE_IN, ticks=stage.plan.settings().scale_in_ticks)
    seen.on_victim = frozenset(stage.view.on(victim) | stage.view.moved_off(victim))
    await stage.until(lambda: _cordoned(stage, victim), f"{victim} was not cordoned")
    await stage.routers_skip(victim)
    await _join(stage, "late")
    await stage.until(lambda: bool(stage.view.moved_off(victim)), f"no player moved off {victim}")
    await stage.ticks(CALM_TICKS)
    stage.say("the conversations are over")
    await stage.crowd.tell(cmd="presence", bot="*", at_desk=True, in_conversation=False)
    await stage.decided(ScaleAction.TERMINATED, within_s=DRAINED_WITHIN_S)
    seen.left_on_victim = frozenset(stage.view.on(victim))
    await stage.gone(victim)
    seen.gone = True
    await stage.ticks(CALM_TICKS)


async def _open_room(stage: ScaleStage, room: str) -> None:
    """A new room, once it is certain that it goes to a node without any."""
    await stage.routers_know_loads()
    await _join(stage, room)


async def _join(stage: ScaleStage, room: str) -> None:
    stage.say(f"a pair of bots opens room {room}")
    await stage.join(room, PAIR)
    await stage.all_hear()


def _cordoned(stage: ScaleStage, sfu: str) -> bool:
    state = stage.recorder.states.get(sfu)
    return state is not None and status_of(state) is SfuStatus.CORDONED
