"""When a player moves off a cordoned SFU: a ladder of named rules around the plug-in."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from player.core.rules import PlayerFacts, Rule, RuleAnswer

MAX_REASON = 64
"""Longest reason a plug-in may give [characters]; it travels to every operator."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RuleBox:
    """The plug-in with a guard around it: what it raises or returns wrongly is counted, logged, and means "stay"."""

    rule: Rule
    faults: int = 0
    last_fault: str = ""

    def ask(self, facts: PlayerFacts) -> RuleAnswer:
        """The plug-in's decision; never raises."""
        try:
            answer: object = self.rule(facts)
        except Exception as error:  # a plug-in may raise anything, and a player must outlive it
            return self._fault(f"{type(error).__name__}: {error}")
        if isinstance(answer, RuleAnswer):
            return RuleAnswer(bool(answer.move), str(answer.reason)[:MAX_REASON])
        if isinstance(answer, bool):
            return RuleAnswer(answer, "rule-yes" if answer else "rule-no")
        return self._fault(f"returned {type(answer).__name__}, not bool or RuleAnswer")

    def _fault(self, detail: str) -> RuleAnswer:
        self.faults += 1
        if detail[:200] != self.last_fault:  # once for each kind: it is asked again and again
            self.last_fault = detail[:200]
            log.warning("[player] the rule failed, so the player stays: %s", self.last_fault)
        return RuleAnswer(False, "rule-failed")


def decide(facts: PlayerFacts, box: RuleBox, *, asked: bool) -> RuleAnswer:
    """Whether to move off the cordoned SFU now. The first rule that applies decides:

    1. asked by the SFU, past `drain_max` (D7): move, whatever the plug-in says;
    2. the plug-in says yes (D5): move;
    3. the conversation is over, in no conversation and in no ambient meeting: move (D5, "stays until it ends");
    4. otherwise stay, for the plug-in's reason.
    """
    if asked:
        return RuleAnswer(True, "asked")
    verdict = box.ask(facts)
    if verdict.move:
        return verdict
    if not (facts.in_conversation or facts.in_ambient_meeting):
        return RuleAnswer(True, "conversation-over")
    return verdict
