"""The media links that carry a player's publications: the home, the target of a move, and former homes being let go."""

from __future__ import annotations

from dataclasses import dataclass, field

LET_GO_S = 30.0
"""The old link is closed by then, even with subscribers left (docs/protocol.md section 4.3)."""


@dataclass(slots=True, eq=False)
class CarryingLink:
    """A link that carries, or is to carry, the publications."""

    number: int
    sfu: str
    generation: int
    lost: bool = False
    """Its websocket broke; media may go on."""
    entered: bool = False
    """The SFU has let us in."""
    connected: bool = False
    """Its publish connection is up: the SFU can be reached by media, whether or not we send any."""
    flowing: set[str] = field(default_factory=set)
    """Publications whose first packets the SFU has confirmed."""
    watched: dict[str, int] = field(default_factory=dict)
    """Subscribers of each publication there."""

    @property
    def has_media(self) -> bool:
        """Media can get through to its SFU, or does."""
        return self.connected or bool(self.flowing)

    @property
    def unheard(self) -> bool:
        """None of its publications has a subscriber there."""
        return not any(self.watched.values())


@dataclass(slots=True, eq=False)
class FormerHome:
    """A former home that is let go as soon as it has no subscriber left."""

    link: CarryingLink
    to: str
    """The SFU that took over."""
    started: float
    """When the move began."""
    until: float


@dataclass(slots=True)
class CarryingLinks:
    """All links of one player."""

    home: CarryingLink | None = None
    target: CarryingLink | None = None
    olds: list[FormerHome] = field(default_factory=list)

    def all(self) -> list[CarryingLink]:
        """Home, target, then the old ones."""
        return [link for link in (self.home, self.target, *(old.link for old in self.olds)) if link is not None]

    def to(self, sfu: str) -> list[CarryingLink]:
        """Those to this SFU."""
        return [link for link in self.all() if link.sfu == sfu]

    def numbered(self, number: int) -> CarryingLink | None:
        """The link with this number, if it is still ours."""
        return next((link for link in self.all() if link.number == number), None)

    def old(self, link: CarryingLink) -> FormerHome | None:
        """The entry of a former home."""
        return next((old for old in self.olds if old.link is link), None)

    def forget(self, publication: str) -> None:
        """The publication has ended: no link carries it, and none is kept or waited for because of it."""
        for link in self.all():
            link.flowing.discard(publication)
            link.watched.pop(publication, None)

    def may_go(self, old: FormerHome) -> bool:
        """It has no subscriber left, and all that flowed there flows at home.

        That a router has lost the SFU, or we its websocket, makes no difference: those who hear us there may have lost
        their routers, and can't follow yet.
        """
        carried = self.home.flowing if self.home is not None else set()
        return old.link.unheard and old.link.flowing <= carried

    def switch(self, *, started: float, now: float) -> tuple[CarryingLink, FormerHome | None]:
        """The target becomes the home; the former home, if any, waits to be let go."""
        assert self.target is not None
        former, self.home, self.target = self.home, self.target, None
        if former is None:
            return self.home, None
        old = FormerHome(former, self.home.sfu, started, now + LET_GO_S)
        self.olds.append(old)
        return self.home, old
