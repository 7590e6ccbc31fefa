"""What a player makes of its router's words, without a router."""

from __future__ import annotations

import random

import pytest

from player.core.behaviour import RuleBox
from player.core.events import PlayerEvent
from player.core.rules import safe_to_move
from player.shell.participant import Participant
from player.shell.watcher import ParticipantPlan
from shared.messages import player as p
from shared.records import Presence, PublicationRecord


class Watcher:
    """Needs to know nothing."""

    def event(self, event: PlayerEvent) -> None: ...

    def unit(self, *_: object) -> None: ...

    def gaps_ms(self) -> tuple[float | None, float | None]:
        return None, None


def participant() -> Participant:
    plan = ParticipantPlan(
        identity="ann",
        room="r",
        routers=["ws://127.0.0.1:9"],
        token=lambda: "t",
        client="test",
        presence=Presence(),
        spread_s=0.0,
        takes=lambda record: True,
    )
    return Participant(plan, rule=RuleBox(safe_to_move), watcher=Watcher(), rng=random.Random(1))


@pytest.mark.parametrize(("reason", "wanted"), [("lost", ("hers",)), ("ended", ())])
async def test_what_an_sfu_brings_that_a_router_has_lost_is_wanted_on(reason: str, wanted: tuple[str, ...]) -> None:
    """Chaos, seed 3, round 13: links cut for three seconds, and a player was deaf for good: none had to move, so the
    room had no news of where the others are."""
    me = participant()
    record = PublicationRecord(publication="hers", player="bob", kind="audio", sfu="a")
    me._from_router(p.RoomSnapshot(publications=(record,)))
    assert me.follower.wanted("a") == ("hers",)
    me._from_router(p.SfuGone(sfu="a", reason=reason))
    assert me.follower.wanted("a") == wanted
