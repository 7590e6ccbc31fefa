"""What was seen in a chaos run: samples of the bots, answers of routers, and when each event began and ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearse.core.chaos.events import ChaosEvent

SAMPLE_S = 1.0
"""Between two samples of the bots: a silence that a sample tells may have ended so long before it."""
UNITS_PER_S = 50
"""Opus packets of 20 ms."""


@dataclass(frozen=True, kw_only=True, slots=True)
class BotSample:
    """One bot in the second before `at` [monotonic s]."""

    at: float
    bot: str
    room: str
    sfu: str
    gap_ms: float | None
    """The longest silence of any publication in that second, with what of it was before; None: it hears none."""
    units: int
    """Different audio packets heard since it joined."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RouterSight:
    """What one router told of the fleet's SFUs."""

    at: float
    router: str
    placeable: Mapping[str, bool]
    status: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoomSight:
    """What one router told of one room, when all was to be well."""

    router: str
    room: str
    players: tuple[str, ...]
    """Identities, one for each record."""
    publications: tuple[str, ...]
    """The identities of their publishers, one for each record."""
    there: frozenset[str]
    """Who is in the room."""

    @property
    def wrong(self) -> str:
        """What of it is not one record a session; empty when all is well."""
        for what, names in (("players", self.players), ("publications", self.publications)):
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                return f"two {what} of {', '.join(twice)}"
            if missing := sorted(self.there - set(names)):
                return f"no {what} of {', '.join(missing)}, who is there"
            if gone := sorted(set(names) - self.there):
                return f"{what} of {', '.join(gone)}, who is not there"
        return ""


@dataclass(slots=True)
class Happened:
    """An event that was carried out; times are monotonic seconds."""

    event: ChaosEvent
    began: float
    ended: float | None = None
    """When it was undone: a restarted program is ready, a paused one goes on."""
    touched: frozenset[str] = frozenset()
    """Bots that may hear it: those that share a room with a player on the SFU whose media stops."""


@dataclass(frozen=True, slots=True)
class BotWord:
    """Something that a bot said of its media: evicted, switched."""

    at: float
    bot: str
    word: str
    sfu: str = ""


@dataclass(slots=True)
class ChaosSeen:
    """One round."""

    happened: list[Happened] = field(default_factory=list)
    samples: list[BotSample] = field(default_factory=list)
    sights: list[RouterSight] = field(default_factory=list)
    rooms: list[RoomSight] = field(default_factory=list)
    words: list[BotWord] = field(default_factory=list)
    stalls: list[tuple[float, float]] = field(default_factory=list)
    """When this machine kept an idle process waiting, and for how long [monotonic s, s]."""
    lags: list[tuple[float, float]] = field(default_factory=list)
    """How late the bots were in sending: end of the second, and its worst [monotonic s, s]."""
    waits: list[tuple[float, float]] = field(default_factory=list)
    """How long a packet's way waited for a CPU: end of the second, and the waits of the processes on it together."""
    ended: dict[str, str] = field(default_factory=dict)
    """Programs that ended though no event ended them, and how."""
    unplaceable: dict[str, str] = field(default_factory=dict)
    """SFUs that some router would not place players on though all events are over, and why."""
    recovered_s: float | None = None
    """Seconds from the last event's end until all bots heard their whole room again; None: not in time."""
    tracebacks: list[tuple[str, str]] = field(default_factory=list)
    """Log files with a traceback, and its last line."""

    @property
    def late_s(self) -> float:
        """The longest stall, lag or second's wait of the round [s]."""
        return max((length for _, length in (*self.stalls, *self.lags, *self.waits)), default=0.0)

    def stall_s(self, begin: float, end: float) -> float:
        """The longest stall of the machine that touches this time [s]."""
        return max((length for at, length in self.stalls if at - length <= end and at >= begin), default=0.0)

    def wait_s(self, begin: float, end: float) -> float:
        """How long a packet's way waited for a CPU in this time, all seconds that touch it together [s]."""
        return sum(wait for at, wait in self.waits if at - 1.0 <= end and at >= begin)

    def lag_s(self, begin: float, end: float) -> float:
        """How late the bots were in sending at worst in this time [s]."""
        return max((lag for at, lag in self.lags if at - 1.0 - lag <= end and at >= begin), default=0.0)


def touched_by(event: ChaosEvent, samples: Iterable[BotSample]) -> frozenset[str]:
    """Who may hear this event, by the newest sample of each bot."""
    newest = {sample.bot: sample for sample in samples}
    if not event.traits.media:
        return frozenset()
    if event.target == "*":
        return frozenset(newest)
    # A bot that is between two SFUs may be on its way to this one.
    rooms = {sample.room for sample in newest.values() if sample.sfu in (event.target, "")}
    return frozenset(sample.bot for sample in newest.values() if sample.room in rooms)


def samples_in(report: Mapping[str, Any], *, at: float) -> list[BotSample]:
    """The bots' `report` as samples."""
    return [
        BotSample(
            at=at,
            bot=one["bot"],
            room=one["room"],
            sfu=one["sfu"],
            gap_ms=one["marked_audio_gap_ms"],
            units=one["gaps"]["audio_units"],
        )
        for one in report["reports"]
    ]


def all_hear(before: Iterable[BotSample], after: Iterable[BotSample], *, share: float = 0.9) -> list[str]:
    """Who does not hear its whole room: bots that got less than `share` of the packets of all the others."""
    first = {sample.bot: sample for sample in before}
    last = list(after)
    sizes: dict[str, int] = {}
    for sample in last:
        sizes[sample.room] = sizes.get(sample.room, 0) + 1
    deaf = []
    for sample in last:
        begin = first.get(sample.bot)
        due = (sizes[sample.room] - 1) * UNITS_PER_S * (sample.at - begin.at) if begin else 1.0
        if begin is None or not sample.sfu or sample.units - begin.units < share * due:
            deaf.append(sample.bot)
    return sorted(deaf)
