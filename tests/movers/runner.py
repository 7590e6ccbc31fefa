"""Runs a story of `stories/` over the Python mover. `runner.mjs` is the same for the browser's."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from player.core import moves as m
from player.core.behaviour import RuleBox, decide
from player.core.mover import Mover
from player.core.phases import Phase
from player.core.rules import PlayerFacts, Rule, RuleAnswer, never, safe_to_move
from shared.records import Presence

STORIES = Path(__file__).parent / "stories"
SEEDS = range(1, 6)
SLACK_S = 1e-6


def throws(facts: PlayerFacts) -> bool:
    raise RuntimeError("no")


RULES: dict[str, Rule] = {
    "desk": safe_to_move,
    "never": never,
    "throws": throws,
    "nonsense": lambda _: "yes",  # type: ignore[dict-item,return-value]
    "no": lambda _: False,
    "wordy": lambda _: RuleAnswer(False, "x" * 1000),
}


def load() -> list[dict[str, Any]]:
    """All stories."""
    return [story for file in sorted(STORIES.glob("*.json")) for story in json.loads(file.read_text())]


class Run:
    """One story with one seed. Raises AssertionError at the first step that does not hold."""

    def __init__(self, story: dict[str, Any], seed: int) -> None:
        start = story.get("start", {})
        self.story = story
        self.box = RuleBox(RULES[start.get("rule", "desk")])
        self.publications = tuple(start.get("publications", ("mic", "cam")))
        self.mover = Mover(
            identity="ann",
            room="r",
            publications=self.publications,
            decide=lambda facts, asked: decide(facts, self.box, asked=asked),
            rng=random.Random(seed),
            presence=Presence(**start.get("presence", {})),
        )
        self.now = 100.0
        self.request = ""
        self.names: dict[int, str] = {}
        """Links by the mover's number."""
        self.generations: dict[int, str] = {}
        """Links by generation."""
        self.open: set[str] = set()
        self.flows: set[tuple[str, str]] = set()
        """Publications and the links on which they flow."""

    def run(self) -> None:
        """Play it through."""
        home = self.story.get("start", {}).get("at")
        if home:
            self._settle(home)
        for number, step in enumerate(self.story["steps"], 1):
            self._step(step, f"{self.story['name']}: step {number}, {step['event']}")

    def _settle(self, sfu: str) -> None:
        self._happens({"event": "joined", "assigned": True})
        self._happens({"event": "assigned", "sfu": sfu, "request": ""})
        self._happens({"event": "entered", "link": sfu})
        for publication in self.publications:
            self._happens({"event": "flowing", "link": sfu, "publication": publication})
        assert self.mover.phase is Phase.SETTLED

    def _step(self, step: dict[str, Any], where: str) -> None:
        if "at_due" in step:
            deadline = self._due_in(step["at_due"], where)
            self.now += max(0.0, deadline)
        self.now += step.get("after", 0.0)
        effects = self._happens(step)
        expected = step.get("effects", [])
        matches = len(effects) == len(expected) and all(map(_matches, effects, expected))
        assert matches, f"{where}: expected {expected}, the mover does {effects}"
        if "phase" in step:
            assert self.mover.phase.value == step["phase"], f"{where}: {self.mover.phase}, not {step['phase']}"
        if "rule_faults" in step:
            assert self.box.faults == step["rule_faults"], f"{where}: {self.box.faults} faults"
        if "due" in step and step["due"] is None:
            assert self.mover.next_deadline() is None, f"{where}: there is a deadline"
        elif "due" in step:
            self._due_in(step["due"], where)

    def _due_in(self, bounds: list[float], where: str) -> float:
        deadline = self.mover.next_deadline()
        assert deadline is not None, f"{where}: no deadline"
        ahead = deadline - self.now
        least, most = bounds
        assert least - SLACK_S <= ahead <= most + SLACK_S, f"{where}: the deadline is {ahead} s ahead, not {bounds}"
        return ahead

    def _happens(self, step: dict[str, Any]) -> list[str]:
        event = self._event(step)
        effects = self.mover.tick(now=self.now) if event is None else self.mover.handle(event, now=self.now)
        return [word for effect in effects if (word := self._word(effect))]

    def _event(self, step: dict[str, Any]) -> m.Event | None:
        version = {"incarnation": step.get("incarnation", 1), "revision": step.get("revision", 1)}
        match step["event"]:
            case "tick":
                return None
            case "joined":
                return m.Joined(assigned=step["assigned"])
            case "router-back":
                return m.RouterBack()
            case "router-lost":
                return m.RouterLost()
            case "assigned":
                request = step.get("request", self.request)
                return m.Assigned(sfu=step["sfu"], address="ws://x", token="t", request=request, **version)
            case "refused":
                request = step.get("request", self.request)
                return m.Unassigned(request=request, code=step["code"], retry_after_s=step.get("retry_after_s"))
            case "cordoned":
                return m.CordonHeard(sfu=step["sfu"], **version)
            case "uncordoned":
                return m.CordonTakenBack(sfu=step["sfu"], **version)
            case "gone":
                return m.SfuEnded(sfu=step["sfu"], reason=step.get("reason", ""))
            case "asked":
                return m.AskedToMove(sfu=step["sfu"], within_s=step["within_s"], **version)
            case "presence":
                return m.PresenceChanged(presence=Presence(**step["presence"]))
            case _:
                return self._link_event(step, self._number(step["link"]))

    def _link_event(self, step: dict[str, Any], link: int) -> m.Event:
        match step["event"]:
            case "entered":
                return m.LinkEntered(link=link)
            case "connected":
                return m.MediaConnected(link=link)
            case "flowing":
                self.flows.add((step["publication"], step["link"]))
                return m.PublicationFlows(link=link, publication=step["publication"])
            case "watched":
                return m.Watched(link=link, publication=step["publication"], count=step["count"])
            case "link-down":
                return m.LinkDown(link=link, reason=step["reason"], cut=step.get("cut", True))
            case _:
                raise AssertionError(f"no such event: {step['event']}")

    def _number(self, name: str) -> int:
        return next(number for number, known in self.names.items() if known == name)

    def _word(self, effect: m.Effect) -> str:
        match effect:
            case m.AskRouter():
                self.request = effect.request
                leaving = f" leaving {effect.leave}@{effect.incarnation}.{effect.revision}" if effect.leave else ""
                excluding = f" excluding {' '.join(effect.exclude)}" if effect.exclude else ""
                return f"ask {effect.reason}{leaving}{excluding}"
            case m.OpenLink():
                return f"open {self._opened(effect)}"
            case m.Announce():
                link = self.generations[effect.generation]
                assert link.split("#")[0] == effect.sfu
                assert (effect.publication, link) in self.flows, f"{effect.publication} does not flow on {link}"
                return f"announce {effect.publication} on {link}"
            case m.LetGo() | m.Abandon():
                name = self.names[effect.link]
                assert name in self.open, f"{name} is not open"
                self.open.remove(name)
                return f"release {name}"
            case m.ReportDecided():
                return f"decided {effect.sfu}: {'move' if effect.move else 'stay'}, {effect.reason}"
            case m.ReportMoved():
                return f"moved from {effect.left} to {effect.sfu} after {effect.took_ms / 1000:g} s"
            case m.TellStep(step=m.MoveStep.FAILED):
                return f"failed {effect.sfu}: {effect.reason}"
            case m.TellStep(step=m.MoveStep.CANCELLED):
                return f"cancelled: {effect.reason}"
            case m.TellStep():
                return ""

    def _opened(self, effect: m.OpenLink) -> str:
        assert effect.generation > max(self.generations, default=0), "the generation must grow"
        before = sum(name.split("#")[0] == effect.sfu for name in self.names.values())
        name = f"{effect.sfu}#{before + 1}" if before else effect.sfu
        self.names[effect.link] = self.generations[effect.generation] = name
        self.open.add(name)
        return name


def _matches(effect: str, expected: str) -> bool:
    return effect.startswith(expected[:-1]) if expected.endswith("*") else effect == expected
