"""Which publications a player takes from which SFU, and the listening side of moves (docs/protocol.md, 2 and 4.3).

A publication that moves is wanted from both SFUs until the new copy has delivered; then the old one is dropped. Each
publication has copies by SFU; what is wanted of an SFU follows from them. Events in, effects out, like the mover;
`tick` retries failed visits.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Set
from dataclasses import dataclass

from shared.jitter import full_jitter
from shared.records import PublicationRecord

MAX_PUBLICATIONS = 256
"""Most publications one player takes; more are left alone."""


@dataclass(slots=True)
class Copy:
    """A publication at one SFU."""

    generation: int
    delivered: bool = False


@dataclass(frozen=True, slots=True)
class Want:
    """Send `subscribe` with this whole set on the link to this SFU."""

    sfu: str
    publications: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Visit:
    """Open a link to this SFU, subscribe-only if we have no better right there."""

    sfu: str


@dataclass(frozen=True, slots=True)
class Unneeded:
    """Nothing is wanted from this SFU any more."""

    sfu: str


@dataclass(frozen=True, slots=True)
class Dropped:
    """The player takes this publication no longer: it has ended."""

    publication: str


@dataclass(frozen=True, slots=True)
class Switched:
    """The publication is now played from this SFU only."""

    publication: str
    sfu: str


Effect = Want | Visit | Unneeded | Dropped | Switched


class Follower:
    """One player's subscriptions. `ready` names the SFUs to which a link is open; `failed` is told when one is not."""

    def __init__(self, *, rng: random.Random, own: frozenset[str] = frozenset()) -> None:
        """`own`: our own publications, in whatever session we published them."""
        self.publications: dict[str, PublicationRecord] = {}
        self.copies: dict[str, dict[str, Copy]] = {}
        self._rng = rng
        self.own = own
        """Our own publications, which we don't take."""
        self.undecodable: set[str] = set()
        """Publications that an SFU refused us, for they are in a codec that we did not offer."""
        self._ready: set[str] = set()
        self._visiting: set[str] = set()
        self._sent: dict[str, tuple[str, ...]] = {}
        self._attempts: dict[str, int] = {}
        self._retry_at: dict[str, float] = {}

    # --- the room ---

    def snapshot(self, publications: Iterable[PublicationRecord]) -> list[Effect]:
        """The whole room; replaces what was known."""
        listed = {record.publication: record for record in publications}
        dropped = self._forget([name for name in self.publications if name not in listed])
        return [*dropped, *self.changed(listed.values())]

    def changed(self, publications: Iterable[PublicationRecord]) -> list[Effect]:
        """Publications that are new or have moved; an older generation than the one known is ignored."""
        for record in publications:
            known = self.publications.get(record.publication)
            if record.publication in self.own or not record.sfu or (known and known.generation > record.generation):
                continue
            if known is None and len(self.publications) >= MAX_PUBLICATIONS:
                continue
            self.publications[record.publication] = record
            copies = self.copies.setdefault(record.publication, {})
            copy = copies.get(record.sfu)
            if copy is None or copy.generation != record.generation:
                # A copy at the same SFU in a new generation is another stream: it has to deliver first as well.
                copies[record.sfu] = Copy(record.generation)
                self._retry_at.pop(record.sfu, None)
        return self._settle()

    def ended(self, publications: Iterable[str]) -> list[Effect]:
        """Publications that have ended."""
        return [*self._forget(publications), *self._settle()]

    # --- the links ---

    def ready(self, sfu: str) -> list[Effect]:
        """A link to this SFU is open, and nothing has been subscribed on it yet."""
        self._ready.add(sfu)
        self._visiting.discard(sfu)
        self._retry_at.pop(sfu, None)
        self._sent.pop(sfu, None)
        return self._settle()

    def lost(self, sfu: str, *, now: float) -> list[Effect]:
        """The link to this SFU is gone, or could not be opened; it is tried again if still needed."""
        self._forget_link(sfu)
        attempt = self._attempts.get(sfu, 0)
        self._attempts[sfu] = attempt + 1
        self._retry_at[sfu] = now + full_jitter(attempt, self._rng)
        return self._settle()

    def closed(self, sfu: str) -> list[Effect]:
        """We have closed the link to this SFU on purpose; another is opened at once if it is needed after all."""
        self._forget_link(sfu)
        return self._settle()

    def gone(self, sfu: str) -> list[Effect]:
        """This SFU has ended: nothing can be had there. The room will say where its publications went."""
        self._forget_link(sfu)
        for copies in self.copies.values():
            copies.pop(sfu, None)
        return self._settle()

    def delivered(self, publication: str, sfu: str) -> list[Effect]:
        """A packet (audio) or a complete frame (video) of the publication came from this SFU."""
        copy = self.copies.get(publication, {}).get(sfu)
        if copy is None or copy.delivered:
            return []
        copy.delivered = True
        self._attempts.pop(sfu, None)  # it works: being let in is not enough
        return self._settle()

    def copy_ended(self, publication: str, sfu: str) -> list[Effect]:
        """The SFU carries the publication no longer. Where the room says it is, it may come yet, and stays wanted."""
        record = self.publications.get(publication)
        if record is not None and record.sfu != sfu:
            self.copies.get(publication, {}).pop(sfu, None)
        return self._settle()

    def tick(self, *, now: float) -> list[Effect]:
        """Try again what is due."""
        for sfu in [sfu for sfu, at in self._retry_at.items() if at <= now]:
            del self._retry_at[sfu]
        return self._settle()

    def next_deadline(self) -> float | None:
        """When `tick` has something to do."""
        return min(self._retry_at.values(), default=None)

    def wanted(self, sfu: str) -> tuple[str, ...]:
        """What is wanted of this SFU, in a stable order."""
        return tuple(sorted(name for name, copies in self.copies.items() if sfu in copies))

    def sources(self) -> list[Set[str]]:
        """For each publication that we take and that we were not refused, the SFUs from which it may come."""
        return [copies.keys() for name, copies in self.copies.items() if copies and name not in self.undecodable]

    def _forget_link(self, sfu: str) -> None:
        self._ready.discard(sfu)
        self._visiting.discard(sfu)
        self._sent.pop(sfu, None)
        for copies in self.copies.values():
            if sfu in copies:
                copies[sfu].delivered = False

    def _forget(self, publications: Iterable[str]) -> list[Effect]:
        gone = [name for name in publications if self.publications.pop(name, None) is not None]
        for name in gone:
            self.copies.pop(name, None)
            self.undecodable.discard(name)
        return [Dropped(name) for name in gone]

    # --- what follows ---

    def _settle(self) -> list[Effect]:
        effects: list[Effect] = []
        for name in self.copies:
            effects += self._prune(name)
        needed = {sfu for copies in self.copies.values() for sfu in copies}
        for sfu in sorted(needed | set(self._sent)):
            effects += self._serve(sfu)
        for sfu in sorted(self._visiting - needed):
            self._visiting.discard(sfu)
            effects.append(Unneeded(sfu))
        for sfu in [sfu for sfu in self._retry_at if sfu not in needed]:
            del self._retry_at[sfu]
        return effects

    def _prune(self, name: str) -> list[Effect]:
        """Drop copies that the newest has replaced, or that can't deliver because their link is gone."""
        copies, newest = self.copies[name], self.publications[name].sfu
        current = copies.get(newest)
        others = [sfu for sfu in copies if sfu != newest]
        if current is not None and current.delivered and others:
            for sfu in others:
                del copies[sfu]
            return [Switched(name, newest)]
        for sfu in others:
            if sfu not in self._ready:
                del copies[sfu]
        return []

    def _serve(self, sfu: str) -> list[Effect]:
        want = self.wanted(sfu)
        if sfu not in self._ready:
            if not want or sfu in self._visiting or sfu in self._retry_at:
                return []
            self._visiting.add(sfu)
            return [Visit(sfu)]
        if self._sent.get(sfu, ()) == want:
            return []
        effects: list[Effect] = [Want(sfu, want)]
        if want:
            self._sent[sfu] = want
        else:
            self._sent.pop(sfu, None)
            effects.append(Unneeded(sfu))
        return effects
