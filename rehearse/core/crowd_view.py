"""What is known of a crowd of bots from what they say: who is where, who hears whom, who failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from rehearse.core.ending import Ending, Failure

PUBLICATIONS_EACH = 2
"""A bot publishes one audio and one video track."""


@dataclass(slots=True)
class BotSeen:
    """One bot."""

    bot: str
    room: str
    sfu: str = ""
    """The SFU it publishes to; empty before it has arrived anywhere and after it was cut."""
    router: str = ""
    hearing: set[str] = field(default_factory=set)
    """Publications of others that it has received media of."""
    resumes: int = 0


@dataclass(frozen=True, slots=True)
class BotMoved:
    """A player has moved make-before-break."""

    bot: str
    room: str
    left: str
    sfu: str
    at: float
    """When the move was complete [monotonic s]."""


@dataclass(slots=True)
class CrowdView:
    """Feed it every event of the bots with `handle`."""

    bots: dict[str, BotSeen] = field(default_factory=dict)
    endings: list[Ending] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    left: set[str] = field(default_factory=set)
    """Bots that have left for good."""
    evicted: list[str] = field(default_factory=list)
    """Bots that lost their media without having moved, once for each time."""
    moves: list[BotMoved] = field(default_factory=list)
    _ended: set[str] = field(default_factory=set)
    """Publications of those that have left."""

    def watch(self, ending: Ending) -> None:
        """From now on facts about that SFU go to `ending` too."""
        self.endings.append(ending)

    def on(self, sfu: str) -> set[str]:
        """Who publishes to this SFU."""
        return {bot.bot for bot in self.bots.values() if bot.sfu == sfu}

    def moved_off(self, sfu: str) -> set[str]:
        """Who has moved from this SFU to another."""
        return {move.bot for move in self.moves if move.left == sfu}

    @property
    def most_moves(self) -> int:
        """Of one player."""
        return max(Counter(move.bot for move in self.moves).values(), default=0)

    def all_hear(self, bots: int) -> bool:
        """Whether that many bots are there and each receives all the others of its room."""
        return len(self.bots) == bots and not any(self._deaf_to(bot) for bot in self.bots.values())

    def missing(self, bots: int) -> str:
        """Who is not there or does not hear everybody, in words."""
        deaf = [f"{bot.bot} lacks {self._deaf_to(bot)}" for bot in self.bots.values() if self._deaf_to(bot)]
        words = [f"{bots - len(self.bots)} have not joined"] if len(self.bots) < bots else []
        return ", ".join(words + deaf[:5]) or "nobody"

    def handle(self, event: Mapping[str, Any]) -> None:
        """Take in one event. Unfamiliar ones, and those of no bot, change nothing."""
        name = event.get("bot")
        if not isinstance(name, str) or name in self.left:
            return
        bot = self.bots.get(name)
        if bot is None:
            bot = self.bots[name] = BotSeen(name, str(event.get("room", "")))
        self._of_bot(bot, event, at=float(event.get("t") or 0.0))

    def _of_bot(self, bot: BotSeen, event: Mapping[str, Any], *, at: float) -> None:
        sfu = str(event.get("sfu", ""))
        match event.get("event"):
            case "joined" | "resumed" as kind:
                bot.router = str(event.get("router", ""))
                bot.resumes += kind == "resumed"
            case "hearing":
                bot.hearing |= {str(event.get("publication", ""))} - self._ended
            case "left":
                self._leave(bot, event.get("publications"))
            case "switched":
                bot.sfu = sfu
            case "evicted":
                bot.sfu = ""
                self.evicted.append(bot.bot)
            case "failed-connection":
                self.failures.append(Failure(bot.bot, sfu, str(event.get("reason", ""))))
            case "cordoned":
                for ending in self._endings(sfu):
                    ending.on_told(bot.bot, at=at)
            case "moved":
                self.moves.append(BotMoved(bot.bot, bot.room, str(event.get("left", "")), sfu, at))
                for ending in self._endings(str(event.get("left", ""))):
                    if bot.bot in ending.on_it and bot.bot not in ending.rejoined:
                        ending.on_moved(bot.bot, at=at)
            case "rejoined":
                self._rejoined(bot, at=at)

    def _leave(self, bot: BotSeen, publications: object) -> None:
        """It need not be heard any more."""
        self.left.add(bot.bot)
        del self.bots[bot.bot]
        self._ended |= {str(each) for each in publications} if isinstance(publications, list) else set()
        for other in self.bots.values():
            other.hearing -= self._ended

    def _rejoined(self, bot: BotSeen, *, at: float) -> None:
        for ending in self.endings:
            if bot.bot in ending.left_behind:
                ending.on_rejoined(bot.bot, at=at)

    def _endings(self, sfu: str) -> list[Ending]:
        return [ending for ending in self.endings if ending.sfu == sfu]

    def _deaf_to(self, bot: BotSeen) -> int:
        """How many publications of its room it does not receive."""
        others = sum(1 for other in self.bots.values() if other.room == bot.room) - 1
        return max(0, PUBLICATIONS_EACH * others - len(bot.hearing)) or (0 if bot.sfu else 1)
