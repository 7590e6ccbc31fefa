"""One router's view of all SFUs: newest state by `(incarnation, revision)`, applied before any player hears of it.

Facts to tell players (`router.core.facts`) exist only as return values of the methods that have already applied them;
that is how "state first, decision second" (invariant 1, D3, D4) holds without a caller having to think of it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from router.core.facts import Cordoned, Fact, Gone, GoneReason, Uncordoned
from shared.keys import NOT_PLACEABLE_AFTER_S
from shared.placing import Version
from shared.records import SfuState, SfuStatus, sfu_id, status_of, version_of

LOST_AFTER_S = 3.0
"""A broken link and no other news for this long: the SFU is lost (docs/protocol.md, section 4.7)."""
LOST_AFTER_BLIND_S = 10.0
"""The same while Redis is unreachable, where other routers' news can't reach us; longer than an SFU's retry to link."""
ALIVE_S = 3.0
"""An SFU that was heard of within this long is alive: it reports each second."""
MISSING_GRACE_S = 5.0
"""A record missing for this long is gone. A restarted Redis is empty until each router has put its SFUs back."""
REMOTE_LOST_S = 15.0
"""An SFU linked to other routers only, and not heard of for this long, is lost: it had time to link elsewhere."""
FIRST_SIGHT_TRUST_S = 2.0
"""A record found in Redis may be that of a dead SFU; it is trusted for so long, in which a living one reports again."""
MAX_TOMBSTONES = 1024
MAX_SFUS = 16_384
"""Bound on entries; a record beyond it is ignored."""
_FINAL = 1 << 62


class NotPlaceable(StrEnum):
    """Why an SFU gets no new work."""

    CORDONED = "cordoned"
    """Its newest state says so."""
    TERMINATING = "terminating"
    """It runs its final sequence."""
    UNKNOWN_STATUS = "unknown-status"
    """A status of a newer version: alive, not placeable (D1)."""
    STALE = "stale"
    """Not heard of for `NOT_PLACEABLE_AFTER_S`; not dead."""
    TREATED_AS_CORDONED = "treated-as-cordoned"
    """A player of the room named a later revision than ours when it asked to leave (invariant 1); for its room only."""
    MISSING = "missing"
    """Its record has left Redis and it has no link here: it has ended, or Redis lost its records. A last hope only."""
    UNKNOWN_SFU = "unknown-sfu"
    """No such SFU."""


_BY_STATUS = {
    SfuStatus.CORDONED: NotPlaceable.CORDONED,
    SfuStatus.TERMINATING: NotPlaceable.TERMINATING,
    SfuStatus.UNKNOWN: NotPlaceable.UNKNOWN_STATUS,
}


@dataclass(slots=True)
class _Entry:
    state: SfuState
    status: SfuStatus
    heard: float
    """When the revision last advanced, by our monotonic clock."""
    linked: bool = False
    unlinked: float | None = None
    stored: bool = False
    missing: float | None = None
    told_cordoned: bool = False
    told_gone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SfuView:
    """One SFU as this router sees it now."""

    sfu: str
    state: SfuState
    status: SfuStatus
    linked: bool
    age_s: float
    refused: NotPlaceable | None
    """None: placeable."""


class Directory:
    """All SFUs this router knows. `now` is monotonic seconds of this process."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._tombstones: OrderedDict[str, Version] = OrderedDict()
        self._blind_since: float | None = None
        self._changed: Callable[[str], None] = lambda _: None

    def watch(self, changed: Callable[[str], None]) -> None:
        """Call `changed(sfu)` for each SFU, and each time something about one is no longer as it was; one listener."""
        self._changed = changed
        self._changed_all()

    # --- news ---

    def hear(self, state: SfuState, *, now: float, direct: bool = True) -> list[Fact]:
        """A state, in any order, any number of times: from its link (`direct`) or from Redis.

        Returns what players are to hear.
        """
        sfu = sfu_id(state)
        if version_of(state) != (0, 0) and version_of(state) <= self._tombstones.get(sfu, (-1, -1)):
            return []
        entry = self._entries.get(sfu)
        if entry is None:
            if len(self._entries) >= MAX_SFUS:
                return []
            heard = now if direct else now - NOT_PLACEABLE_AFTER_S + FIRST_SIGHT_TRUST_S
            entry = self._entries[sfu] = _Entry(state=state, status=status_of(state), heard=heard)
        elif not self._merge(entry, state, now=now):
            return []
        self._changed(sfu)
        return self._facts(sfu, entry)

    def read_back(self, states: Iterable[SfuState], *, now: float) -> list[Fact]:
        """A whole reading of Redis: all its SFUs. Records that vanished count as missing from now on."""
        self.see_store(now=now)
        facts: list[Fact] = []
        present = set()
        for state in states:
            present.add(sfu_id(state))
            facts += self.hear(state, now=now, direct=False)
        for sfu, entry in list(self._entries.items()):
            if sfu in present:
                back, entry.stored, entry.missing = entry.missing is not None, True, None
                if back:
                    self._changed(sfu)
            elif entry.stored and not entry.linked and entry.missing is None:
                entry.missing = now
        return facts + self.tick(now=now)

    def link(self, sfu: str, *, now: float) -> None:
        """The SFU has a link here; its freshness comes from there."""
        if (entry := self._entries.get(sfu)) is not None:
            back = entry.missing is not None
            entry.linked, entry.unlinked, entry.missing = True, None, None
            if back:
                self._changed(sfu)

    def unlink(self, sfu: str, *, now: float) -> None:
        """Its link here broke without a `bye`."""
        if (entry := self._entries.get(sfu)) is not None and entry.linked:
            entry.linked, entry.unlinked = False, now

    def forget(self, sfu: str) -> None:
        """What is known came from another process with this id: the next state of any counts, however old."""
        if self._entries.pop(sfu, None) is not None:
            self._changed(sfu)

    def unregister(self, sfu: str) -> list[Fact]:
        """The SFU said `drained` or `bye`: nothing of this incarnation or an older one counts any more."""
        return self._bury(sfu, GoneReason.TERMINATING, final=True)

    def lose_store(self, *, now: float) -> None:
        """Redis is unreachable: the age of SFUs that others are linked with stands still (invariant 5)."""
        if self._blind_since is None:
            self._blind_since = now
            self._changed_all()

    def see_store(self, *, now: float) -> None:
        """Redis answers again: ages go on from where they stood, and nothing counts as missing yet."""
        if self._blind_since is None:
            return
        blind_s = now - self._blind_since
        for entry in self._entries.values():
            if not entry.linked and entry.unlinked is None:
                entry.heard = min(now, entry.heard + blind_s)
            entry.missing = None
            if entry.unlinked is not None:
                entry.unlinked = now
        self._blind_since = None
        self._changed_all()

    def tick(self, *, now: float) -> list[Fact]:
        """What time alone has decided: SFUs that are lost or whose record has expired. Call it a few times a second."""
        facts: list[Fact] = []
        for sfu, entry in list(self._entries.items()):
            if self._lost(entry, now=now) or self._expired(entry, now=now):
                facts += self._bury(sfu, GoneReason.LOST, final=False)
        return facts

    # --- questions ---

    def refusal(self, sfu: str, *, now: float) -> NotPlaceable | None:
        """Why `sfu` may get no new work now; None when it may."""
        entry = self._entries.get(sfu)
        if entry is None:
            return NotPlaceable.UNKNOWN_SFU
        if entry.status is not SfuStatus.ONLINE:
            return _BY_STATUS[entry.status]
        if self._age(entry, now=now) >= NOT_PLACEABLE_AFTER_S:
            return NotPlaceable.STALE
        if entry.missing is not None and not self.blind:
            return NotPlaceable.MISSING
        return None

    def state(self, sfu: str) -> SfuState | None:
        """The newest state known of `sfu`."""
        entry = self._entries.get(sfu)
        return entry.state if entry else None

    def alive_elsewhere(self, sfu: str, *, now: float) -> str:
        """The boot of the process that other routers have heard of within `ALIVE_S`; empty when there is none."""
        entry = self._entries.get(sfu)
        if entry is None or entry.linked or entry.unlinked is not None or entry.missing is not None:
            return ""
        return entry.state.boot if now - entry.heard < ALIVE_S else ""

    def silent_s(self, sfu: str, *, now: float) -> float:
        """Seconds since the revision of `sfu` last advanced here, whether Redis could be read or not; 0 for none."""
        entry = self._entries.get(sfu)
        return max(0.0, now - entry.heard) if entry else 0.0

    def views(self, *, now: float) -> Iterator[SfuView]:
        """Every SFU, sorted by id."""
        for sfu, entry in sorted(self._entries.items()):
            yield SfuView(
                sfu=sfu,
                state=entry.state,
                status=entry.status,
                linked=entry.linked,
                age_s=max(0.0, self._age(entry, now=now)),
                refused=self.refusal(sfu, now=now),
            )

    def cordoned(self, sfus: Iterable[str]) -> list[SfuState]:
        """The states of those of these SFUs whose cordon has been applied, for a player that may have missed it."""
        entries = ((sfu, self._entries.get(sfu)) for sfu in sorted(set(sfus)))
        return [entry.state for _, entry in entries if entry is not None and entry.told_cordoned]

    @property
    def ids(self) -> tuple[str, ...]:
        """Every SFU known."""
        return tuple(self._entries)

    @property
    def blind(self) -> bool:
        """Redis is unreachable."""
        return self._blind_since is not None

    def __contains__(self, sfu: object) -> bool:
        return sfu in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    # --- inside ---

    def _changed_all(self) -> None:
        for sfu in list(self._entries):
            self._changed(sfu)

    def _merge(self, entry: _Entry, state: SfuState, *, now: float) -> bool:
        """Take `state` if it is news; false when it changes nothing."""
        known, new = version_of(entry.state), version_of(state)
        if new < known:
            return False
        if new == known:
            return self._merge_unversioned(entry, state, now=now) if new == (0, 0) else False
        entry.state, entry.status, entry.heard = state, status_of(state), now
        entry.told_gone = entry.told_gone and new[0] == known[0]
        if not entry.linked:
            entry.unlinked = None  # another router hears of it
        return True

    @staticmethod
    def _merge_unversioned(entry: _Entry, state: SfuState, *, now: float) -> bool:
        """An older program has no revisions (D9): each arrival is news, but order is unknown; a cordon stays."""
        entry.heard = now
        if entry.status in (SfuStatus.CORDONED, SfuStatus.TERMINATING) and status_of(state) is SfuStatus.ONLINE:
            return False
        entry.state, entry.status = state, status_of(state)
        return True

    @staticmethod
    def _facts(sfu: str, entry: _Entry) -> list[Fact]:
        facts: list[Fact] = []
        closed = entry.status in (SfuStatus.CORDONED, SfuStatus.TERMINATING)
        if closed and not entry.told_cordoned:
            entry.told_cordoned = True
            facts.append(Cordoned(sfu=sfu, state=entry.state))
        elif entry.status is SfuStatus.ONLINE and entry.told_cordoned:
            entry.told_cordoned = False
            facts.append(Uncordoned(sfu=sfu, state=entry.state))
        if entry.status is SfuStatus.TERMINATING and not entry.told_gone:
            entry.told_gone = True
            facts.append(Gone(sfu=sfu, state=entry.state, reason=GoneReason.TERMINATING))
        return facts

    def _bury(self, sfu: str, reason: GoneReason, *, final: bool) -> list[Fact]:
        """Remove an SFU; its tombstone keeps late copies of old states from raising it."""
        entry = self._entries.pop(sfu, None)
        if entry is None:
            return []
        self._changed(sfu)
        incarnation, revision = version_of(entry.state)
        self._tombstones[sfu] = (incarnation, _FINAL if final else revision)
        self._tombstones.move_to_end(sfu)
        while len(self._tombstones) > MAX_TOMBSTONES:
            self._tombstones.popitem(last=False)
        return [Gone(sfu=sfu, state=entry.state, reason=reason, told=entry.told_gone)]

    def _age(self, entry: _Entry, *, now: float) -> float:
        if self._blind_since is not None and not entry.linked and entry.unlinked is None:
            now = self._blind_since
        return now - entry.heard

    def _lost(self, entry: _Entry, *, now: float) -> bool:
        if entry.unlinked is not None:
            return now - entry.unlinked >= (LOST_AFTER_BLIND_S if self.blind else LOST_AFTER_S)
        return not entry.linked and not self.blind and now - entry.heard >= REMOTE_LOST_S

    def _expired(self, entry: _Entry, *, now: float) -> bool:
        if entry.missing is None or self.blind:
            return False
        return entry.status is SfuStatus.TERMINATING or now - entry.missing >= MISSING_GRACE_S
