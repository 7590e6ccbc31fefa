"""The script that places rooms and its twin in memory give the same answers to the same random requests."""

from __future__ import annotations

import random

import pytest

from router.core.inflight import in_flight
from shared.placing import Counts, InFlightThere, Offer, PlacedRoom, Wish
from tests.shared.worlds import MemoryWorld, RedisWorld

STEPS = 150


class Requests:
    """Requests of routers that see the SFUs' reports go on, some of them two reports behind."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.versions = {f"s{n}": (1, 1) for n in range(6)}
        self.placed: dict[str, str] = {}

    def next(self) -> tuple[str, Wish]:
        rng = self.rng
        for sfu, (incarnation, revision) in self.versions.items():
            if rng.random() < 0.15:
                self.versions[sfu] = (incarnation, revision + 1) if rng.random() < 0.95 else (incarnation + 1, 0)
        room = f"room-{rng.randrange(40)}"
        offers = tuple(self._offer(sfu) for sfu in rng.sample(sorted(self.versions), rng.randint(1, 6)))
        known = self.placed.get(room)
        keep = self._offer(known) if known and rng.random() < 0.7 else None
        refuse = (known,) if known and keep is None and rng.random() < 0.5 else ()
        if keep is None and refuse:
            offers = tuple(each for each in offers if each.sfu != known) or offers
        return room, Wish(
            offers=offers,
            keep=keep,
            refuse=refuse,
            join=rng.random() < 0.9,
            per_room=rng.random() < 0.2,
            reports_until_shown=rng.randint(1, 3),
        )

    def _offer(self, sfu: str) -> Offer:
        incarnation, revision = self.versions[sfu]
        return Offer(
            sfu=sfu,
            version=(incarnation, max(0, revision - self.rng.choice((0, 0, 0, 1, 2)))),
            level=self.rng.choice((0, 0, 0, 1)),
            figure=self.rng.choice((0.0, 0.1, 0.25, 0.5)),
            cost=self.rng.choice((0.0, 0.01, 0.1)),
        )


def told(wish: Wish, placed: PlacedRoom) -> object:
    """What a router makes of the answer."""
    offers = {each.sfu: each for each in (*wish.offers, *([wish.keep] if wish.keep else ()))}
    there = {sfu: counts(wish, offer, placed.in_flight[sfu]) for sfu, offer in offers.items()}
    return placed.placement, placed.fresh, there


def counts(wish: Wish, offer: Offer, there: InFlightThere) -> Counts:
    """What a router that has seen that report adds to it."""
    return in_flight(there.counts, offer.version, reports_until_shown=wish.reports_until_shown)


@pytest.mark.parametrize("seed", range(3))
async def test_both_decide_alike_and_tell_the_same_in_flight(redis_url: str, fleet: str, seed: int) -> None:
    memory, server = MemoryWorld(), RedisWorld(redis_url, fleet)
    requests = Requests(seed)
    fresh = kept = 0
    for _ in range(STEPS):
        room, wish = requests.next()
        here = told(wish, mine := await memory.store.place_room(room, wish))
        there = told(wish, await server.store.place_room(room, wish))
        assert here == there, wish
        requests.placed[room] = mine.placement.sfu
        if requests.rng.random() < 0.2:  # the player goes elsewhere
            offer = requests.rng.choice(wish.offers)
            counted = [await each.store.count_join(offer.sfu, offer.version) for each in (memory, server)]
            assert counts(wish, offer, counted[0]) == counts(wish, offer, counted[1])
        fresh, kept = fresh + mine.fresh, kept + (not mine.fresh)
    assert min(fresh, kept) > 20, "both happened"
    await server.close()
