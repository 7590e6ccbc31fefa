"""The rule "safe to move": what a player knows of itself when it hears of a cordon, and the default rule (D5).

A rule is any callable `rule(facts: PlayerFacts) -> bool | RuleAnswer`, named on the command line as `module:function`.
It is asked when the player's SFU is cordoned and again each time the facts change. It must be quick and must not keep
state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PlayerFacts:
    """What a rule may look at."""

    identity: str
    room: str
    sfu: str
    """The cordoned SFU the player publishes to."""
    at_desk: bool
    in_ambient_meeting: bool
    in_conversation: bool
    cordoned_for_s: float = 0.0
    """Seconds since the player heard of the cordon."""
    asks_in_s: float | None = None
    """Seconds until the SFU asks all its players to move; None when unknown."""
    ends_in_s: float | None = None
    """Seconds until the SFU ends; None when unknown."""


@dataclass(frozen=True, slots=True)
class RuleAnswer:
    """What a player does about its cordoned SFU, and why in a word that operators see."""

    move: bool
    reason: str


Rule = Callable[[PlayerFacts], "bool | RuleAnswer"]


def safe_to_move(facts: PlayerFacts) -> RuleAnswer:
    """The default: move when at the desk and not in an ambient meeting (D5)."""
    if not facts.at_desk:
        return RuleAnswer(False, "away-from-desk")
    if facts.in_ambient_meeting:
        return RuleAnswer(False, "in-ambient-meeting")
    return RuleAnswer(True, "at-desk")


def never(facts: PlayerFacts) -> RuleAnswer:
    """Stay until the conversation is over or the SFU asks: the most patient player."""
    return RuleAnswer(False, "never")


def always(facts: PlayerFacts) -> RuleAnswer:
    """Move at once, whatever the player is doing."""
    return RuleAnswer(True, "always")
