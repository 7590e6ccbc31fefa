"""A player's media links by SFU and by the mover's number: which one serves what, and when one is closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from player.shell.media_link import MediaLink, MediaLinkOwner
from player.shell.publisher import TrackPublisher
from player.shell.receiver import PacketTap

TRAFFIC = ("packets_in", "packets_out", "bytes_in", "bytes_out", "bad_packets")


class Connections:
    """One link of the present session to each SFU (`at`); those that carry our publications also by number.

    A link of a former session, or one whose websocket broke while its media goes on, is known by its number only.
    """

    def __init__(
        self,
        *,
        owner: MediaLinkOwner,
        publisher: TrackPublisher,
        wanted: Callable[[str], Sequence[str]],
        closed: Callable[[str], None],
    ) -> None:
        """`wanted(sfu)` is what the player subscribes to there; `closed(sfu)` is told when we close the link to it."""
        self._publisher = publisher
        self._owner = owner
        self._on_packet: PacketTap | None = None
        self._wanted = wanted
        self._closed = closed
        self._at: dict[str, MediaLink] = {}
        self._carrying: dict[int, MediaLink] = {}
        self._foreign: set[MediaLink] = set()
        """Links of former sessions."""
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
        """Publish at an SFU: on the link whose websocket broke, on the visitor's link there, or on a new one."""
        link = self.at(sfu)
        broken = next((one for one in self._carrying.values() if one.sfu == sfu and one.revivable), None)
        if broken is not None and link is None and broken not in self._foreign:
            link = self._at[sfu] = broken
            link.revive(number, generation, address=address, token=token)
        elif link is not None and link.number is None:
            link.carry(number, generation, token=token)
        else:
            link = self._new(sfu, address, token)
            link.carry(number, generation)
            link.start()
        self._carrying[number] = link

    def visit(self, sfu: str, address: str, token: str) -> None:
        """Open a subscribe-only link, unless one is there by now."""
        if self.at(sfu) is None:
            self._new(sfu, address, token).start()

    def let_go(self, number: int) -> None:
        """Publish there no longer; leave once nothing is wanted from there."""
        link = self._release(number)
        if link is not None:
            link.stop_publishing()
            if not (self.is_current(link) and self._wanted(link.sfu)):
                self._drop(link)

    def abandon(self, number: int) -> None:
        """The link came to nothing; one that was a visit before is one again."""
        link = self._release(number)
        if link is None:
            return
        if link.alive and link.entered and self.is_current(link) and self._wanted(link.sfu):
            link.stop_publishing()
        else:
            self._drop(link)

    def refused(self, number: int) -> None:
        """A visitor did not become more."""
        self._carrying.pop(number, None)

    def unneeded(self, sfu: str) -> None:
        """Nothing is wanted from there: a visit ends."""
        link = self._at.get(sfu)
        if link is not None and link.number is None:
            self._drop(link)

    def down(self, link: MediaLink) -> bool:
        """The websocket has ended; True when it was the current one. A link that carries us lives on by its number."""
        current = self.is_current(link)
        if current:
            del self._at[link.sfu]
        if link.number is None:
            self._close(link)
        return current

    def new_session(self) -> list[str]:
        """No link can be used for more than it does now; visits end. Returns the SFUs that had a current link."""
        sfus = list(self._at)
        visits = [link for link in self._at.values() if link.number is None]
        self._foreign.update(self._carrying.values())
        self._at.clear()
        for link in visits:
            self._close(link)
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
        return {*self._at.values(), *self._carrying.values()}

    def _new(self, sfu: str, address: str, token: str) -> MediaLink:
        link = self._at[sfu] = MediaLink(
            sfu=sfu,
            address=address,
            token=token,
            owner=self._owner,
            publisher=self._publisher,
            on_packet=self._on_packet,
        )
        return link

    def _drop(self, link: MediaLink) -> None:
        self._close(link)
        if self.is_current(link):
            del self._at[link.sfu]
            self._closed(link.sfu)

    def _close(self, link: MediaLink) -> None:
        self._foreign.discard(link)
        for transport in link.transports:
            for name in TRAFFIC:
                self._past[name] += getattr(transport, name)
        self._past_repaired += link.repaired
        task = asyncio.create_task(link.leave() if link.alive else link.close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
