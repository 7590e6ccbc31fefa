"""The names in Redis are part of version 1: programs of two versions share them (D9)."""

from __future__ import annotations

from shared.keys import Keys
from shared.store.answers import Wake, WakeKind
from shared.store.wake import read_hint, write_hint


def test_the_names_of_keys_are_pinned() -> None:
    keys = Keys("f")
    assert keys.sfu("a") == "{f}:sfu:a"
    assert keys.sfu_stamps("a") == "{f}:sfu:a:stamps"
    assert keys.sfus == "{f}:sfus"
    assert keys.router("r") == "{f}:router:r"
    assert keys.routers == "{f}:routers"
    assert keys.room("x") == "{f}:room:x"
    assert keys.room_leases("x") == "{f}:room:x:leases"
    assert keys.in_flight("a") == "{f}:inflight:a"
    assert keys.tried("a", 7) == "{f}:tries:a:7:all"
    assert keys.failed("a", 7) == "{f}:tries:a:7:failed"
    assert keys.failing == "{f}:failing"
    assert keys.placements == "{f}:placements"
    assert keys.exits == "{f}:exits"
    assert keys.commands == "{f}:commands"
    assert keys.drain_reports == "{f}:drain-reports"
    assert keys.scaling_lease == "{f}:scaling:lease"
    assert keys.scaling_token == "{f}:scaling:token"
    assert keys.scaling_state == "{f}:scaling:state"
    assert keys.scaling_audit == "{f}:scaling:audit"
    assert keys.wake == "{f}:wake"


def test_no_room_has_a_key_of_another_room() -> None:
    keys = Keys("f")
    rooms = ["x", "x:leases", "x%3Aleases", "x:", "x%", "x%25", ":", "", "x:leases:leases"]
    named = [key for room in rooms for key in (keys.room(room), keys.room_leases(room))]
    assert len(set(named)) == len(named)


def test_hints_are_pinned() -> None:
    hints = [Wake(WakeKind.SFU, "a"), Wake(WakeKind.ROOM, "b c"), Wake(WakeKind.EXIT), Wake(WakeKind.COMMAND, "a")]
    assert [write_hint(hint) for hint in hints] == ["sfu a", "room b c", "exit", "command a"]
    assert [read_hint(write_hint(hint).encode()) for hint in hints] == hints
