"""The order of all SFUs, kept while reports come in, so that choosing among ten thousand takes microseconds.

A list sorted by `(rank, figure, id)` is the whole of it; a cell or a version that a player prefers gets a list of its
own the first time. Ties come in an order drawn by chance.
"""

from __future__ import annotations

import math
import random
from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice

from router.core.selector.decision import Standing
from router.core.selector.ladder import FAILING, LIMIT_UNKNOWN, NO_PREFERENCE, OVER_LIMIT, Preference
from router.core.selector.node_selector import NodeSelector

Place = tuple[int, float, str]
"""The key that is compared, and the SFU's id."""
View = tuple[str, str]
"""Of which cell, of which version; empty: any."""
ALL: View = ("", "")
MAX_VIEWS = 1024
"""Lists kept, more than a fleet has cells and releases; the one used longest ago is dropped first."""
Usable = Callable[[str], bool]


class Index:
    """SFUs in order."""

    def __init__(self, selector: NodeSelector) -> None:
        self._selector = selector
        self._standings: dict[str, Standing] = {}
        self._views: OrderedDict[View, list[Place]] = OrderedDict({ALL: []})
        self._cells: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()

    def put(self, new: Standing) -> None:
        """Take an SFU in, or move it to where it belongs now."""
        old, state = self._standings.get(new.sfu), new.state
        self._standings[new.sfu] = new
        if old is not None:
            same = old.state.cell == state.cell and old.state.version == state.version
            if same and old.order == new.order:
                return
            self._take_out(old)
        self._cells[state.cell] += 1
        self._versions[state.version] += 1
        place = _place(new)
        for places in self._views_with(new):
            insort(places, place)

    def drop(self, sfu: str) -> None:
        """It gets no new work."""
        old = self._standings.pop(sfu, None)
        if old is not None:
            self._take_out(old)

    def get(self, sfu: str) -> Standing | None:
        """How the SFU stands, if it is in the order."""
        return self._standings.get(sfu)

    def best(
        self, *, count: int, usable: Usable, rng: random.Random, preference: Preference = NO_PREFERENCE
    ) -> tuple[list[Standing], bool]:
        """The first `count` of the order that are `usable`, ranked for this preference; true: the limit was ignored.

        With `two_choices` two of them, drawn among the best.
        """
        draw = self._selector.two_choices
        wanted = 2 if draw else count
        views = self._views_for(preference)
        found: list[Standing] = []
        limit_ignored = False
        for connections in (0, FAILING):
            if len(found) < wanted:
                more, ignored = self._best_of(views, connections, wanted - len(found), usable, rng)
                limit_ignored = limit_ignored or (ignored and not found)
                found += more
        found = [self._selector.behind(each, preference.missed(each.state)) for each in found]
        if draw:
            found.sort(key=lambda each: each.order)
        return found, limit_ignored

    def passed_over(self, count: int) -> Iterator[Standing]:
        """SFUs from the end of the order that stand behind others whatever their figure, the last one first."""
        for _, _, sfu in islice(reversed(self._views[ALL]), max(0, count)):
            if not self._standings[sfu].passed_over:
                return
            yield self._standings[sfu]

    def __contains__(self, sfu: object) -> bool:
        return sfu in self._standings

    def __len__(self) -> int:
        return len(self._standings)

    # --- inside ---

    def _best_of(
        self, views: list[list[Place]], connections: int, wanted: int, usable: Usable, rng: random.Random
    ) -> tuple[list[Standing], bool]:
        """The first of those with such connections; true: all that are known are over the limit, so it is ignored."""
        unknown_from, over_from = connections + LIMIT_UNKNOWN, connections + OVER_LIMIT

        def first(low: int, stop: int) -> list[Standing]:
            return [self._standings[sfu] for sfu in islice(self._walk(views, low, stop, usable, rng), wanted)]

        within = first(connections, unknown_from)
        if len(within) >= wanted:
            return within, False
        over, unknown = first(over_from, connections + FAILING), first(unknown_from, over_from)
        if within or not over:
            return [*within, *unknown, *over][:wanted], False
        over = [replace(each, rank=each.rank & ~OVER_LIMIT) for each in over]
        return [*over, *unknown][:wanted], True

    def _walk(self, views: list[list[Place]], low: int, stop: int, usable: Usable, rng: random.Random) -> Iterator[str]:
        """Usable SFUs of the ranks from `low` to below `stop`, in order; on each rank first the preferred ones."""
        everything = views[-1]
        at = bisect_left(everything, (low,))
        while at < len(everything) and (rank := everything[at][0]) < stop:
            seen: set[str] = set()
            for view in views:
                for sfu in self._on_rank(view, rank, rng):
                    if sfu not in seen and usable(sfu):
                        yield sfu
                    if view is not everything:
                        seen.add(sfu)
            at = bisect_left(everything, (rank + 1,))

    def _on_rank(self, view: list[Place], rank: int, rng: random.Random) -> Iterator[str]:
        at, end = bisect_left(view, (rank,)), bisect_left(view, (rank + 1,))
        while at < end:
            ties = self._ties(view, at, end)
            if ties - at == 1:
                yield view[at][2]
            else:
                for i in shuffled(at, ties, rng=rng):
                    yield view[i][2]
            at = ties

    def _ties(self, view: list[Place], at: int, end: int) -> int:
        """Where the run of those ends that are as good as the one at `at`."""
        if self._selector.two_choices:
            return end  # any on the rank may be drawn
        rank, figure, _ = view[at]
        if at + 1 == end or view[at + 1][1] != figure:
            return at + 1
        return bisect_left(view, (rank, math.nextafter(figure, math.inf)), at, end)

    def _views_for(self, preference: Preference) -> list[list[Place]]:
        """Lists to look through on each rank: those that meet both wishes, then one, then all."""
        if not preference.cell and not preference.version:
            return [self._views[ALL]]
        cell = preference.cell if self._cells[preference.cell] else ""
        version = preference.version if self._versions[preference.version] else ""
        wanted = [(cell, version), (cell, ""), ("", version), ALL]
        return [self._view(view) for view in dict.fromkeys(wanted)]

    def _view(self, view: View) -> list[Place]:
        places = self._views.get(view)
        if places is None:
            within = (each for each in self._standings.values() if _belongs(each, view))
            places = self._views[view] = sorted(map(_place, within))
        self._views.move_to_end(view)
        while len(self._views) > MAX_VIEWS:
            oldest = next(each for each in self._views if each != ALL)
            del self._views[oldest]
        return places

    def _take_out(self, standing: Standing) -> None:
        for counter, name in ((self._cells, standing.state.cell), (self._versions, standing.state.version)):
            counter[name] -= 1
            if counter[name] <= 0:
                del counter[name]
        place = _place(standing)
        for places in self._views_with(standing):
            del places[bisect_left(places, place)]

    def _views_with(self, standing: Standing) -> Iterator[list[Place]]:
        """The lists that an SFU is in: at most four, so their number costs a report nothing."""
        cell, version = standing.state.cell, standing.state.version
        for view in {ALL, (cell, ""), ("", version), (cell, version)}:
            if (places := self._views.get(view)) is not None:
                yield places


def _place(standing: Standing) -> Place:
    return (*standing.order, standing.sfu)


def _belongs(standing: Standing, view: View) -> bool:
    cell, version = view
    return (not cell or standing.state.cell == cell) and (not version or standing.state.version == version)


def shuffled(start: int, stop: int, *, rng: random.Random) -> Iterator[int]:
    """The numbers of a range in an order drawn by chance, at the cost of those that are taken (Fisher and Yates)."""
    moved: dict[int, int] = {}
    for last in range(stop - 1, start - 1, -1):
        drawn = start + int(rng.random() * (last - start + 1))
        yield moved.get(drawn, drawn)
        moved[drawn] = moved.get(last, last)
