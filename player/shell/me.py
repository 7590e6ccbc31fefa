"""The face of the library: what an application holds while it is in a room."""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import msgspec

from player.core.behaviour import RuleBox
from player.core.claims import names_in
from player.core.errors import JoinFailed, SessionOver
from player.core.events import PlayerEvent, SessionBegan, SessionEnded, TrackEnded
from player.core.frames import is_key
from player.core.received import MediaFrame, RtpPacket
from player.core.rules import Rule, safe_to_move
from player.core.session_sdp import Incoming
from player.core.splice import Splice
from player.core.track import MIDS, Numbers
from player.core.tracks import OpusTrack, PushedTrack, Vp8Track
from player.shell.inbox import Inbox
from player.shell.media_link import MediaLink
from player.shell.participant import Participant
from player.shell.sinks import Sinks
from player.shell.watcher import ParticipantPlan
from shared.errors import BadSetting, Refused
from shared.messages.codes import Refusal
from shared.records import PlayerRecord, Presence, PublicationRecord

CLIENT = "sluice-player/1"
JOIN_S = 15.0
SPREAD_S = 1.5
"""Within this time, at random, a move begins that nothing forces: a room does not move in one instant."""
LIMIT = 1000
"""Frames, packets or events that wait for a slow reader: 20 s of one player's sound."""
AT_DESK = Presence()


def everything(record: PublicationRecord) -> bool:
    """Take all publications of the room."""
    return True


def nothing(record: PublicationRecord) -> bool:
    """Take none: a player that only publishes."""
    return False


@asynccontextmanager
async def join(
    url: str | Sequence[str],
    token: str | Callable[[], str],
    *,
    presence: Presence = AT_DESK,
    rule: Rule = safe_to_move,
    takes: Callable[[PublicationRecord], bool] = everything,
    on_event: Callable[[PlayerEvent], None] | None = None,
    client: str = CLIENT,
    spread_s: float = SPREAD_S,
    timeout_s: float = JOIN_S,
) -> AsyncIterator[Me]:
    """Join the room that the token names, and leave it at the end of the `async with`.

    `url`: a router's websocket URL, or several, of which any will do. `token`: a player token, or a function that makes
    one, which is better for a long session: it is asked again when a session can't be resumed. `takes` says which
    publications of others to subscribe to. `on_event` hears everything from the first event on.

    Raises `BadSetting` for a URL and `BadToken` for a token that is none, `JoinFailed` when no router has let us in
    within `timeout_s`.
    """
    me = _make(url, token, presence=presence, rule=rule, takes=takes, client=client, spread_s=spread_s)
    if on_event is not None:
        me.on_event(on_event)
    try:
        await me._begin(timeout_s)
        yield me
    finally:
        await me.leave()


def _make(
    url: str | Sequence[str],
    token: str | Callable[[], str],
    *,
    presence: Presence,
    rule: Rule,
    takes: Callable[[PublicationRecord], bool],
    client: str,
    spread_s: float,
) -> Me:
    urls = (url,) if isinstance(url, str) else tuple(url)
    if not urls or not all(each.startswith(("ws://", "wss://")) for each in urls):
        raise BadSetting(setting="url", detail="name a router or several, such as ws://127.0.0.1:7000")
    fresh = token if callable(token) else lambda: token
    identity, room = names_in(fresh())
    plan = ParticipantPlan(
        identity=identity,
        room=room,
        routers=urls,
        token=fresh,
        client=client,
        presence=presence,
        spread_s=spread_s,
        takes=takes,
    )
    return Me(plan, rule=rule, rng=random.Random())


class LocalTrack:
    """Something that we publish. It goes on over moves; while nothing is sent it stays published."""

    def __init__(self, track: PushedTrack, participant: Participant) -> None:
        self._track = track
        self._participant = participant

    @property
    def publication(self) -> str:
        """Its id in the room."""
        return self._track.publication

    @property
    def key_wanted(self) -> bool:
        """The encoder should make its next frame a key frame. Always false for sound."""
        return isinstance(self._track, Vp8Track) and self._track.key_wanted

    @property
    def dropped(self) -> int:
        """Frames that were not sent because receivers lack the key frame they build on."""
        return self._track.dropped if isinstance(self._track, Vp8Track) else 0

    def send(self, unit: bytes | bytearray | memoryview, *, media_s: float | None = None) -> None:
        """Send an Opus packet or a VP8 frame, at the time that it is to be heard or seen: nothing is paced here.

        `media_s` is its time by your own clock [s]. Without it sound follows on sound, and a picture is of this moment.
        Call it in the event loop's thread.
        """
        self._participant.send(self._track, bytes(unit), media_s=media_s)

    def end(self) -> None:
        """Publish it no longer."""
        self._participant.unpublish(self._track)


class Me:
    """A player of a room, from `join` to `leave`. All of it belongs to one event loop."""

    def __init__(self, plan: ParticipantPlan, *, rule: Rule, rng: random.Random) -> None:
        """Use `join`, which also waits until we are in the room."""
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

    async def leave(self) -> None:
        """Leave the room; the readers' loops end. Safe twice; the end of `async with` does it."""
        await self._participant.leave()

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

    async def _begin(self, timeout_s: float) -> None:
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
