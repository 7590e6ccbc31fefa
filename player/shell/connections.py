"""A player's media links by SFU and by the mover's number: which one serves what, and when one is closed."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence

from player.shell.media_link import MediaLink, MediaLinkOwner
from player.shell.publisher import TrackPublisher
from player.shell.receiver import PacketTap

ASIDE_S = 10.0
"""What a former session's link brings is kept so long at most, until the new session's link brings the same."""
TRAFFIC = ("packets_in", "packets_out", "bytes_in", "bytes_out", "bad_packets")


class Connections:
    """One link of the present session to each SFU (`at`); those that carry our publications also by number.

    A link of a former session is known by its number only, or kept aside for what is heard over it.
    """

    def __init__(
        self,
        *,
        owner: MediaLinkOwner,
        publisher: TrackPublisher,
        wanted: Callable[[str], Sequence[str]],
        closed: Callable[[str], None],
        rng: random.Random,
    ) -> None:
        """`wanted(sfu)` is what the player subscribes to there; `closed(sfu)` is told when we close the link to it."""
        self._publisher = publisher
        self._owner = owner
        self._on_packet: PacketTap | None = None
        self._wanted = wanted
        self._closed = closed
        self._rng = rng
        self._at: dict[str, MediaLink] = {}
        self._carrying: dict[int, MediaLink] = {}
        self._aside: set[MediaLink] = set()
        """Links of a former session that carry us no longer."""
        self._past = dict.fromkeys(TRAFFIC, 0)
        """Traffic of links that are closed."""
        self._past_repaired = 0
        self._closing: set[asyncio.Task[None]] = set()

    def at(self, sfu: str) -> MediaLink | None:
        """The living link to an SFU."""
        link = self._at.get(sfu)
        return link if link is not None and link.alive else None

    def is_current(self, link: MediaLink) -> bool:
        """It is the link of the present session to its SFU."""
        return self._at.get(link.sfu) is link

    def numbers(self, link: MediaLink) -> list[int]:
        """All numbers by which the mover knows a link, newest first: one that was revived has two for a while."""
        return sorted((number for number, same in self._carrying.items() if same is link), reverse=True)

    def carry(self, sfu: str, address: str, token: str, *, number: int, generation: int) -> None:
        """Publish at an SFU: on the link that we have there, which may be a visit or be away, or on a new one."""
        link = self.at(sfu)
        if link is None:
            link = self._new(sfu, address, token)
            link.carry(number, generation)
            link.start()
        elif link.number is None:
            link.carry(number, generation, address=address, token=token)
        else:
            link.revive(number, generation, address=address, token=token)
        self._carrying[number] = link

    def visit(self, sfu: str, address: str, token: str) -> None:
        """Open a subscribe-only link, or let the one in again that is there."""
        link = self.at(sfu)
        if link is None:
            self._new(sfu, address, token).start()
        elif link.needs_token and link.number is None:
            link.renew(address, token)

    def let_go(self, number: int) -> None:
        """Publish there no longer, or give up trying to; what is wanted from there is heard on, as on a visit."""
        link = self._release(number)
        if link is None:
            return
        current = self._at.get(link.sfu)
        if not link.hears or not self._wanted(link.sfu):
            self._drop(link)
        elif link is current:
            link.stop_publishing()
        elif current is not None and current.delivers:
            self._drop(link)
        else:
            link.stop_publishing()
            self._keep_aside(link)

    def _keep_aside(self, link: MediaLink) -> None:
        self._aside.add(link)
        asyncio.get_running_loop().call_later(ASIDE_S, self._end_aside, link)

    def _end_aside(self, link: MediaLink) -> None:
        if link in self._aside:
            self._drop(link)

    def heard(self, link: MediaLink) -> None:
        """Something came over this link, so what was kept aside for it may go. Cheap: call it for each unit."""
        if self._aside and self.is_current(link):
            for other in [other for other in self._aside if other.sfu == link.sfu]:
                self._drop(other)

    def refused(self, number: int) -> None:
        """A visitor did not become more."""
        self._carrying.pop(number, None)

    def unneeded(self, sfu: str) -> None:
        """Nothing is wanted from there: a visit ends."""
        link = self._at.get(sfu)
        if link is not None and link.number is None:
            self._drop(link)

    def down(self, link: MediaLink) -> bool:
        """The link has ended; True when it was the current one. One that carries us is known by its number until the
        mover lets it go."""
        current = self.is_current(link)
        if current:
            del self._at[link.sfu]
        if link.number is None:
            self._close(link)
        return current

    def new_session(self) -> list[str]:
        """No link can be used for more than it does now. Returns the SFUs that had a current link."""
        sfus = list(self._at)
        visits = [link for link in self._at.values() if link.number is None]
        self._at.clear()
        for link in visits:
            self._keep_aside(link)
        return sfus

    async def close(self) -> None:
        """Leave every SFU."""
        links = self._all()
        self._at.clear()
        self._carrying.clear()
        for link in links:
            self._close(link)
        await asyncio.gather(*self._closing, return_exceptions=True)

    def offer(self) -> None:
        """The tracks have changed: offer them on every link that carries them."""
        for link in set(self._carrying.values()):
            link.offer()

    def stop(self, publications: tuple[str, ...]) -> None:
        """These tracks have ended, wherever they are carried."""
        for link in set(self._carrying.values()):
            link.stop(publications)

    def tap(self, on_packet: PacketTap) -> None:
        """From now on hand over each packet of others as well, from all links."""
        self._on_packet = on_packet
        for link in self._all():
            link.tap(on_packet)

    def traffic(self) -> dict[str, int]:
        """What all links have carried so far: the counters of `TRAFFIC`, and `repaired`."""
        links = self._all()
        counts = {
            name: self._past[name] + sum(getattr(transport, name) for link in links for transport in link.transports)
            for name in TRAFFIC
        }
        return counts | {"repaired": self._past_repaired + sum(link.repaired for link in links)}

    def links(self) -> list[MediaLink]:
        """All links, in no order."""
        return list(self._all())

    def _release(self, number: int) -> MediaLink | None:
        """The link with this number, unless it also goes by another: one that was revived has the old and the new."""
        link = self._carrying.pop(number, None)
        if link is None:
            return None
        others = [other for other, same in self._carrying.items() if same is link]
        if others:
            link.number = max(others)
            return None
        return link

    def _all(self) -> set[MediaLink]:
        return {*self._at.values(), *self._carrying.values(), *self._aside}

    def _new(self, sfu: str, address: str, token: str) -> MediaLink:
        link = self._at[sfu] = MediaLink(
            sfu=sfu,
            address=address,
            token=token,
            owner=self._owner,
            publisher=self._publisher,
            on_packet=self._on_packet,
            rng=self._rng,
        )
        return link

    def _drop(self, link: MediaLink) -> None:
        self._close(link)
        if self.is_current(link):
            del self._at[link.sfu]
            self._closed(link.sfu)

    def _close(self, link: MediaLink) -> None:
        self._aside.discard(link)
        for transport in link.transports:
            for name in TRAFFIC:
                self._past[name] += getattr(transport, name)
        self._past_repaired += link.repaired
        task = asyncio.create_task(link.leave() if link.alive else link.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
