"""All bots of a process: who they are, what they do by the second, and their report."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from client_sim.config import MAX_BOTS, BotsConfig
from client_sim.core import commands
from client_sim.core.clip import Clip, ClipIndex
from client_sim.core.gaps import Stretch
from client_sim.core.listener import source_of
from client_sim.core.replay import LoopedPicture, LoopedSound, LoopedTrack
from client_sim.core.report import BotReport, FleetReport, fleet_report, unmarked
from client_sim.core.script import Cast, PresenceScript, read_cast
from client_sim.shell.bot import Bot, BotPlan
from client_sim.shell.chronicle import Emit
from client_sim.shell.pacer import Pacer
from player.core.behaviour import RuleBox
from player.core.rules import Rule
from player.core.track import Numbers
from shared.errors import BadMessage, BadSetting
from shared.records import Presence
from shared.tokens import PlayerClaims, issue

TOKEN_TTL_S = 3600.0
"""A bot makes a fresh token for each join."""


def load_cast(behaviour: str) -> Cast:
    """The cast that the setting names. Raises `BadSetting`."""
    if not behaviour.startswith("@"):
        return read_cast(behaviour)
    path = Path(behaviour[1:])
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise BadSetting(setting="behaviour", detail=f"{path} can't be read: {error}") from None
    return read_cast("", toml=text)


class BotFleet:
    """Start it with `run`; it returns once all bots have left."""

    def __init__(self, config: BotsConfig, *, clip: Clip, rule: Rule, emit: Emit) -> None:
        self.config = config
        self.bots: list[Bot] = []
        self.pacer = Pacer()
        self.stopping = asyncio.Event()
        self._clip = clip
        self._index = ClipIndex(clip)
        self._rule = rule
        self._emit = emit
        self._rng = random.Random(config.seed or None)
        self._cast = load_cast(config.behaviour)
        self._began = time.monotonic()
        self._launched = 0
        self._playing: dict[str, asyncio.Task[None]] = {}
        self._leaving: set[asyncio.Task[None]] = set()
        self._left: list[BotReport] = []

    async def run(self) -> FleetReport:
        """All bots join, play, and leave when `stopping` is set or the time is over."""
        self._began = time.monotonic()
        try:
            for index in range(self.config.bots):
                self._launch(self.config.room_of(index))
                if await self._stopped_within(1.0 / self.config.join_per_s):
                    break
            self._emit("started", bots=len(self.bots))
            duration_s = self.config.duration_s
            await self._stopped_within(self._began + duration_s - time.monotonic() if duration_s else None)
            return self.report()
        finally:
            for task in self._playing.values():
                task.cancel()
            await asyncio.gather(*(bot.leave() for bot in self.bots), *self._leaving)
            self.pacer.stop()

    def report(self) -> FleetReport:
        """What has come of all bots so far."""
        now = time.monotonic()
        return fleet_report(
            [*self._left, *(bot.report(now=now) for bot in self.bots)],
            frame_ms=self._index.frame_ms,
            worst_send_lag_ms=self.pacer.worst_lag_s * 1000.0,
            marked_send_lag_ms=self.pacer.marked_lag_s * 1000.0,
            took_s=now - self._began,
        )

    def command(self, command: commands.AnyCommand) -> None:
        """Carry out what an observer says."""
        match command:
            case commands.PresenceCommand():
                for bot in self.bots:
                    if command.bot in (commands.ALL_BOTS, bot.plan.identity):
                        bot.player.set_presence(_changed(bot.player.presence, command))
            case commands.JoinCommand():
                self._join(command)
            case commands.LeaveCommand():
                for bot in list(self.bots):
                    if command.bot in (commands.ALL_BOTS, bot.plan.identity):
                        self._dismiss(bot)
            case commands.MarkCommand():
                self._left = [unmarked(report) for report in self._left]
                self.pacer.mark()
                for bot in self.bots:
                    bot.audience.mark(Stretch.OBSERVER)
            case commands.ReportCommand():
                self._emit("report", report=self.report())
            case commands.StopCommand():
                self.stopping.set()

    async def _stopped_within(self, wait_s: float | None) -> bool:
        if wait_s is None:
            return await self.stopping.wait()
        try:
            async with asyncio.timeout(max(0.0, wait_s)):
                return await self.stopping.wait()
        except TimeoutError:
            return False

    def _launch(self, room: str) -> None:
        """The next player joins a room."""
        index, self._launched = self._launched, self._launched + 1
        rng = random.Random(self._rng.getrandbits(64))
        script = self._cast.script(index, rng)
        listens = self.config.bots - self.config.subscribe_only <= index < self.config.bots
        tracks = () if listens else self._tracks(rng)
        identity = f"{self.config.name}-{index + 1}"
        plan = BotPlan(
            identity=identity,
            room=room,
            routers=self.config.routers,
            token=self._tokens(identity, room),
            tracks=tracks,
            presence=script.at(0.0),
            spread_s=self.config.move_spread_s,
            index=self._index,
        )
        bot = Bot(plan, rule=RuleBox(self._rule), emit=self._emit, rng=rng)
        self.bots.append(bot)
        bot.start(self.pacer)
        self._playing[identity] = asyncio.create_task(_play(bot, script))

    def _join(self, command: commands.JoinCommand) -> None:
        if self.config.token:
            raise BadMessage(direction="bots-command", detail="the token is one player's, so no other can join")
        if self._launched + command.bots > MAX_BOTS:
            raise BadMessage(direction="bots-command", detail=f"that makes more than {MAX_BOTS} bots")
        for _ in range(command.bots):
            self._launch(command.room)

    def _dismiss(self, bot: Bot) -> None:
        """A player leaves; its report is what it had met until now."""
        self.bots.remove(bot)
        self._left.append(bot.report(now=time.monotonic()))
        self._playing.pop(bot.plan.identity).cancel()
        leaving = asyncio.create_task(bot.leave())
        self._leaving.add(leaving)
        leaving.add_done_callback(self._leaving.discard)
        bot.chronicle.tell("left", publications=bot.publications)

    def _tokens(self, identity: str, room: str) -> Callable[[], str]:
        if self.config.token:
            return lambda: self.config.token
        claims = PlayerClaims(room=room, identity=identity, name=identity)
        return lambda: issue(claims, secret=self.config.secret, now_at=time.time(), ttl_s=TOKEN_TTL_S)

    def _tracks(self, rng: random.Random) -> tuple[LoopedTrack, ...]:
        def facts(kind: str, mid: str) -> dict[str, Any]:
            publication = f"{kind}-{rng.getrandbits(64):016x}"
            return {"mid": mid, "publication": publication, "numbers": Numbers.draw(rng)}

        source, start = source_of(self._index.clip_id), time.monotonic()
        sound = LoopedSound(self._clip, source=source, start=start, **facts("audio", "0"))
        if not self.config.video:
            return (sound,)
        return (sound, LoopedPicture(self._clip, source=source, start=start, **facts("video", "1")))


async def _play(bot: Bot, script: PresenceScript) -> None:
    """Change the bot's presence as its script says."""
    began = time.monotonic()
    while (at_s := script.next_after(time.monotonic() - began)) is not None:
        await asyncio.sleep(max(0.0, began + at_s - time.monotonic()))
        bot.player.set_presence(script.at(at_s))


def _changed(presence: Presence, command: commands.PresenceCommand) -> Presence:
    def pick(new: bool | None, old: bool) -> bool:
        return old if new is None else new

    return Presence(
        at_desk=pick(command.at_desk, presence.at_desk),
        in_ambient_meeting=pick(command.in_ambient_meeting, presence.in_ambient_meeting),
        in_conversation=pick(command.in_conversation, presence.in_conversation),
    )
