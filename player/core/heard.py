"""What a player has heard of SFUs: which are cordoned, which asked it to move, which failed it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from player.core import moves as m
from player.core.rules import PlayerFacts
from shared.records import Presence

EXCLUDE_S = 60.0
"""An SFU that failed is not asked for again within this time while another is eligible."""
MAX_EXCLUDED = 16
"""No list is longer, which routers take as a whole; the oldest are forgotten first."""


@dataclass(slots=True)
class CordonNotice:
    """What was said about a cordoned SFU; moments in monotonic seconds."""

    incarnation: int
    revision: int
    heard: float
    asks: float | None = None
    ends: float | None = None


@dataclass(slots=True)
class Heard:
    """All of it, by SFU."""

    notices: dict[str, CordonNotice] = field(default_factory=dict)
    asked: dict[str, float] = field(default_factory=dict)
    """SFUs that asked us to move, and the moment we chose."""
    excluded: dict[str, float] = field(default_factory=dict)
    """SFUs that failed us, and until when they are skipped."""

    def cordon(self, event: m.CordonHeard, *, now: float) -> bool:
        """Take a cordon note; True when this SFU was not known to be cordoned. An older note changes nothing."""
        known = self.notices.get(event.sfu)
        version = (event.incarnation, event.revision)
        if known is None or version >= (known.incarnation, known.revision):
            heard = now if known is None else known.heard
            asks = None if event.asks_in_s is None else now + event.asks_in_s
            ends = None if event.ends_in_s is None else now + event.ends_in_s
            self.notices[event.sfu] = CordonNotice(*version, heard, asks, ends)
        return known is None

    def uncordon(self, event: m.CordonTakenBack) -> bool:
        """Take a cordon back; False when a newer cordon is known."""
        notice = self.notices.get(event.sfu)
        if notice is not None and (event.incarnation, event.revision) < (notice.incarnation, notice.revision):
            return False
        self.forget(event.sfu)
        self.excluded.pop(event.sfu, None)
        return True

    def ask(self, event: m.AskedToMove, *, now: float, at: float) -> None:
        """The SFU wants us to go, and we will at `at`. It is cordoned, even if no router said so yet."""
        self.asked[event.sfu] = at
        if event.sfu not in self.notices:
            self.notices[event.sfu] = CordonNotice(event.incarnation, event.revision, now, now)

    def forget(self, sfu: str) -> None:
        """The SFU has ended, or is as good as new."""
        self.notices.pop(sfu, None)
        self.asked.pop(sfu, None)

    def forbids(self, event: m.Assigned) -> bool:
        """The router assigned an SFU in a state not newer than the one we know to be cordoned."""
        notice = self.notices.get(event.sfu)
        return notice is not None and (event.incarnation, event.revision) <= (notice.incarnation, notice.revision)

    def exclude(self, sfu: str, *, now: float) -> None:
        """Skip this SFU for a while."""
        self.excluded.pop(sfu, None)
        while len(self.excluded) >= MAX_EXCLUDED:
            del self.excluded[next(iter(self.excluded))]
        self.excluded[sfu] = now + EXCLUDE_S

    def skipped(self, *, now: float) -> tuple[str, ...]:
        """SFUs to exclude from an assignment, oldest first."""
        self.excluded = {sfu: until for sfu, until in self.excluded.items() if until > now}
        return tuple(self.excluded)

    def question(self, request: str, home: str, *, leaving: Sequence[str], reason: str, now: float) -> m.AskRouter:
        """The request for another SFU; it names the home as the one to leave when that is cordoned (invariant 1).

        SFUs that are being left are excluded, too: their links still carry the copies that others listen to.
        """
        notice = self.notices.get(home)
        return m.AskRouter(
            request=request,
            leave=home if notice is not None else "",
            incarnation=notice.incarnation if notice is not None else 0,
            revision=notice.revision if notice is not None else 0,
            exclude=tuple(dict.fromkeys((*self.skipped(now=now), *leaving)))[-MAX_EXCLUDED:],
            reason=reason,
        )

    def facts(self, sfu: str, presence: Presence, *, identity: str, room: str, now: float) -> PlayerFacts | None:
        """What the rule may know about a cordoned SFU; None when it is not cordoned."""
        notice = self.notices.get(sfu)
        if notice is None:
            return None
        return PlayerFacts(
            identity=identity,
            room=room,
            sfu=sfu,
            at_desk=presence.at_desk,
            in_ambient_meeting=presence.in_ambient_meeting,
            in_conversation=presence.in_conversation,
            cordoned_for_s=now - notice.heard,
            asks_in_s=None if notice.asks is None else max(0.0, notice.asks - now),
            ends_in_s=None if notice.ends is None else max(0.0, notice.ends - now),
        )
