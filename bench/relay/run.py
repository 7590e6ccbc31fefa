"""The parts of one run of `sluice bench relay`: players join, media flows, and both sides' counters are read."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from bench.machine import Cores, busy_seconds, socket_drops
from bench.relay.figures import FlowCounts, Reading
from bench.relay.load import LoadClient, RelayLoad
from bench.relay.peers import OfferedTrack, Peer, TransportAnswer
from bench.relay.workloads import Setup, Subscriber, TrackMedia, Workload
from shared.rtc.dtls import Fingerprint
from shared.rtc.srtp import SrtpProfile

JOIN_AT_ONCE = 16
"""Handshakes under way at a time, but in a storm."""

WARM_UP_S = 2.0
"""Every stream flows by then: key frames come once a second."""

SETTLE_S = 0.3
"""Nothing has come for so long after publishers fell silent: nothing is under way."""

SETTLE_WITHIN_S = 10.0
LOOK_EVERY_S = 0.02

STORM_S = 1.0
"""A storm's figures are of at least so long: a hundred joins may take less."""

STAY_S = 0.02
"""How long a subscriber who joins in `churn` stays."""

SAY_EVERY_S = 2.0
FIRST_SSRC = 1000
"""Of the first publisher's first track."""

Say = Callable[[str], None]
"""Tells of progress."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RunSettings:
    """One run."""

    workload: Workload
    size: int
    """Subscribers, or rooms."""
    seconds: float
    joins: int
    """Who joins later, those that warm up included."""
    profile: SrtpProfile
    cores: Cores
    gso: bool = False
    """Whether the generator's publishers send a frame as one."""
    gro: bool = False
    """Whether the generator takes received runs as one."""
    warm_up_s: float = WARM_UP_S
    seed: int = 1


Ask = Callable[[Fingerprint], Awaitable[TransportAnswer]]
"""How a client is made known to the server."""


class Run:
    """The parts of a run that is under way. Numbers: subscribers, those who join later, publishers."""

    def __init__(self, settings: RunSettings, peer: Peer, say: Say) -> None:
        self.settings = settings
        self.peer = peer
        self.say = say
        self.setup: Setup = settings.workload.setup(settings.size)
        self.rng = random.Random(settings.seed)
        self.watching = len(self.setup.subscribers)
        self.load = RelayLoad(hosts=self.watching + settings.joins, watched=1, gso=settings.gso, gro=settings.gro)
        self.load.generator.time_only(self.watching)

    async def publish(self) -> None:
        """Join all publishers, and lay their frames evenly over time."""
        people = [self._publisher(place) for place in range(len(self.setup.publishers))]
        clients = await self._join("publishers", people)
        phases = {kind: self._phases(len(clients)) for kind in ("video", "audio")}
        for place, client in enumerate(clients):
            media = self.setup.publishers[place].media
            self.load.publish(
                client,
                [
                    (track, one, int(phases[one.kind][place] * one.interval_ns))
                    for track, one in zip(tracks_of(place, media), media, strict=True)
                ],
                self.rng,
            )

    async def subscribe(self) -> None:
        people = [self._subscriber(place, subscriber) for place, subscriber in enumerate(self.setup.subscribers)]
        await self._join("subscribers", people)

    async def storm(self) -> None:
        """All at once."""
        await asyncio.gather(asyncio.sleep(STORM_S), self._connect(self._later(range(self.settings.joins))))

    async def churn(self, places: range) -> None:
        """Join, stay a little, leave; as many at a time as join at once."""
        for start in range(0, len(places), JOIN_AT_ONCE):
            people = self._later(places[start : start + JOIN_AT_ONCE])
            clients = await self._connect(people)
            await asyncio.sleep(STAY_S)
            for (number, _), client in zip(people, clients, strict=True):
                await client.close()
                await self.peer.leave(number)
            if start and start % 512 == 0:
                rss_mib = (await self.peer.stats()).rss_bytes / (1 << 20)
                self.say(f"{places[start]} of {self.settings.joins} have joined and left: {rss_mib:.1f} MiB")

    async def quiet(self) -> FlowCounts:
        """Hold the publishers (`load.go` lets them go on) until all they sent has come, or has had the time to."""
        generator = self.load.generator
        generator.hold()
        now = since = time.monotonic()
        ends, came = now + SETTLE_WITHIN_S, -1
        while now - since < SETTLE_S and now < ends:
            if (packets := sum(flow[2] for flow in generator.flows())) != came:
                came, since = packets, now
            await asyncio.sleep(LOOK_EVERY_S)
            now = time.monotonic()
        return FlowCounts(sent=generator.sent_by(), flows=generator.flows())

    def wanted(self) -> list[list[int]]:
        """SSRCs of the tracks that each subscriber should get, as its publishers send them."""
        ssrcs = [
            [track.ssrc for track in tracks_of(place, publisher.media)]
            for place, publisher in enumerate(self.setup.publishers)
        ]
        return [[ssrc for place in one.publishers for ssrc in ssrcs[place]] for one in self.setup.subscribers]

    async def read(self) -> Reading:
        peer = await self.peer.stats()
        return Reading(
            at=time.monotonic(),
            peer=peer,
            flows=self.load.generator.flows(),
            arrivals=self.load.generator.arrivals(),
            sent=self.load.generator.sent(),
            generator_s=time.process_time(),
            busy_s=busy_seconds(self.settings.cores.both),
            overrun=socket_drops(self.load.address[1]),
        )

    def _publisher(self, place: int) -> tuple[int, Ask]:
        publisher, number = self.setup.publishers[place], self.load.hosts + place
        tracks = tracks_of(place, publisher.media)
        return number, lambda fingerprint: self.peer.publish(
            number, room=publisher.room, fingerprint=fingerprint, tracks=tracks
        )

    def _subscriber(self, number: int, subscriber: Subscriber) -> tuple[int, Ask]:
        publishers = [self.load.hosts + place for place in subscriber.publishers]
        return number, lambda fingerprint: self.peer.subscribe(
            number, room=subscriber.room, fingerprint=fingerprint, publishers=publishers
        )

    def _later(self, places: range) -> list[tuple[int, Ask]]:
        """Subscribers who join later; they want what the first subscriber wants."""
        return [self._subscriber(self.watching + place, self.setup.subscribers[0]) for place in places]

    def _phases(self, count: int) -> list[float]:
        """Shares of an interval, one in each of `count` equal parts, in no order."""
        phases = [(place + self.rng.random()) / count for place in range(count)]
        self.rng.shuffle(phases)
        return phases

    async def _join(self, who: str, people: Sequence[tuple[int, Ask]]) -> list[LoadClient]:
        clients: list[LoadClient] = []
        told = time.monotonic()
        for start in range(0, len(people), JOIN_AT_ONCE):
            clients += await self._connect(people[start : start + JOIN_AT_ONCE])
            if time.monotonic() - told > SAY_EVERY_S:
                told = time.monotonic()
                self.say(f"joining {who}: {len(clients)}/{len(people)}")
        return clients

    async def _connect(self, people: Sequence[tuple[int, Ask]]) -> list[LoadClient]:
        """Handshakes at the same time; the server is asked one by one."""
        clients = [self.load.client(number, (self.settings.profile,)) for number, _ in people]
        answers = [await ask(client.dtls_fingerprint) for client, (_, ask) in zip(clients, people, strict=True)]
        for (number, _), answer in zip(people, answers, strict=True):
            self.load.expect(number, answer.restarted)
        await asyncio.gather(*(client.connect(answer) for client, answer in zip(clients, answers, strict=True)))
        return clients


def tracks_of(place: int, media: Sequence[TrackMedia]) -> list[OfferedTrack]:
    """A publisher's tracks; SSRCs are all different."""
    return [OfferedTrack(mid=str(at), kind=one.kind, ssrc=FIRST_SSRC + 2 * place + at) for at, one in enumerate(media)]
