"""The script that places rooms and its twin in memory give the same answers to the same random requests."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from router.core.inflight import in_flight
from shared.placing import OTHER, TOO_FAST, Counts, InFlightThere, Key, Offer, PlacedRoom, TooFast, Wish
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
        )

    def _offer(self, sfu: str) -> Offer:
        incarnation, revision = self.versions[sfu]
        return Offer(
            sfu=sfu,
            version=(incarnation, max(0, revision - self.rng.choice((0, 0, 0, 1, 2)))),
            rank=self.rng.choice((OTHER, OTHER, OTHER, OTHER << 1, OTHER | TOO_FAST, TOO_FAST << 3)),
            figure=self.rng.choice((0.0, 0.1, 0.25, 0.5)),
            cost=self.rng.choice((0.0, 0.01, 0.1)),
        )


def told(wish: Wish, placed: PlacedRoom) -> object:
    """What a router makes of the answer."""
    there = {offer.sfu: counts(offer, placed.in_flight[offer.sfu]) for offer in wish.all}
    return placed.placement, placed.fresh, there


def counts(offer: Offer, there: InFlightThere) -> Counts:
    """What a router that has seen that report adds to it."""
    return in_flight(there.counts, offer.version)


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
            assert counts(offer, counted[0]) == counts(offer, counted[1])
        fresh, kept = fresh + mine.fresh, kept + (not mine.fresh)
    assert min(fresh, kept) > 20, "both happened"
    await server.close()


@pytest.mark.parametrize("seed", range(3))
async def test_the_script_chooses_by_the_one_key(redis_url: str, fleet: str, seed: int) -> None:
    """What is chosen has the smallest `Offer.key` with what was in flight by the answer, the cap on joins included."""
    server, requests, rng = RedisWorld(redis_url, fleet), Requests(seed), random.Random(seed)
    chosen = asked_again = 0
    for _ in range(STEPS):
        room, wish = requests.next()
        wish = replace(wish, max_joins_per_s=rng.choice((0.0, 3.0, 30.0)), more=rng.random() < 0.5)
        answer = await ask(server, room, wish)
        best = smallest(wish, answer.in_flight)
        if isinstance(answer, TooFast):
            assert wish.more
            assert best is None or 0 < wish.max_joins_per_s <= answer.in_flight[best].joins_per_s
            asked_again += 1
        else:
            assert not answer.fresh or best in (None, answer.placement.sfu), wish
            requests.placed[room] = answer.placement.sfu
            chosen += answer.fresh and best is not None
    assert min(chosen, asked_again) > 5, "both happened"
    await server.close()


async def ask(world: RedisWorld, room: str, wish: Wish) -> PlacedRoom | TooFast:
    try:
        return await world.store.place_room(room, wish)
    except TooFast as answer:
        return answer


def smallest(wish: Wish, in_flight_there: Mapping[str, InFlightThere]) -> str | None:
    """The SFU with the smallest key; None where the answer, whose pace is rounded, can't tell."""
    cap = wish.max_joins_per_s
    if any(
        cap and abs(there.joins_per_s - cap) < 0.001 and there.joins_per_s % 1 for there in in_flight_there.values()
    ):
        return None

    def key(offer: Offer) -> Key:
        there = in_flight_there[offer.sfu]
        found = counts(offer, there)
        return offer.key(found.rooms if wish.per_room else found.joins, too_fast=0 < cap <= there.joins_per_s)

    return min(wish.all, key=key).sfu
