"""Routers are started again one at a time, the next only when all are back and their players have resumed."""

from __future__ import annotations

from msgspec.structs import replace

from operators.core.roll.seen import RolledRouter, RollSeen
from shared.roll_records import RollRouter, RouterStage

RESUME_WITHIN_S = 25.0
"""For how long a player may resume its session (router.core.room): who is not back by then has left."""
CALM_S = 2.0
"""A router writes its record each second: the figures are of after the restart only then."""


def advance_routers(routers: tuple[RollRouter, ...], seen: RollSeen, *, now: float) -> tuple[RollRouter, ...]:
    """One look: the router under way goes on, or the first that waits begins, if all are well."""
    if all(each.stage == RouterStage.DONE for each in routers):
        return routers
    players = sum(each.players for each in seen.routers.values())
    after = [_advance(each, seen, players, now=now) for each in routers]
    idle = all(each.stage in (RouterStage.WAITING, RouterStage.DONE) for each in after)
    first = next((at for at, each in enumerate(after) if each.stage == RouterStage.WAITING), None)
    if first is None or not idle or not all_well(seen):
        return tuple(after)
    waiting = after[first]
    there = seen.routers.get(waiting.router)
    if there is None:
        after[first] = replace(waiting, stage=RouterStage.DONE.value, since_at=now)  # it has left meanwhile
    else:
        stage = RouterStage.RESTARTING.value
        after[first] = replace(waiting, stage=stage, since_at=now, boot=there.boot, players=players)
    return tuple(after)


def all_well(seen: RollSeen) -> bool:
    """Every router is heard, and so is every SFU: those that were linked to the restarted one have another link."""
    routers, sfus = seen.routers.values(), seen.sfus.values()
    return not any(each.silent for each in routers) and not any(each.silent for each in sfus)


def _advance(each: RollRouter, seen: RollSeen, players: int, *, now: float) -> RollRouter:
    if each.stage == RouterStage.RESTARTING and _is_back(each, seen.routers.get(each.router)):
        return replace(each, stage=RouterStage.SETTLING.value, since_at=now)
    if each.stage == RouterStage.SETTLING and all_well(seen):
        waited_s = now - each.since_at
        if waited_s >= RESUME_WITHIN_S or (waited_s >= CALM_S and players >= each.players):
            return replace(each, stage=RouterStage.DONE.value, since_at=now)
    return each


def _is_back(each: RollRouter, there: RolledRouter | None) -> bool:
    return there is not None and not there.silent and there.boot != each.boot
