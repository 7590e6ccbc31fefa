"""Who may enter: each rule of the ladder."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from sfu.core.admission import Door, admit
from shared.messages.codes import CloseCode, Refusal
from shared.records import SfuStatus
from shared.tokens import SfuClaims

HOME = SfuClaims(sfu="s", room="r", player="p", identity="i")
VISIT = msgspec.structs.replace(HOME, publish=False)
DOOR = Door(sfu="s", status=SfuStatus.ONLINE, players=0, max_players=2, carries_room=False)
CORDONED = replace(DOOR, status=SfuStatus.CORDONED)


def test_online_lets_in() -> None:
    assert admit(HOME, DOOR, known=None).admitted


def test_cordoned_refuses_a_new_home_even_in_a_room_it_carries() -> None:
    refused = admit(HOME, replace(CORDONED, carries_room=True), known=None)
    assert (refused.admitted, refused.code, refused.close) == (False, Refusal.SFU_CORDONED, CloseCode.REFUSED)


def test_cordoned_lets_visitors_in_to_rooms_it_carries_only() -> None:
    assert admit(VISIT, replace(CORDONED, carries_room=True), known=None).admitted
    assert admit(VISIT, CORDONED, known=None).code == Refusal.SFU_CORDONED


def test_cordoned_lets_back_who_is_here_but_makes_no_visit_a_home() -> None:
    assert admit(HOME, CORDONED, known=HOME).admitted
    assert admit(VISIT, CORDONED, known=VISIT).admitted
    assert admit(HOME, CORDONED, known=VISIT).code == Refusal.SFU_CORDONED


def test_terminating_refuses_everybody() -> None:
    assert admit(HOME, replace(DOOR, status=SfuStatus.TERMINATING), known=HOME).code == Refusal.SFU_TERMINATING


def test_full_refuses_new_sessions_only() -> None:
    full = replace(DOOR, players=2)
    assert admit(HOME, full, known=None).code == Refusal.TOO_MANY
    assert admit(HOME, full, known=HOME).admitted
    assert admit(VISIT, replace(full, status=SfuStatus.CORDONED, carries_room=True), known=None).code == "too-many"


@pytest.mark.parametrize(
    ("claims", "known", "spent"),
    [
        (msgspec.structs.replace(HOME, sfu="other"), None, False),
        (HOME, None, True),
        (msgspec.structs.replace(HOME, player="a b"), None, False),
        (msgspec.structs.replace(HOME, player=""), None, False),
        (HOME, msgspec.structs.replace(HOME, room="other"), False),
        (HOME, msgspec.structs.replace(HOME, identity="other"), False),
    ],
)
def test_a_token_for_something_else_is_a_bad_token(claims: SfuClaims, known: SfuClaims | None, spent: bool) -> None:
    refused = admit(claims, DOOR, known=known, spent=spent)
    assert (refused.admitted, refused.code, refused.close) == (False, "bad-token", CloseCode.BAD_TOKEN)
