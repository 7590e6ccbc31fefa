"""When a command counts as followed, and whom a forced exit ends."""

from __future__ import annotations

import pytest

from operators.core.orders import CommandAnswer, leaves_none, progress, touched, why_not
from shared.records import CommandVerb, Drain, ExitScope, SfuState
from shared.store.answers import HeardSfu

ONLINE = SfuState(address="ws://a", sfu="a", version="v1")
HELD = SfuState(address="ws://a", sfu="a", version="v1", status="CORDONED", drain=Drain(exit_when_empty=False))
DRAINING = SfuState(address="ws://a", sfu="a", version="v1", status="CORDONED", drain=Drain())
SIGTERMED = SfuState(address="ws://a", sfu="a", status="CORDONED", drain=Drain(cause="sigterm"))
ENDING = SfuState(address="ws://a", sfu="a", status="TERMINATING", drain=Drain(cause="sigterm"))


@pytest.mark.parametrize(
    ("verb", "state", "answer"),
    [
        (CommandVerb.CORDON, ONLINE, CommandAnswer.WAITING),
        (CommandVerb.CORDON, HELD, CommandAnswer.DONE),
        (CommandVerb.CORDON, SIGTERMED, CommandAnswer.DONE),
        (CommandVerb.DRAIN, ONLINE, CommandAnswer.WAITING),
        (CommandVerb.DRAIN, HELD, CommandAnswer.WAITING),
        (CommandVerb.DRAIN, DRAINING, CommandAnswer.DONE),
        (CommandVerb.DRAIN, ENDING, CommandAnswer.DONE),
        (CommandVerb.DRAIN, None, CommandAnswer.DONE),
        (CommandVerb.UNCORDON, HELD, CommandAnswer.WAITING),
        (CommandVerb.UNCORDON, ONLINE, CommandAnswer.DONE),
        (CommandVerb.UNCORDON, SIGTERMED, CommandAnswer.REFUSED),
        (CommandVerb.UNCORDON, ENDING, CommandAnswer.REFUSED),
        (CommandVerb.UNCORDON, None, CommandAnswer.REFUSED),
    ],
)
def test_a_command_is_followed_when_the_state_says_so(
    verb: CommandVerb, state: SfuState | None, answer: CommandAnswer
) -> None:
    assert progress(verb, state).answer is answer


def test_a_status_of_a_newer_version_is_not_taken_for_a_cordon() -> None:
    newer = SfuState(address="ws://a", sfu="a", status="HIBERNATING")
    assert progress(CommandVerb.CORDON, newer).answer is CommandAnswer.WAITING


def test_a_forced_exit_touches_only_cordoned_sfus_in_scope() -> None:
    other = SfuState(address="ws://b", sfu="b", version="v2", status="CORDONED", drain=Drain())
    states = [
        ONLINE,
        other,
        SfuState(address="ws://c", sfu="c", version="v1", status="CORDONED", drain=Drain()),
        ENDING,
    ]
    assert touched(ExitScope.ALL_CORDONED, "", states) == ["b", "c"]
    assert touched(ExitScope.VERSION, "v1", states) == ["c"]
    assert touched(ExitScope.SFU, "b", states) == ["b"]
    assert touched(ExitScope.SFU, "a", [ONLINE]) == []


def test_a_command_to_a_silent_sfu_says_that_it_is_silent() -> None:
    assert why_not(HeardSfu(ONLINE, silent_for_s=12.0)) == "nothing was heard of it for 12 s: has its process died?"
    for heard in (HeardSfu(ONLINE, silent_for_s=0.5), HeardSfu(ONLINE), None):
        assert "is a router up" in why_not(heard)


OTHER = SfuState(address="ws://b", sfu="b")


@pytest.mark.parametrize(
    ("fleet", "last"),
    [
        ([HeardSfu(ONLINE)], True),
        ([HeardSfu(ONLINE), HeardSfu(OTHER)], False),
        ([HeardSfu(ONLINE), HeardSfu(OTHER, silent_for_s=4.0)], True),
        ([HeardSfu(DRAINING), HeardSfu(OTHER)], False),
        ([HeardSfu(DRAINING)], False),  # looking at a drain that goes on asks nothing
        ([], False),
    ],
)
def test_the_last_sfu_that_takes_players_is_known(fleet: list[HeardSfu], last: bool) -> None:
    assert leaves_none("a", fleet) is last
