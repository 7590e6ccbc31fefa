"""How a launched node comes up: launch, healthy, first packet, capacity, first room (A5), each told once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from shared.records import SfuState, sfu_id
from shared.scaling_records import ScalingState


class Stage(StrEnum):
    """What a launched node reaches, in this order."""

    HEALTHY = "healthy"
    """A router knows its SFU."""
    FIRST_PACKET = "first_packet"
    """It has forwarded a packet: warmed up."""
    CAPACITY = "capacity"
    """A tick has counted it."""
    FIRST_ROOM = "first_room"
    """A room is on it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Reached:
    """A stage and how long after the launch it was seen."""

    stage: Stage
    sfu: str
    seconds: float


class LaunchWatch:
    """Looks at the launch and the newcomers of a state each second; a tick is too coarse for how long it took."""

    def __init__(self) -> None:
        self._told: set[tuple[str, Stage]] = set()

    def look(self, state: ScalingState, states: Iterable[SfuState], *, now_at: float) -> list[Reached]:
        """What has been reached since the last look. `now_at` by Redis' clock, as the launch's own time is."""
        known = {sfu_id(each): each for each in states}
        reached = [*self._launch(state, known, now_at), *self._newcomers(state, known, now_at)]
        new = [each for each in reached if (each.sfu, each.stage) not in self._told]
        self._told |= {(each.sfu, each.stage) for each in new}
        followed = {each.sfu for each in state.newcomers} | ({state.launch.sfu} if state.launch else set())
        self._told = {told for told in self._told if told[0] in followed}
        return new

    @staticmethod
    def _launch(state: ScalingState, known: dict[str, SfuState], now_at: float) -> Iterable[Reached]:
        launch = state.launch
        if launch is None or launch.sfu not in known:
            return
        seconds = max(0.0, now_at - launch.since_at)
        stages = {Stage.HEALTHY: True, Stage.FIRST_PACKET: known[launch.sfu].warmed_up}
        for stage, now in stages.items():
            # What a former leader's tick has stored that one has told as well.
            if now and stage.value not in launch.stages:
                yield Reached(stage=stage, sfu=launch.sfu, seconds=seconds)

    @staticmethod
    def _newcomers(state: ScalingState, known: dict[str, SfuState], now_at: float) -> Iterable[Reached]:
        for newcomer in state.newcomers:
            if newcomer.sfu in known and (known[newcomer.sfu].load_parts.rooms or 0) > 0:
                seconds = max(0.0, now_at - newcomer.launched_at)
                yield Reached(stage=Stage.FIRST_ROOM, sfu=newcomer.sfu, seconds=seconds)


def capacity_now(before: ScalingState, after: ScalingState, *, now_at: float) -> list[Reached]:
    """The nodes that this tick has made capacity of."""
    known = {each.sfu for each in before.newcomers}
    return [
        Reached(stage=Stage.CAPACITY, sfu=each.sfu, seconds=max(0.0, now_at - each.launched_at))
        for each in after.newcomers
        if each.sfu not in known
    ]
