"""One simulated player: a participant with a looped clip to send, meters on what it hears, and a chronicle."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from client_sim.core.audience import Audience
from client_sim.core.clip import ClipIndex
from client_sim.core.gaps import Stretch
from client_sim.core.replay import LoopedTrack
from client_sim.core.report import BotReport, gaps_of
from client_sim.shell.chronicle import Chronicle, Emit
from client_sim.shell.pacer import Pacer
from client_sim.shell.replayer import Replayer
from player.core.behaviour import RuleBox
from player.core.events import PlayerEvent, TrackEnded
from player.core.session_sdp import Incoming
from player.shell.media_link import MediaLink
from player.shell.participant import Participant
from player.shell.watcher import ParticipantPlan
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
    tracks: tuple[LoopedTrack, ...] = ()
    """What it publishes; empty: it only listens."""
    presence: Presence
    spread_s: float = 0.0
    index: ClipIndex


class Bot:
    """Start it with `start`, end it with `leave`."""

    def __init__(self, plan: BotPlan, *, rule: RuleBox, emit: Emit, rng: random.Random) -> None:
        self.plan = plan
        self.audience = Audience(plan.index)
        self.chronicle = Chronicle(bot=plan.identity, room=plan.room, audience=self.audience, emit=emit)
        self._rule = rule
        self.player = Participant(
            ParticipantPlan(
                identity=plan.identity,
                room=plan.room,
                routers=plan.routers,
                token=plan.token,
                client=CLIENT,
                presence=plan.presence,
                spread_s=plan.spread_s,
                takes=lambda record: True,
            ),
            rule=rule,
            watcher=self,
            rng=rng,
            tracks=plan.tracks,
        )
        self._replayer = Replayer(plan.tracks, self.player.publisher)

    def start(self, pacer: Pacer) -> None:
        """Join, and send the tracks from now on."""
        if self.plan.tracks:
            pacer.add(self._replayer, self.plan.tracks[0].start)
        self.player.start()

    async def leave(self) -> None:
        """End the session and all links."""
        self._replayer.stop()
        await self.player.leave()

    @property
    def publications(self) -> tuple[str, ...]:
        """Ids of what it publishes; they stay the same over moves."""
        return tuple(track.publication for track in self.plan.tracks)

    def report(self, *, now: float) -> BotReport:
        """What has come of it so far."""
        player, counts = self.player, self.chronicle.counts
        for name, count in player.connections.traffic().items():
            setattr(counts, name, count)
        counts.resumes = player.router.resumes
        counts.rule_faults = self._rule.faults
        counts.keyframe_requests = player.publisher.keyframe_requests
        counts.repairs = player.publisher.repairs
        return BotReport(
            bot=self.plan.identity,
            room=self.plan.room,
            phase=player.mover.phase.value,
            sfu=player.sfu,
            ended=player.router.ended,
            counts=counts,
            gaps=gaps_of(self.audience.received(now=now)),
            marked_audio_gap_ms=self.audience.since(Stretch.OBSERVER, "audio", now=now),
            marked_video_gap_ms=self.audience.since(Stretch.OBSERVER, "video", now=now),
            moves=tuple(self.chronicle.moves.done),
        )

    # --- what the player tells ---

    def event(self, event: PlayerEvent) -> None:
        if isinstance(event, TrackEnded):
            self.audience.ended(event.record.publication, now=time.monotonic())
        self.chronicle.hear(event)

    def unit(
        self, record: PublicationRecord, link: MediaLink, stream: Incoming, unit: bytes, timestamp: int, at: float
    ) -> None:
        self.audience.take(record, unit, at=at)

    def gaps_ms(self) -> tuple[float | None, float | None]:
        now = time.monotonic()
        return (
            self.audience.since(Stretch.MOVE, "audio", now=now),
            self.audience.since(Stretch.MOVE, "video", now=now),
        )
