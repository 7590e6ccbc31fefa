"""Scripts of what players do."""

from __future__ import annotations

import random

import pytest

from client_sim.core.script import Cast, draw, parse, presence_of, read_cast
from shared.errors import BadSetting
from shared.records import Presence


def test_a_script_says_the_presence_of_every_second() -> None:
    script = parse("0s desk, 10s desk+conversation, 40.5s meeting, 60 idle")
    assert script.at(0) == Presence(at_desk=True)
    assert script.at(9.99) == Presence(at_desk=True)
    assert script.at(10) == Presence(at_desk=True, in_conversation=True)
    assert script.at(41) == Presence(at_desk=False, in_ambient_meeting=True)
    assert script.at(9999) == Presence(at_desk=False)
    assert [script.next_after(at) for at in (0, 10, 50, 60)] == [10.0, 40.5, 60.0, None]


def test_before_its_first_step_a_player_is_idle() -> None:
    assert parse("5s desk").at(1) == presence_of("idle")


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", "no step"),
        ("desk", "no step"),
        ("0s lunch", "lunch"),
        ("0s desk, 0s idle", "after the step before"),
        ("5s desk, 1s idle", "after the step before"),
        ("0s idle+desk", "idle"),
        ("-1s desk", "no step"),
        (", ".join(f"{n}s desk" for n in range(1001)), "more than 1000"),
    ],
)
def test_a_bad_script_says_what_is_wrong(text: str, word: str) -> None:
    with pytest.raises(BadSetting, match=word):
        parse(text)


def test_chance_is_decided_by_the_seed() -> None:
    assert draw(random.Random(7)) == draw(random.Random(7))
    assert draw(random.Random(7)) != draw(random.Random(8))
    assert draw(random.Random(7)).steps[0].at_s == 0.0


def test_a_file_deals_scripts_by_weight() -> None:
    cast = read_cast("", toml='[[behaviour]]\nscript = "0s desk"\nweight = 2\n[[behaviour]]\nscript = "0s idle"\n')
    rng = random.Random(1)
    dealt = [cast.script(index, rng).at(0).at_desk for index in range(6)]
    assert dealt == [True, True, False, True, True, False]


@pytest.mark.parametrize(
    "toml",
    [
        "",
        "x",
        "behaviour = 1",
        "[[behaviour]]\nweight = 1",
        '[[behaviour]]\nscript = "0s desk"\nweight = 0',
        '[[behaviour]]\nscript = "0s desk"\nweight = true',
        '[[behaviour]]\nscript = "0s desk"\nweight = 1.5',
        "behaviour = [1]",
    ],
)
def test_a_bad_file_is_a_bad_setting(toml: str) -> None:
    with pytest.raises(BadSetting, match="behaviour"):
        read_cast("", toml=toml)


def test_random_draws_a_script_for_each_bot() -> None:
    assert read_cast("random") == Cast()
    rng = random.Random(3)
    assert Cast().script(0, rng) != Cast().script(0, rng)
