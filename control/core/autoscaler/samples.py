"""What each node reported over one tick (A3): a look each second, the mean at its end, and whether to believe it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from shared.load import MOST_CORES, UNKNOWN, Ceilings, Load, absurd, ceilings_of, load_of, mean_over_time
from shared.records import Capacities, SfuState, SfuStatus, sfu_id, status_of, version_of


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeCeilings:
    """Ceilings that the settings give in place of those that nodes report; None: the node's own (A2)."""

    egress_mbps: float | None = None
    streams: int | None = None
    cpu_guard: float | None = None

    def of(self, capacities: Capacities) -> Ceilings | None:
        """A node's ceilings; None when those that it reports can't be used."""
        given = {"egress_mbps": self.egress_mbps, "streams": self.streams, "cpu_guard": self.cpu_guard}
        return ceilings_of(
            msgspec.structs.replace(capacities, **{key: value for key, value in given.items() if value is not None})
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeReport:
    """What an SFU said over a tick."""

    state: SfuState
    """Its newest state."""
    fresh: bool = True
    """It has reported lately; if not, everything that it reported before is unknown now (invariant 4)."""
    load: Load = UNKNOWN
    """Mean of each part over the tick."""
    ceilings: Ceilings | None = None
    faults: tuple[str, ...] = ()
    """Impossible figures in the newest report."""
    was_cordoned: bool = False
    """It was seen CORDONED during the tick, whatever its newest report says."""

    @property
    def known(self) -> bool:
        """Its load may be acted on."""
        return self.fresh and self.load.known

    @property
    def streams(self) -> int | None:
        """Forwarded streams now; None while not known."""
        return self.state.load_parts.streams if self.fresh and not self.faults else None

    @property
    def empty(self) -> bool:
        """Certainly no player on it and nothing sent: all must be known, because unknown is not zero (A6, A11)."""
        state, parts = self.state, self.state.load_parts
        empty = state.players == 0 and state.consumers == 0 and state.producers == 0 and parts.streams == 0
        return self.fresh and not self.faults and empty and parts.egress_bps is not None and parts.egress_bps < 1


@dataclass(slots=True)
class _Heard:
    state: SfuState
    advanced_at: float | None = None
    """When we last saw its version grow [monotonic s]; None: never, so it may have died long ago."""
    loads: list[Load] = field(default_factory=list)
    was_cordoned: bool = False


class Samples:
    """Collects looks at the fleet's states. Ages are this process' own time since a revision advanced (invariant 2)."""

    def __init__(self, *, ceilings: NodeCeilings, max_age_s: float) -> None:
        self._ceilings = ceilings
        self._max_age_s = max_age_s
        self._heard: dict[str, _Heard] = {}
        self._seen: set[str] = set()

    @property
    def seen(self) -> frozenset[str]:
        """Every SFU found since `next_tick`, even if its record is gone by now."""
        return frozenset(self._seen)

    def look(self, states: Iterable[SfuState], *, now: float) -> None:
        """One look at all that the store has; call it each second."""
        before, self._heard = self._heard, {}
        for state in states:
            sfu = sfu_id(state)
            known = before.get(sfu) or _Heard(state)
            if version_of(state) > version_of(known.state):
                known.advanced_at = now
                if state.incarnation != known.state.incarnation:
                    known.loads.clear()
            known.state = state
            known.was_cordoned |= status_of(state) is SfuStatus.CORDONED
            if self._is_fresh(known, now):
                known.loads.append(self._load(state))
            self._heard[sfu] = known
        self._seen |= self._heard.keys()

    def reports(self, *, now: float) -> dict[str, NodeReport]:
        """What each SFU said since `next_tick`; by SFU id."""
        return {sfu: self._report(heard, now) for sfu, heard in self._heard.items()}

    def next_tick(self) -> None:
        """Begin a tick: the means start again from zero."""
        self._seen.clear()
        for heard in self._heard.values():
            heard.loads.clear()
            heard.was_cordoned = False

    def _is_fresh(self, heard: _Heard, now: float) -> bool:
        return heard.advanced_at is not None and now - heard.advanced_at <= self._max_age_s

    def _load(self, state: SfuState) -> Load:
        ceilings = self._ceilings.of(state.capacities)
        return UNKNOWN if ceilings is None or faults_of(state, ceilings) else load_of(state, ceilings)

    def _report(self, heard: _Heard, now: float) -> NodeReport:
        state = heard.state
        ceilings = self._ceilings.of(state.capacities)
        # Its newest figure must be known as well: a mean of earlier seconds says nothing about a node that no longer
        # measures.
        load = mean_over_time(heard.loads) if self._load(state).known else UNKNOWN
        return NodeReport(
            state=state,
            fresh=self._is_fresh(heard, now),
            load=load,
            ceilings=ceilings,
            faults=faults_of(state, ceilings),
            was_cordoned=heard.was_cordoned,
        )


def faults_of(state: SfuState, ceilings: Ceilings | None) -> tuple[str, ...]:
    """The impossible figures of a report, judged by these ceilings; None: there are no ceilings to judge by."""
    parts = state.load_parts
    counts = {
        "players": state.players,
        "consumers": state.consumers,
        "producers": state.producers,
        "rooms": parts.rooms,
        "clients": parts.clients,
        "tracks": parts.tracks,
    }
    bad = [part.value for part in absurd(parts, ceilings)] if ceilings else []
    bad += [name for name, count in counts.items() if count is not None and count < 0]
    if ceilings is None or ceilings_of(state.capacities) is None:
        bad.append("ceilings")
    if not 1 <= state.capacities.cores <= MOST_CORES:
        bad.append("cores")
    return tuple(bad)
