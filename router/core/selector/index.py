"""The order of all SFUs, kept while reports come in, so that choosing among ten thousand takes microseconds.

Gives what `NodeSelector.order` gives, a few at a time: the same tiers, the same figures, ties in an order drawn by
chance. A list sorted by `(tier, value, id)` is the whole of it; a cell or a version that somebody prefers gets a list
of its own the first time.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from router.core.selector.decision import NO_PREFERENCE, Candidate, Preference
from router.core.selector.node_selector import Limit, NodeSelector, tier

Key = tuple[int, float, str]
View = tuple[str, str]
"""Of which cell, of which version; empty: any."""
EVERYBODY: View = ("", "")
MAX_VIEWS = 1024
"""Lists kept, more than a fleet has cells and releases; the one used longest ago goes first."""
SECTION = tier(True, Limit.WITHIN) - tier(False, Limit.OVER)
"""Rungs that differ in neither failures nor limit."""


@dataclass(slots=True)
class Picks:
    """The first of the order."""

    levels: list[list[str]] = field(default_factory=list)
    """SFUs, best first, in lists: whoever is in an earlier one goes first whatever the figures say."""
    limit_ignored: bool = False

    @property
    def order(self) -> list[str]:
        """All of them, best first."""
        return [sfu for level in self.levels for sfu in level]


class _Entry(NamedTuple):
    key: Key
    cell: str
    version: str


class Index:
    """SFUs in order."""

    def __init__(self, selector: NodeSelector) -> None:
        self._selector = selector
        self._entries: dict[str, _Entry] = {}
        self._views: OrderedDict[View, list[Key]] = OrderedDict({EVERYBODY: []})
        self._cells: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()

    def put(self, candidate: Candidate) -> None:
        """Take an SFU in, or move it to where it belongs now."""
        rank = self._selector.rank(candidate)
        state = candidate.state
        key = (rank.tier, rank.value, candidate.sfu)
        old = self._entries.get(candidate.sfu)
        if old is not None:
            if old.key == key and old.cell == state.cell and old.version == state.version:
                return
            self._take_out(old)
        new = self._entries[candidate.sfu] = _Entry(key, state.cell, state.version)
        self._cells[new.cell] += 1
        self._versions[new.version] += 1
        for keys in self._views_with(new):
            insort(keys, new.key)

    def drop(self, sfu: str) -> None:
        """It gets no new work."""
        old = self._entries.pop(sfu, None)
        if old is not None:
            self._take_out(old)

    def best(
        self,
        *,
        count: int,
        usable: Callable[[str], bool],
        rng: random.Random,
        preference: Preference = NO_PREFERENCE,
    ) -> Picks:
        """The first `count` of the order that are `usable`; with `two_choices` two drawn among the best."""
        picks = Picks()
        draw = self._selector.two_choices
        room = 2 if draw else count
        views = self._views_for(preference)
        for failing in (False, True):
            within = self._first(views, failing, Limit.WITHIN, room, usable, rng)
            sections = [within]
            if sum(map(len, within)) < room:
                over = self._first(views, failing, Limit.OVER, room, usable, rng)
                unknown = self._first(views, failing, Limit.UNKNOWN, room, usable, rng)
                ignored = bool(over) and not within
                picks.limit_ignored = picks.limit_ignored or (ignored and not picks.levels)
                sections = [over, unknown] if ignored else [within, unknown, over]
            for level in chain.from_iterable(sections):
                if room > 0:
                    picks.levels.append(level[:room])
                    room -= len(level)
            if room <= 0:
                break
        if draw:
            picks.levels = [sorted(level, key=lambda sfu: self._entries[sfu].key[1]) for level in picks.levels]
        return picks

    def passed_over(self, count: int) -> Iterator[str]:
        """SFUs from the end of the order that stand behind others whatever their figure, worst first."""
        keys = self._views[EVERYBODY]
        for i in range(len(keys) - 1, max(-1, len(keys) - 1 - count), -1):
            if keys[i][0] == 0:
                return
            yield keys[i][2]

    def __contains__(self, sfu: object) -> bool:
        return sfu in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    # --- inside ---

    def _first(
        self,
        views: list[list[Key]],
        failing: bool,
        limit: Limit,
        count: int,
        usable: Callable[[str], bool],
        rng: random.Random,
    ) -> list[list[str]]:
        """The first `count` usable ones of one section; a list a rung and wish met."""
        levels: list[list[str]] = []
        everybody = views[-1]
        low = tier(failing, limit)
        stop = low + SECTION
        at = bisect_left(everybody, (low,))
        while at < len(everybody) and everybody[at][0] < stop:
            rung = everybody[at][0]
            seen: set[str] = set()
            for view in views:
                found: list[str] = []
                for sfu in self._on_rung(view, rung, rng):
                    if sfu not in seen and usable(sfu):
                        found.append(sfu)
                        if len(found) >= count:
                            return [*levels, found]
                    if view is not everybody:
                        seen.add(sfu)
                if found:
                    levels.append(found)
                    count -= len(found)
            at = bisect_left(everybody, (rung + 1,))
        return levels

    def _on_rung(self, view: list[Key], rung: int, rng: random.Random) -> Iterator[str]:
        at, end = bisect_left(view, (rung,)), bisect_left(view, (rung + 1,))
        while at < end:
            ties = self._ties(view, at, end)
            if ties - at == 1:
                yield view[at][2]
            else:
                for i in shuffled(at, ties, rng=rng):
                    yield view[i][2]
            at = ties

    def _ties(self, view: list[Key], at: int, end: int) -> int:
        """Where the run of those ends that are as good as the one at `at`."""
        if self._selector.two_choices:
            return end  # anybody on the rung may be drawn
        rung, value, _ = view[at]
        if at + 1 == end or view[at + 1][1] != value:
            return at + 1
        return bisect_left(view, (rung, math.nextafter(value, math.inf)), at, end)

    def _views_for(self, preference: Preference) -> list[list[Key]]:
        """Lists to look through on each rung: those that meet both wishes, then one, then all."""
        if not preference.cell and not preference.version:
            return [self._views[EVERYBODY]]
        cell = preference.cell if self._cells[preference.cell] else ""
        version = preference.version if self._versions[preference.version] else ""
        wanted = [(cell, version), (cell, ""), ("", version), EVERYBODY]
        return [self._view(view) for view in dict.fromkeys(wanted)]

    def _view(self, view: View) -> list[Key]:
        keys = self._views.get(view)
        if keys is None:
            keys = self._views[view] = sorted(entry.key for entry in self._entries.values() if _belongs(entry, view))
        self._views.move_to_end(view)
        while len(self._views) > MAX_VIEWS:
            oldest = next(each for each in self._views if each != EVERYBODY)
            del self._views[oldest]
        return keys

    def _take_out(self, entry: _Entry) -> None:
        self._cells[entry.cell] -= 1
        self._versions[entry.version] -= 1
        for counter, name in ((self._cells, entry.cell), (self._versions, entry.version)):
            if counter[name] <= 0:
                del counter[name]
        for keys in self._views_with(entry):
            del keys[bisect_left(keys, entry.key)]

    def _views_with(self, entry: _Entry) -> Iterator[list[Key]]:
        """The lists that an SFU is in: at most four, so their number costs a report nothing."""
        cell, version = entry.cell, entry.version
        for view in {EVERYBODY, (cell, ""), ("", version), (cell, version)}:
            if (keys := self._views.get(view)) is not None:
                yield keys


def _belongs(entry: _Entry, view: View) -> bool:
    cell, version = view
    return (not cell or entry.cell == cell) and (not version or entry.version == version)


def shuffled(start: int, stop: int, *, rng: random.Random) -> Iterator[int]:
    """The numbers of a range in an order drawn by chance, at the cost of those that are taken (Fisher and Yates)."""
    moved: dict[int, int] = {}
    for last in range(stop - 1, start - 1, -1):
        drawn = start + int(rng.random() * (last - start + 1))
        yield moved.get(drawn, drawn)
        moved[drawn] = moved.get(last, last)
