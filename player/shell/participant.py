"""One player of a room: the mover and the follower decide, this carries out. `player.join` puts a face on it.

Longer than our files ought to be, because what a message causes at the router and at the links reads best in one place.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Iterable, Sequence

from player.core import events as e
from player.core import follower as f
from player.core import moves as m
from player.core.behaviour import RuleBox, decide
from player.core.follower import Follower
from player.core.frames import is_key
from player.core.heard import MAX_EXCLUDED
from player.core.media_watch import LinkMedia, MediaNeeds, needs_of
from player.core.mover import Mover
from player.core.own_tracks import OwnTracks
from player.core.room_view import RoomView
from player.core.session_sdp import Incoming
from player.core.track import OutgoingTrack
from player.core.tracks import PushedTrack
from player.core.translate import media_event, router_event, router_message
from player.shell.connections import Connections
from player.shell.media_link import MediaLink
from player.shell.media_reports import MediaReports, media_of
from player.shell.publisher import TrackPublisher
from player.shell.receiver import PacketTap
from player.shell.router_connection import Callbacks, RouterConnection
from player.shell.watcher import ParticipantPlan, Watcher
from player.shell.wire import Closed
from shared.messages import media, player
from shared.messages.base import Message
from shared.messages.codes import Refusal
from shared.records import Presence

FILL_EVERY_S = 0.1
"""How often tracks are looked after whose source pauses."""
NOT_FAILURES = frozenset({"cordoned", Refusal.SFU_CORDONED.value, Refusal.SFU_TERMINATING.value, "terminating"})
"""Reasons for a link's end that are no failed connection: the SFU was cordoned between our asking and our coming."""


class Participant:
    """Start it with `start`, end it with `leave`. Everything runs on one event loop."""

    def __init__(
        self,
        plan: ParticipantPlan,
        *,
        rule: RuleBox,
        watcher: Watcher,
        rng: random.Random,
        tracks: Sequence[OutgoingTrack] = (),
    ) -> None:
        self.plan = plan
        self.presence = plan.presence
        self.tracks = OwnTracks(tracks)
        self.publisher = TrackPublisher(self.tracks, cname=f"{plan.identity[:40]}-{rng.getrandbits(32):08x}")
        self.mover = Mover(
            identity=plan.identity,
            room=plan.room,
            publications=self.tracks.publications,
            decide=lambda facts, asked: decide(facts, rule, asked=asked),
            rng=rng,
            presence=plan.presence,
            spread_s=plan.spread_s,
        )
        own = frozenset(self.tracks.publications)
        self.view = RoomView(rng=rng, own=own, takes=plan.takes, tell=watcher.event)
        self.router = RouterConnection(
            plan.routers,
            Callbacks(join=self._join, resume=self._resume, message=self._from_router, lost=self._router_lost),
            rng=rng,
        )
        self.connections = Connections(
            owner=self,
            publisher=self.publisher,
            wanted=self.view.follower.wanted,
            closed=lambda sfu: self._run(self.follower.closed(sfu)),
            rng=rng,
        )
        self._media = MediaReports(
            needs=self._needs,
            links=lambda: [media_of(link) for link in self.connections.links()],
            send=self.router.send,
            tell=watcher.event,
        )
        self._watcher = watcher
        self._visits: dict[str, str] = {}
        """SFUs we asked the router's leave to visit, by request id."""
        self._requests = 0
        self._evicted = False
        self._queue: deque[m.Effect | f.Effect] = deque()
        self._busy = False
        self._timer: asyncio.TimerHandle | None = None
        self._filling: asyncio.TimerHandle | None = None
        self._session: asyncio.Task[None] | None = None
        self._over = False
        self.can_publish = False
        """The token lets us publish; known once the session has begun."""

    # --- the outside ---

    def start(self) -> None:
        """Join."""
        self._media.start()
        self._session = asyncio.create_task(self._be_connected())

    def set_presence(self, presence: Presence) -> None:
        """The player's situation has changed."""
        if presence == self.presence:
            return
        self.presence = presence
        self.router.send(player.SetPresence(presence=presence))
        self._handle(m.PresenceChanged(presence=presence))

    def publish(self, track: PushedTrack) -> None:
        """One track more; the room hears of it once it flows."""
        self.tracks.add(track)
        self.follower.own |= {track.publication}
        self.mover.publications = self.tracks.publications
        self.connections.offer()
        if self._filling is None:
            self._fill()

    def unpublish(self, track: OutgoingTrack) -> None:
        """The track ends: for the room at once, for the SFU when a move under way has ended."""
        if self.tracks.end(track):
            self.router.send(player.Unpublish(publication=track.publication))
            self._end_tracks()

    def send(self, track: PushedTrack, unit: bytes, *, media_s: float | None = None) -> None:
        """Send a unit of a track that is published; units of one that has ended are dropped."""
        now = time.monotonic()
        if track in self.tracks.all and (packets := track.packets(unit, at=now, media_s=media_s)):
            self.publisher.send(track, packets, key=track.kind == "audio" or is_key(unit), now=now)

    def tap(self, on_packet: PacketTap) -> None:
        """From now on hand over each RTP packet of others as well."""
        self.connections.tap(on_packet)

    async def leave(self) -> None:
        """End the session and all links. Safe twice."""
        self.publisher.stop()
        self._media.stop()
        await self.router.leave()
        self._handle(m.Left())
        await self.connections.close()
        for timer in (self._timer, self._filling):
            if timer is not None:
                timer.cancel()
        if self._session is not None:
            self._session.cancel()
        self._end("left")

    @property
    def follower(self) -> Follower:
        """What we take of others."""
        return self.view.follower

    @property
    def sfu(self) -> str:
        """The SFU that carries us; empty when none does."""
        home = self.mover.links.home
        return home.sfu if home is not None and not home.lost else ""

    # --- events to effects ---

    async def _be_connected(self) -> None:
        try:
            await self.router.run()
        except Exception:  # a fault of ours or of the rule's: the application must not wait for ever
            self._end("failed")
            raise
        if self.router.ended:
            self._end(self.router.ended)

    def _end(self, reason: str) -> None:
        self._media.stop()
        if not self._over:
            self._over = True
            self._watcher.event(e.SessionEnded(reason=reason))

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
        self._end_tracks()
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
            case m.LetGo() | m.Abandon():
                self.connections.let_go(effect.link)
            case m.ReportDecided():
                self._tell_router(effect)
                self._watcher.event(e.MoveDecided(sfu=effect.sfu, move=effect.move, reason=effect.reason))
            case m.ReportMoved():
                self._moved(effect)
            case m.TellStep():
                self._note(effect)
            case f.Visit():
                self._visit(effect.sfu)
            case f.Want():
                link = self.connections.at(effect.sfu)
                if link is not None:
                    link.want(effect.publications)
            case f.Unneeded():
                self.connections.unneeded(effect.sfu)
            case f.Dropped():
                self.view.dropped(effect.publication)
            case f.Switched():
                self._watcher.event(e.TrackSwitched(publication=effect.publication, sfu=effect.sfu))

    def _tell_router(self, effect: m.Effect) -> None:
        if isinstance(effect, m.Announce):
            self.tracks.announced(effect.publication)
        message = router_message(effect, tracks=self.tracks.living)
        if message is not None:
            self.router.send(message)

    def _note(self, note: m.TellStep) -> None:
        if note.step is m.MoveStep.EVICTED:
            self._evicted = True
        elif note.step is m.MoveStep.SWITCHED and self._evicted:
            self._evicted = False
            self._watcher.event(e.Recovered(sfu=note.sfu))
        self._watcher.event(e.StepTaken(step=note.step.value, sfu=note.sfu, reason=note.reason))

    def _moved(self, effect: m.ReportMoved) -> None:
        audio, video = self._watcher.gaps_ms()
        event = e.Relocated(
            sfu=effect.sfu, left=effect.left, took_ms=effect.took_ms, audio_gap_ms=audio, video_gap_ms=video
        )
        self.router.send(
            player.Moved(sfu=event.sfu, left=event.left, took_ms=event.took_ms, audio_gap_ms=audio, video_gap_ms=video)
        )
        self._watcher.event(event)

    # --- our tracks ---

    def _fill(self) -> None:
        self.publisher.fill(time.monotonic())
        self._filling = asyncio.get_running_loop().call_later(FILL_EVERY_S, self._fill)

    def _end_tracks(self) -> None:
        """While a move is under way its target waits for the tracks to flow, so they end after it."""
        if self.mover.links.target is not None or not (ended := self.tracks.take_ended()):
            return
        for track in ended:
            self.publisher.remove(track)
            self.mover.links.forget(track.publication)
            for link in self.mover.links.all():  # one that was kept for this track only may go now
                self._handle(m.Watched(link=link.number, publication=track.publication, count=0))
        self.mover.publications = self.tracks.publications
        self.connections.stop(tuple(track.publication for track in ended))

    # --- the router ---

    def _join(self) -> Message:
        # Where an old link still carries media, a new session would have to replace it at once (web/lib/mover.js).
        carrying = (link.sfu for link in self.mover.links.all())
        exclude = tuple(dict.fromkeys((*self.mover.heard.skipped(now=time.monotonic()), *carrying)))[-MAX_EXCLUDED:]
        return player.Join(token=self.plan.token(), presence=self.presence, client=self.plan.client, exclude=exclude)

    def _resume(self, token: str) -> Message:
        home = self.mover.links.home
        me = self.view.roster.me
        return player.Resume(
            resume_token=token,
            presence=self.presence,
            sfu=home.sfu if home is not None else "",
            publications=self.tracks.records(player=me, sfu=home.sfu, generation=home.generation) if home else (),
        )

    def _router_lost(self, closed: Closed) -> None:
        self._watcher.event(e.RouterWentAway(code=closed.code))
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
                self._run(self.view.snapshot(message))
            case player.RoomUpdate():
                self._run(self.view.update(message))
            case player.SfuGone():
                self._handle(m.SfuEnded(sfu=message.sfu, reason=message.reason))
                if message.reason != "lost":  # else our own link to it tells, when its media has ended
                    self._run(self.follower.gone(message.sfu))
            case player.Failed() if message.request in self._visits:
                self._run(self.follower.lost(self._visits.pop(message.request), now=now))
            case player.Failed() if message.request or message.code == Refusal.NO_SFU:
                self._handle(
                    m.Unassigned(request=message.request, code=message.code, retry_after_s=message.retry_after_s)
                )
            case player.Failed():
                self._watcher.event(e.RequestRefused(code=message.code, message=message.message))
            case player.RouterClosing():
                self._watcher.event(e.RouterEndsSoon(after_s=message.after_s))
            case _:
                self._handle_if(router_event(message))

    def _welcome(self, message: player.Welcome) -> None:
        if not message.resumed and self.view.roster.me:
            self._begin_new_session()
        self.view.roster.me = message.player
        self.can_publish = message.can_publish
        if message.resumed:
            self._watcher.event(e.SessionResumed(router=message.router, player=message.player))
            self._handle(m.RouterBack())
        else:
            self._watcher.event(e.SessionBegan(router=message.router, player=message.player))
            self._handle(m.Joined(assigned=message.assignment is not None))
        for notice in message.cordoned:
            self._handle_if(router_event(notice))
        if message.assignment is not None:
            self._handle_if(router_event(message.assignment))
        self._run(self.view.snapshot(message.snapshot))
        self._media.welcomed()

    def _needs(self, links: list[LinkMedia]) -> MediaNeeds:
        sends = self.can_publish and bool(self.tracks.publications)
        return needs_of(sends=sends, takes=self.follower.sources(), links=links)

    def _begin_new_session(self) -> None:
        """The old session's links can't be renewed: those that carry us last until the mover has opened new ones."""
        self.tracks.new_session()
        for sfu in self.connections.new_session():
            self._run(self.follower.closed(sfu))

    # --- links ---

    def _visit(self, sfu: str) -> None:
        link = self.connections.at(sfu)
        if link is not None and link.entered:
            self._run(self.follower.ready(sfu))
        if link is not None and not (link.needs_token and link.number is None):
            return  # it comes in, or comes back
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

    def link_connected(self, link: MediaLink) -> None:
        if link.number is not None:
            self._handle(m.MediaConnected(link=link.number))

    def link_refused(self, link: MediaLink, number: int, code: str) -> None:
        self.connections.refused(number)
        self._failed(link.sfu, code)
        self._handle(m.LinkDown(link=number, reason=code))

    def link_message(self, link: MediaLink, message: media.ToMedia) -> None:
        if isinstance(message, media.PublicationEnded):
            self._run(self.follower.copy_ended(message.publication, link.sfu))
        elif isinstance(message, player.Failed):
            if message.code == Refusal.CODEC_REFUSED and message.publication in self.follower.publications:
                self.follower.undecodable.add(message.publication)
            self._watcher.event(
                e.RequestRefused(
                    sfu=link.sfu, code=message.code, message=message.message, publication=message.publication
                )
            )
        elif link.number is not None:
            self._handle_if(media_event(message, link=link.number, sfu=link.sfu))

    def _failed(self, sfu: str, reason: str) -> None:
        self._media.failed(sfu, reason)
        if reason not in NOT_FAILURES:
            self._watcher.event(e.LinkFailed(sfu=sfu, reason=reason))

    def link_away(self, link: MediaLink, reason: str) -> None:
        numbers = self.connections.numbers(link)[:1]
        for number in numbers:
            self._handle(m.LinkDown(link=number, reason=reason, cut=False))
        if not numbers and link.needs_token and self.connections.is_current(link):
            self._run(self.follower.lost(link.sfu, now=time.monotonic()))

    def link_unpublished(self, link: MediaLink, reason: str) -> None:
        self._note_failure(link, reason)
        self._tell_cut(self.connections.numbers(link), reason)

    def link_down(self, link: MediaLink, reason: str) -> None:
        self._note_failure(link, reason)
        numbers = self.connections.numbers(link)
        if self.connections.down(link):
            self._run(self.follower.lost(link.sfu, now=time.monotonic()))
        self._tell_cut(numbers, reason)

    def _note_failure(self, link: MediaLink, reason: str) -> None:
        target = self.mover.links.target
        if not link.was_inside or (target is not None and target.number == link.number):
            self._failed(link.sfu, reason)
        else:
            self._media.failed(link.sfu, reason)

    def _tell_cut(self, numbers: Iterable[int], reason: str) -> None:
        for number in numbers:
            self._handle(m.LinkDown(link=number, reason=reason, cut=True))

    def link_unit(self, link: MediaLink, stream: Incoming, unit: bytes, timestamp: int, at: float) -> None:
        record = self.view.hears(stream.publication, link.sfu)
        if record is None:
            return
        self._watcher.unit(record, link, stream, unit, timestamp, at)
        if not self.connections.is_current(link):
            return  # a former session's: what we take over the present one's has to come over that
        self.connections.heard(link)
        effects = self.follower.delivered(stream.publication, link.sfu)
        if effects:
            self._run(effects)
