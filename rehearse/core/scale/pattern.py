"""The pattern of a scale-out and a scale-in, sought in the log lines of the whole fleet, in its order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rehearse.core.scale.log import LogLine

Test = Callable[[LogLine], bool]


@dataclass(frozen=True, kw_only=True, slots=True)
class PatternStep:
    """One step of the pattern; without a line it was not found where it belongs."""

    step: str
    line: LogLine | None


class _Seeker:
    """Goes through lines once: each step is sought behind the one before."""

    def __init__(self, lines: Sequence[LogLine]) -> None:
        self._lines = lines
        self._next = 0
        self.marks: list[PatternStep] = []

    def seek(self, step: str, test: Test) -> LogLine | None:
        for index in range(self._next, len(self._lines)):
            if test(self._lines[index]):
                self._next = index + 1
                self.marks.append(PatternStep(step=step, line=self._lines[index]))
                return self._lines[index]
        self.marks.append(PatternStep(step=step, line=None))
        return None

    def field(self, step: str, tag: str, words: str, key: str, **fields: str) -> str:
        """Seek a line with these fields; the value of one more, `?` when there is no such line."""
        line = self.seek(step, lambda each: each.has(tag, words, **fields))
        return "?" if line is None else line.fields.get(key, "?")


def scale_out(lines: Sequence[LogLine], *, hits: int, window: int) -> list[PatternStep]:
    """Hot ticks up to `hits`, launch, health, first packet, capacity, first room."""
    seeker = _Seeker(_since_zero(lines, "hits", "scale-out"))
    for count in range(1, hits):
        seeker.field(f"hits {count}/{window}", "scale", "tick", "hits", hits=f"{count}/{window}")
    last = {"hits": f"{hits}/{window}", "action": "scale-out"}
    seeker.field(f"hits {hits}/{window}, scale-out", "scale", "tick", "hits", **last)
    request = seeker.field("launch", "pool", "launch", "request")
    sfu = seeker.field("launched", "pool", "launched", "sfu", request=request)
    seeker.field("healthy", "pool", "healthy", "sfu", sfu=sfu)
    seeker.field("first packet", "pool", "first-packet", "sfu", sfu=sfu)
    seeker.field("capacity", "pool", "capacity", "sfu", sfu=sfu)
    seeker.field("first room placed", "place", "", "sfu", sfu=sfu, reason="chosen")
    seeker.field("first room", "pool", "first-room", "sfu", sfu=sfu)
    return seeker.marks


def scale_in(lines: Sequence[LogLine], *, ticks: int) -> list[PatternStep]:
    """Quiet ticks in a row, cordon, skipped in placement, streams to zero, terminate."""
    seeker = _Seeker(_since_zero(lines, "quiet", "scale-in"))
    for count in range(1, ticks):
        seeker.field(f"quiet {count}/{ticks}", "scale", "tick", "quiet", quiet=f"{count}/{ticks}")
    last = {"quiet": f"{ticks}/{ticks}", "action": "scale-in"}
    seeker.field(f"quiet {ticks}/{ticks}, scale-in", "scale", "tick", "quiet", **last)
    sfu = seeker.field("cordon", "drain", "cordon", "sfu")
    seeker.seek("skipped in placement", lambda line: line.tag == "place" and passed_over(line, sfu))
    seeker.field("terminate at zero", "pool", "terminate", "sfu", sfu=sfu, streams="0", egress_bps="0")
    return seeker.marks


def passed_over(line: LogLine, sfu: str) -> bool:
    """A placement that found this SFU cordoned, and sent its player elsewhere."""
    rejected = line.fields.get("rejected", "").split(",")
    return f"{sfu}:cordoned" in rejected and line.fields.get("sfu") not in (sfu, "-")


def placed_on_cordoned(lines: Sequence[LogLine], sfu: str) -> list[LogLine]:
    """Placements on an SFU by a router that had found it cordoned before (invariant 1)."""
    knows: set[str] = set()
    wrong: list[LogLine] = []
    for line in lines:
        if line.tag == "place" and f"{sfu}:cordoned" in line.fields.get("rejected", "").split(","):
            knows.add(line.program)
        elif line.tag == "place" and line.fields.get("sfu") == sfu and line.program in knows:
            wrong.append(line)
    return wrong


def first_missing(marks: Sequence[PatternStep]) -> str:
    """The step that was sought in vain, in words; empty when all were found."""
    before = "the beginning"
    for mark in marks:
        if mark.line is None:
            return f"'{mark.step}' is not in the log after {before}"
        before = f"'{mark.step}'"
    return ""


def _since_zero(lines: Sequence[LogLine], streak: str, action: str) -> Sequence[LogLine]:
    """The lines from where the streak began that led to the first such action; all lines when there was none."""
    ticks = [index for index, line in enumerate(lines) if line.has("scale", "tick")]
    acted = next((index for index in ticks if lines[index].fields.get("action") == action), None)
    if acted is None:
        return lines
    zeros = [index for index in ticks if index < acted and lines[index].count(streak) == 0]
    return lines[zeros[-1] + 1 if zeros else 0 :]
