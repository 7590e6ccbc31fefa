"""When a player moves off a cordoned SFU."""

from __future__ import annotations

import pytest

from player.core.behaviour import MAX_REASON, RuleBox, decide
from player.core.rules import PlayerFacts, RuleAnswer, always, never, safe_to_move


def facts(*, desk: bool = False, meeting: bool = False, conversation: bool = False) -> PlayerFacts:
    return PlayerFacts(
        identity="ann",
        room="r",
        sfu="a",
        at_desk=desk,
        in_ambient_meeting=meeting,
        in_conversation=conversation,
    )


@pytest.mark.parametrize(
    ("desk", "meeting", "conversation", "move", "reason"),
    [
        (True, False, False, True, "at-desk"),
        (True, False, True, True, "at-desk"),
        (True, True, False, False, "in-ambient-meeting"),
        (True, True, True, False, "in-ambient-meeting"),
        (False, False, True, False, "away-from-desk"),
        (False, True, False, False, "away-from-desk"),
        (False, False, False, True, "conversation-over"),
    ],
)
def test_the_default_rule_and_the_end_of_the_conversation(
    desk: bool, meeting: bool, conversation: bool, move: bool, reason: str
) -> None:
    who = facts(desk=desk, meeting=meeting, conversation=conversation)
    assert decide(who, RuleBox(safe_to_move), asked=False) == RuleAnswer(move, reason)


def test_asked_moves_whatever_the_rule_says() -> None:
    assert decide(facts(conversation=True), RuleBox(never), asked=True) == RuleAnswer(True, "asked")


def test_a_rule_may_move_in_the_middle_of_a_conversation() -> None:
    assert decide(facts(conversation=True), RuleBox(always), asked=False) == RuleAnswer(True, "always")


@pytest.mark.parametrize(("answer", "expected"), [(True, (True, "rule-yes")), (False, (False, "rule-no"))])
def test_a_rule_may_answer_with_a_bool(answer: bool, expected: tuple[bool, str]) -> None:
    assert decide(facts(conversation=True), RuleBox(lambda _: answer), asked=False) == RuleAnswer(*expected)


def broken(_: PlayerFacts) -> bool:
    raise RuntimeError("no")


@pytest.mark.parametrize("rule", [broken, lambda _: None, lambda _: "yes", lambda _: 1])
def test_a_bad_rule_is_counted_told_once_and_means_stay(rule: object, caplog: pytest.LogCaptureFixture) -> None:
    box = RuleBox(rule)  # type: ignore[arg-type]
    for _ in range(2):
        assert decide(facts(conversation=True), box, asked=False) == RuleAnswer(False, "rule-failed")
    assert box.faults == 2
    assert box.last_fault
    assert [box.last_fault in record.getMessage() for record in caplog.records] == [True]


def test_a_reason_is_cut_to_a_bound() -> None:
    box = RuleBox(lambda _: RuleAnswer(False, "x" * 10_000))
    assert len(decide(facts(conversation=True), box, asked=False).reason) == MAX_REASON
