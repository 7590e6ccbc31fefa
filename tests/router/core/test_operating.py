"""Which operators' commands are passed on, and how many."""

from __future__ import annotations

import pytest

from router.core.operating import COMMAND_BURST, COMMANDS_PER_S, MAX_OPERATORS, Denied, Pace, denial
from shared.records import CommandVerb, Drain, DrainCause, SfuState, SfuStatus


def state(status: SfuStatus | None = None, cause: DrainCause | None = None) -> SfuState:
    drain = Drain(cause=cause.value) if cause else None
    return SfuState(address="ws://a", sfu="a", status=status.value if status else None, drain=drain)


@pytest.mark.parametrize(
    ("verb", "known", "why"),
    [
        (CommandVerb.CORDON, None, Denied.UNKNOWN_SFU),
        (CommandVerb.UNCORDON, None, Denied.UNKNOWN_SFU),
        (CommandVerb.CORDON, state(), None),
        (CommandVerb.UNCORDON, state(), None),
        (CommandVerb.DRAIN, state(SfuStatus.CORDONED, DrainCause.OPERATOR), None),
        (CommandVerb.UNCORDON, state(SfuStatus.CORDONED, DrainCause.OPERATOR), None),
        (CommandVerb.UNCORDON, state(SfuStatus.CORDONED), None),
        (CommandVerb.UNCORDON, state(SfuStatus.CORDONED, DrainCause.SIGTERM), Denied.SIGTERM),
        (CommandVerb.DRAIN, state(SfuStatus.CORDONED, DrainCause.SIGTERM), None),
        (CommandVerb.CORDON, state(SfuStatus.TERMINATING), Denied.TERMINATING),
        (CommandVerb.UNCORDON, state(SfuStatus.TERMINATING, DrainCause.SIGTERM), Denied.TERMINATING),
    ],
)
def test_a_command_is_refused_for_one_reason_with_a_fix(
    verb: CommandVerb, known: SfuState | None, why: Denied | None
) -> None:
    no = denial(verb, known)
    assert (no.why if no else None) == why
    assert no is None or len(no.fix) > 20


def test_an_operator_has_a_burst_and_then_a_pace_of_its_own() -> None:
    pace = Pace()
    answers = [pace.take("olga", now=0.0) for _ in range(int(COMMAND_BURST) + 1)]
    assert [no.why for no in answers if no] == [Denied.TOO_FAST]
    assert pace.take("otto", now=0.0) is None
    assert pace.take("olga", now=1.0 / COMMANDS_PER_S) is None
    assert pace.take("olga", now=1.0 / COMMANDS_PER_S) is not None


def test_many_operators_do_not_fill_the_memory_and_the_busy_one_is_not_forgotten() -> None:
    pace = Pace()
    for _ in range(int(COMMAND_BURST)):
        pace.take("olga", now=0.0)
    for n in range(10 * MAX_OPERATORS):
        pace.take(f"operator-{n}", now=0.0)
        assert pace.take("olga", now=0.0) is not None
    assert len(pace._buckets) == MAX_OPERATORS
