"""Does media get through? A websocket that is well says nothing about it.

What ought to be connected and is not for ten seconds is missing: the application and the router are told. What ought to
be connected has a name: `send`, or `receive` and an SFU. The twin of `web/lib/media-watch.js`.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

MISSING_AFTER_S = 10.0
"""A connection takes a second, on a poor line five; a move or a lost SFU less. With the seconds in which a dead
connection is noticed, the application is told within 20 s."""
MAX_TRIED = 8
"""So many SFUs are remembered as tried, the oldest forgotten first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkMedia:
    """A link's media connections: None for one that there is not."""

    sfu: str
    inside: bool
    """The SFU has let us in."""
    publishes: bool | None
    """The publish connection hears answers."""
    subscribes: bool | None
    where: str = ""
    """Where its media goes: `UDP 203.0.113.7:5000`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MediaNeeds:
    """What ought to be connected and is not (`unmet`), and what can't be told (`unsure`)."""

    unmet: Set[str] = frozenset()
    unsure: Set[str] = frozenset()


class MediaWatch:
    """Feed it what is unmet about once a second."""

    def __init__(self) -> None:
        self.missing: tuple[str, ...] = ()
        """`send`, `receive`, or both: what has been missing for too long."""
        self._since: dict[str, float] = {}
        self._tried: dict[str, tuple[str, str]] = {}

    def look(self, needs: MediaNeeds, *, now: float) -> bool:
        """True when `missing` is another than before."""
        self._since = {name: at for name, at in self._since.items() if name in needs.unmet or name in needs.unsure}
        for name in needs.unmet:
            self._since.setdefault(name, now)
        if not self._since:
            self._tried.clear()
        late = {name.split(" ")[0] for name, at in self._since.items() if now - at >= MISSING_AFTER_S}
        before, self.missing = self.missing, tuple(word for word in ("send", "receive") if word in late)
        return self.missing != before

    def try_at(self, sfu: str, *, where: str = "", reason: str = "") -> None:
        """An SFU is being tried at `where`, or failed for this reason."""
        known_where, known_reason = self._tried.pop(sfu, ("", ""))
        self._tried[sfu] = (where or known_where, reason or known_reason)
        if len(self._tried) > MAX_TRIED:
            del self._tried[next(iter(self._tried))]

    @property
    def tried(self) -> tuple[str, ...]:
        """What was tried, in words: `sfu-1 at UDP 203.0.113.7:5000 (ice-timeout)`."""
        return tuple(
            sfu + (f" at {where}" if where else "") + (f" ({reason})" if reason else "")
            for sfu, (where, reason) in self._tried.items()
        )


def needs_of(*, sends: bool, takes: Iterable[Set[str]], links: Iterable[LinkMedia]) -> MediaNeeds:
    """What ought to be connected and is not. `sends`: there is something to publish; `takes`: for each publication of
    others, the SFUs from which it may come. An SFU that has let us in offers nothing while a publication has not
    reached it: then it can't be told."""
    links = list(links)
    unmet, unsure = set[str](), set[str]()
    if sends and not any(link.publishes for link in links):
        unmet.add("send")
    arriving = {link.sfu for link in links if link.subscribes}
    quiet = {link.sfu for link in links if link.inside and link.subscribes is None}
    for sfus in takes:
        if not arriving & sfus:
            unmet |= {f"receive {sfu}" for sfu in sfus - quiet}
            unsure |= {f"receive {sfu}" for sfu in sfus & quiet}
    return MediaNeeds(unmet=unmet, unsure=unsure)
