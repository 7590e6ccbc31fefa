"""The face of the library: what an application holds while it is in a room."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Mapping

import msgspec

from player.core.behaviour import RuleBox
from player.core.errors import JoinFailed, SessionOver
from player.core.events import PlayerEvent, SessionBegan, SessionEnded, TrackEnded
from player.core.frames import is_key
from player.core.received import MediaFrame, RtpPacket
from player.core.rules import Rule
from player.core.session_sdp import Incoming
from player.core.splice import Splice
from player.core.track import MIDS, Numbers
from player.core.tracks import OpusTrack, Vp8Track
from player.shell.inbox import Inbox
from player.shell.local_track import LocalTrack
from player.shell.media_link import MediaLink
from player.shell.participant import Participant
from player.shell.sinks import Sinks
from player.shell.watcher import ParticipantPlan
from shared.errors import BadSetting, Refused
from shared.messages.codes import Refusal
from shared.records import PlayerRecord, Presence, PublicationRecord

LIMIT = 1000
"""Frames, packets or events that wait for a slow reader: 20 s of one player's sound."""


class Me:
    """A player of a room, from `join` to `leave`. All of it belongs to one event loop."""

    def __init__(self, plan: ParticipantPlan, *, rule: Rule, rng: random.Random) -> None:
        """Use `join`, which makes one, begins it and leaves at the end."""
        self._rng = rng
        self._participant = Participant(plan, rule=RuleBox(rule), watcher=self, rng=rng)
        self._events: Sinks[PlayerEvent] = Sinks()
        self._frames: Sinks[MediaFrame] = Sinks()
        self._packets: Sinks[RtpPacket] = Sinks()
        self._splices: dict[str, Splice] = {}
        self._early: deque[PlayerEvent] | None = deque(maxlen=LIMIT)
        """What has happened until the first reader of events came."""
        self._published = 0
        self._ended = ""
        self._began = False
        self._news = asyncio.Event()

    # --- coming and going ---

    async def begin(self, timeout_s: float) -> None:
        """Join, and wait until we are in the room. Raises `JoinFailed`."""
        self._participant.start()
        try:
            async with asyncio.timeout(timeout_s):
                while not self._began and not self._ended:
                    await self._wait()
        except TimeoutError:
            closed = self._participant.router.closed
            reason = "timeout" if closed is not None and closed.opened else "no-router"
            raise JoinFailed(reason=reason, detail=closed.reason if closed is not None else "") from None
        if self._ended:
            raise JoinFailed(reason=self._ended)

    async def leave(self) -> None:
        """Leave the room; the readers' loops end. Safe twice; the end of `async with` does it."""
        await self._participant.leave()

    # --- who and where ---

    @property
    def identity(self) -> str:
        """Our identity, from the token."""
        return self._participant.plan.identity

    @property
    def room(self) -> str:
        """The room, from the token."""
        return self._participant.plan.room

    @property
    def session(self) -> str:
        """Our session id, by which records name us; another one after a session that could not be resumed."""
        return self._participant.view.roster.me

    @property
    def sfu(self) -> str:
        """The SFU that carries us; empty while none does."""
        return self._participant.sfu

    @property
    def presence(self) -> Presence:
        """As last set."""
        return self._participant.presence

    @property
    def players(self) -> Mapping[str, PlayerRecord]:
        """The other players of the room, by session id."""
        return self._participant.view.roster.players

    @property
    def publications(self) -> Mapping[str, PublicationRecord]:
        """What we take of others, by publication id."""
        return self._participant.follower.publications

    # --- what we do ---

    async def set_presence(self, presence: Presence | None = None, **changes: bool) -> None:
        """Say what has changed: a whole `Presence`, or some of its fields by name. The rule is asked again.

        Raises `SessionOver`.
        """
        self._check()
        self._participant.set_presence(msgspec.structs.replace(presence or self.presence, **changes))

    async def publish(self, kind: str, *, source: str = "") -> LocalTrack:
        """Publish a track: `audio` (Opus) or `video` (VP8). The room hears of it once it flows.

        `source` is a word of yours: `microphone`, `screen`. Raises `BadSetting`, `SessionOver`, and `Refused` when the
        token does not let us publish or there are too many tracks.
        """
        self._check()
        if kind not in ("audio", "video"):
            raise BadSetting(setting="kind", detail=f"{kind!r} is neither audio nor video")
        if not self._participant.can_publish:
            raise Refused(Refusal.NOT_ALLOWED, "the token grants no publishing")
        make = OpusTrack if kind == "audio" else Vp8Track
        track = make(
            publication=f"{kind}-{self._rng.getrandbits(64):016x}",
            mid=self._free_mid(),
            numbers=Numbers.draw(self._rng),
            at=time.monotonic(),
            source=source,
        )
        self._participant.publish(track)
        return LocalTrack(track, self._participant)

    async def settled(self, *, timeout_s: float | None = None) -> None:
        """Wait until an SFU carries us. Raises `SessionOver`, `TimeoutError`."""
        async with asyncio.timeout(timeout_s):
            while not self.sfu:
                self._check()
                await self._wait()

    # --- what we receive ---

    def events(self, *, limit: int = LIMIT) -> Inbox[PlayerEvent]:
        """What happens. The first reader gets all since the join, later ones what comes from now on."""
        inbox = self._events.inbox(limit)
        early, self._early = self._early or (), None
        for event in early:
            inbox.put(event)
        return inbox

    def frames(self, *, limit: int = LIMIT) -> Inbox[MediaFrame]:
        """Opus packets and whole frames of all that we take, from now on, each once."""
        return self._frames.inbox(limit)

    def packets(self, *, limit: int = LIMIT) -> Inbox[RtpPacket]:
        """RTP packets of all that we take, from now on, as they come from each SFU."""
        self._tap()
        return self._packets.inbox(limit)

    def on_event(self, callback: Callable[[PlayerEvent], None]) -> None:
        """Call it with each event; it must be quick."""
        self._events.call(callback)

    def on_frame(self, callback: Callable[[MediaFrame], None]) -> None:
        """Call it with each frame; it must be quick."""
        self._frames.call(callback)

    def on_packet(self, callback: Callable[[RtpPacket], None]) -> None:
        """Call it with each RTP packet; it must be quick."""
        self._tap()
        self._packets.call(callback)

    # --- inside ---

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    def _check(self) -> None:
        if self._ended:
            raise SessionOver(reason=self._ended)

    def _free_mid(self) -> str:
        taken = {track.mid for track in self._participant.tracks.all}
        if len(taken) == len(MIDS):
            raise Refused(Refusal.TOO_MANY, f"at most {len(MIDS)} tracks")
        while (mid := MIDS[self._published % len(MIDS)]) in taken:
            self._published += 1
        self._published += 1
        return mid

    def _tap(self) -> None:
        if not self._packets:
            self._participant.tap(self._packet)

    def _packet(self, sfu: str, stream: Incoming, packet: bytes, at: float) -> None:
        record = self.publications.get(stream.publication)
        if record is not None and self._packets:
            self._packets.put(RtpPacket(publication=record, sfu=sfu, data=packet, at=at))

    # --- what the participant tells ---

    def event(self, event: PlayerEvent) -> None:
        """Of the participant: something happened."""
        match event:
            case SessionBegan():
                self._began = True
            case SessionEnded():
                self._ended = event.reason
            case TrackEnded():
                self._splices.pop(event.record.publication, None)
        if self._early is not None:
            self._early.append(event)
        self._events.put(event)
        if self._ended:
            for sinks in (self._events, self._frames, self._packets):
                sinks.close()
        self._news.set()

    def unit(
        self, record: PublicationRecord, link: MediaLink, stream: Incoming, unit: bytes, timestamp: int, at: float
    ) -> None:
        """Of the participant: a unit of one copy came."""
        video = stream.kind == "video"
        splice = self._splices.get(record.publication)
        if splice is None:
            splice = self._splices[record.publication] = Splice(clock=stream.clock, whole=video)
        for ticks, data in splice.add((link, stream.ssrc), unit, timestamp, at=at):
            key = not video or is_key(data)
            frame = MediaFrame(publication=record, data=data, key=key, ticks=ticks, clock=stream.clock, at=at)
            self._frames.put(frame)

    def gaps_ms(self) -> tuple[float | None, float | None]:
        """Of the participant: we measure no gaps."""
        return (None, None)
