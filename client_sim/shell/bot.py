"""One simulated player: the mover and the follower decide, this carries out."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from client_sim.core.audience import Audience
from client_sim.core.clip import ClipIndex
from client_sim.core.gaps import Mark
from client_sim.core.listener import source_of
from client_sim.core.replay import Track
from client_sim.core.report import BotReport, gaps_of
from client_sim.shell.chronicle import Chronicle, Emit
from client_sim.shell.publisher import Publisher
from player.core import follower as f
from player.core import moves as m
from player.core.behaviour import RuleBox, decide
from player.core.follower import Follower
from player.core.mover import Mover
from player.core.translate import media_event, router_event, router_message
from player.shell.connections import Connections
from player.shell.media_link import MediaLink
from player.shell.router_link import Callbacks, RouterLink
from player.shell.wire import Closed
from shared.messages import media, player
from shared.messages.base import Message
from shared.messages.codes import Refusal
from shared.records import Presence, PublicationRecord

CLIENT = "sluice-bot/1"


@dataclass(frozen=True, kw_only=True, slots=True)
class BotPlan:
    """Who a bot is."""

    identity: str
    room: str
    routers: Sequence[str]
    token: Callable[[], str]
    """A fresh player token."""
    tracks: tuple[Track, ...] = ()
    """What it publishes; empty: it only listens."""
    presence: Presence
    spread_s: float = 0.0
    index: ClipIndex


class Bot:
    """Start it with `start`, end it with `leave`. Everything runs on one event loop."""

    def __init__(self, plan: BotPlan, *, rule: RuleBox, emit: Emit, rng: random.Random) -> None:
        self.plan = plan
        self.presence = plan.presence
        self.audience = Audience(plan.index)
        self.chronicle = Chronicle(bot=plan.identity, room=plan.room, audience=self.audience, emit=emit)
        self._rule = rule
        self._publications = {track.kind: f"{track.kind}-{rng.getrandbits(64):016x}" for track in plan.tracks}
        self.mover = Mover(
            identity=plan.identity,
            room=plan.room,
            publications=tuple(self._publications.values()),
            decide=lambda facts, asked: decide(facts, rule, asked=asked),
            rng=rng,
            presence=plan.presence,
            spread_s=plan.spread_s,
        )
        self.follower = Follower(rng=rng, own=frozenset(self._publications.values()))
        self.router = RouterLink(
            plan.routers,
            Callbacks(join=self._join, resume=self._resume, message=self._from_router, lost=self._router_lost),
            rng=rng,
        )
        self.connections = Connections(
            owner=self,
            publications=self._publications,
            cname=f"{plan.identity[:40]}-{rng.getrandbits(32):08x}",
            wanted=self.follower.wanted,
            closed=lambda sfu: self._run(self.follower.closed(sfu)),
        )
        self._me = ""
        self._visits: dict[str, str] = {}
        """SFUs we asked the router's leave to visit, by request id."""
        self._requests = 0
        self._kinds = {publication: kind for kind, publication in self._publications.items()}
        self._source = source_of(plan.index.clip_id)
        self._queue: deque[m.Effect | f.Effect] = deque()
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._session: asyncio.Task[None] | None = None

    # --- the outside ---

    def start(self, publisher: Publisher | None) -> None:
        """Join. The publisher, if any, runs on the process's pacer already."""
        self.connections.publisher = publisher
        self._session = asyncio.create_task(self.router.run())

    def set_presence(self, presence: Presence) -> None:
        """The player's situation has changed."""
        if presence == self.presence:
            return
        self.presence = presence
        self.router.send(player.SetPresence(presence=presence))
        self._handle(m.PresenceChanged(presence=presence))

    async def leave(self) -> None:
        """End the session and all links."""
        if self.connections.publisher is not None:
            self.connections.publisher.stop()
        await self.router.leave()
        self._handle(m.Left())
        await self.connections.close()
        if self._timer is not None:
            self._timer.cancel()
        if self._session is not None:
            self._session.cancel()

    @property
    def publications(self) -> tuple[str, ...]:
        """Ids of what it publishes; they stay the same over moves."""
        return tuple(self._publications.values())

    @property
    def sfu(self) -> str:
        """The SFU that carries us; empty when none does."""
        home = self.mover.links.home
        return home.sfu if home is not None and not home.lost else ""

    def report(self, *, now: float) -> BotReport:
        """What has come of it so far."""
        counts = self.chronicle.counts
        self.connections.count(counts)
        counts.resumes = self.router.resumes
        counts.rule_faults = self._rule.faults
        publisher = self.connections.publisher
        if publisher is not None:
            counts.keyframe_requests = publisher.keyframe_requests
            counts.repairs = publisher.repairs
        return BotReport(
            bot=self.plan.identity,
            room=self.plan.room,
            phase=self.mover.phase.value,
            sfu=self.sfu,
            ended=self.router.ended,
            counts=counts,
            gaps=gaps_of(self.audience.received(now=now)),
            marked_audio_gap_ms=self.audience.since(Mark.OBSERVER, "audio", now=now),
            marked_video_gap_ms=self.audience.since(Mark.OBSERVER, "video", now=now),
            moves=tuple(self.chronicle.moves.done),
        )

    # --- events to effects ---

    def _handle(self, event: m.Event) -> None:
        self._run(self.mover.handle(event, now=time.monotonic()))

    def _handle_if(self, event: m.Event | None) -> None:
        if event is not None:
            self._handle(event)

    def _run(self, effects: Iterable[m.Effect | f.Effect]) -> None:
        """Carry out effects in order; what they cause in turn comes after them."""
        self._queue.extend(effects)
        if self._busy:
            return
        self._busy = True
        try:
            while self._queue:
                self._do(self._queue.popleft())
        finally:
            self._busy = False
        self._arm()

    def _arm(self) -> None:
        deadlines = [at for at in (self.mover.next_deadline(), self.follower.next_deadline()) if at is not None]
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if deadlines:
            wait = max(0.001, min(deadlines) - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(wait, self._tick)

    def _tick(self) -> None:
        now = time.monotonic()
        self._run([*self.mover.tick(now=now), *self.follower.tick(now=now)])

    def _do(self, effect: m.Effect | f.Effect) -> None:
        match effect:
            case m.AskRouter() | m.Announce():
                self._tell_router(effect)
            case m.OpenLink():
                self.connections.carry(
                    effect.sfu, effect.address, effect.token, number=effect.link, generation=effect.generation
                )
            case m.LetGo():
                self.connections.let_go(effect.link)
            case m.Abandon():
                self.connections.abandon(effect.link)
            case m.ReportDecided():
                self._tell_router(effect)
                self.chronicle.tell("decided", sfu=effect.sfu, move=effect.move, reason=effect.reason)
            case m.ReportMoved():
                self.router.send(self.chronicle.moved(effect))
            case m.TellStep():
                self.chronicle.note(effect)
            case f.Visit():
                self._visit(effect.sfu)
            case f.Want():
                link = self.connections.at(effect.sfu)
                if link is not None:
                    link.want(effect.publications)
            case f.Unneeded():
                self.connections.unneeded(effect.sfu)
            case f.Dropped():
                self.audience.ended(effect.publication, now=time.monotonic())
            case f.Switched():
                self.chronicle.tell("playing-from", publication=effect.publication, sfu=effect.sfu)

    def _tell_router(self, effect: m.Effect) -> None:
        message = router_message(effect, kinds=self._kinds, source=self._source)
        if message is not None:
            self.router.send(message)

    # --- the router ---

    def _join(self) -> Message:
        exclude = self.mover.heard.skipped(now=time.monotonic())
        return player.Join(token=self.plan.token(), presence=self.presence, client=CLIENT, exclude=exclude)

    def _resume(self, token: str) -> Message:
        home = self.mover.links.home
        return player.Resume(
            resume_token=token,
            presence=self.presence,
            sfu=home.sfu if home is not None else "",
            publications=() if home is None else tuple(self._records(home.sfu, home.generation)),
        )

    def _records(self, sfu: str, generation: int) -> list[PublicationRecord]:
        return [
            PublicationRecord(
                publication=publication,
                player=self._me,
                kind=kind,
                source=self._source,
                sfu=sfu,
                generation=generation,
            )
            for kind, publication in self._publications.items()
        ]

    def _router_lost(self, closed: Closed) -> None:
        self.chronicle.tell("router-lost", code=closed.code)
        self._handle(m.RouterLost())
        waiting, self._visits = list(self._visits.values()), {}
        for sfu in waiting:
            self._run(self.follower.lost(sfu, now=time.monotonic()))

    def _from_router(self, message: player.ToPlayer) -> None:
        now = time.monotonic()
        match message:
            case player.Welcome():
                self._welcome(message)
            case player.SfuAccess():
                self._access(message)
            case player.RoomSnapshot():
                self._run(self.follower.snapshot(message.publications))
            case player.RoomUpdate():
                self._run([*self.follower.changed(message.publications), *self.follower.ended(message.ended)])
            case player.SfuGone():
                self._handle(m.SfuEnded(sfu=message.sfu, reason=message.reason))
                self._run(self.follower.gone(message.sfu))
            case player.Failed() if message.request in self._visits:
                self._run(self.follower.lost(self._visits.pop(message.request), now=now))
            case player.Failed() if message.request or message.code == Refusal.NO_SFU:
                self._handle(
                    m.Unassigned(request=message.request, code=message.code, retry_after_s=message.retry_after_s)
                )
            case player.Failed():
                self.chronicle.tell("refused", code=message.code, message=message.message)
            case player.RouterClosing():
                self.chronicle.tell("router-closing", after_s=message.after_s)
            case _:
                self._handle_if(router_event(message))

    def _welcome(self, message: player.Welcome) -> None:
        if not message.resumed and self._me:
            self._begin_new_session()
        self._me = message.player
        if message.resumed:
            self.chronicle.tell("resumed", router=message.router, player=message.player)
            self._handle(m.RouterBack())
        else:
            self.chronicle.tell("joined", router=message.router, player=message.player)
            self._handle(m.Joined(assigned=message.assignment is not None))
        for notice in message.cordoned:
            self._handle_if(router_event(notice))
        if message.assignment is not None:
            self._handle_if(router_event(message.assignment))
        self._run(self.follower.snapshot(message.snapshot.publications))

    def _begin_new_session(self) -> None:
        """The old session's links can't be renewed: those that carry us last until the mover has opened new ones."""
        for sfu in self.connections.new_session():
            self._run(self.follower.closed(sfu))

    # --- links ---

    def _visit(self, sfu: str) -> None:
        link = self.connections.at(sfu)
        if link is not None:
            if link.entered:
                self._run(self.follower.ready(sfu))
            return
        self._requests += 1
        request = f"visit-{self._requests}"
        if self.router.send(player.RequestAccess(sfu=sfu, request=request)):
            self._visits[request] = sfu
        else:
            self._run(self.follower.lost(sfu, now=time.monotonic()))

    def _access(self, message: player.SfuAccess) -> None:
        self._visits.pop(message.request, None)
        if self.follower.wanted(message.sfu):
            self.connections.visit(message.sfu, message.address, message.token)

    def link_entered(self, link: MediaLink, *, carrying: bool) -> None:
        if self.connections.is_current(link):
            self._run(self.follower.ready(link.sfu))
        if carrying and link.number is not None:
            self._handle(m.LinkEntered(link=link.number))

    def link_refused(self, link: MediaLink, number: int, code: str) -> None:
        self.connections.refused(number)
        self.chronicle.failed_connection(link.sfu, code)
        self._handle(m.LinkDown(link=number, reason=code))

    def link_message(self, link: MediaLink, message: media.ToMedia) -> None:
        if isinstance(message, media.PublicationEnded):
            self._run(self.follower.copy_ended(message.publication, link.sfu))
        elif isinstance(message, player.Failed):
            self.chronicle.tell("refused", sfu=link.sfu, code=message.code, message=message.message)
        elif link.number is not None:
            self._handle_if(media_event(message, link=link.number, sfu=link.sfu))

    def link_down(self, link: MediaLink, reason: str, *, cut: bool) -> None:
        target = self.mover.links.target
        if not link.entered or (target is not None and target.number == link.number):
            self.chronicle.failed_connection(link.sfu, reason)
        # A dead connection is the end under every number; a broken websocket only under the one it was opened for.
        numbers = self.connections.numbers(link)[: None if cut else 1]
        if self.connections.down(link):
            self._run(self.follower.lost(link.sfu, now=time.monotonic()))
        for number in numbers:
            self._handle(m.LinkDown(link=number, reason=reason, cut=cut))

    def link_unit(self, link: MediaLink, publication: str, unit: bytes, at: float) -> None:
        record = self.follower.publications.get(publication)
        if record is None:
            return
        if not self.audience.hears(publication):
            self.chronicle.tell(
                "hearing", publication=publication, player=record.player, kind=record.kind, sfu=link.sfu
            )
        self.audience.take(record, unit, at=at)
        effects = self.follower.delivered(publication, link.sfu)
        if effects:
            self._run(effects)
