"""How a launched node comes up: launch, healthy, first packet, capacity, first room (A5), each told once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from shared.records import SfuState, sfu_id
from shared.scaling_records import ScalingState


class LaunchStage(StrEnum):
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

    stage: LaunchStage
    sfu: str
    seconds: float


class LaunchWatch:
    """Looks at the launch and the newcomers of a state each second; a tick is too coarse for how long it took."""

    def __init__(self) -> None:
        self._told: set[tuple[str, LaunchStage]] = set()

    def look(self, state: ScalingState, states: Iterable[SfuState], *, now_at: float) -> list[Reached]:
        """The stages reached since the last look. `now_at` is by Redis' clock, like the launch's own time."""
        known = {sfu_id(each): each for each in states}
        return self._untold([*self._launch(state, known, now_at), *self._newcomers(state, known, now_at)], state)

    def tick(self, before: ScalingState, after: ScalingState, *, now_at: float) -> list[Reached]:
        """The stages that a tick has stored and that no look could see: capacity is decided by a tick, and the SFU of a
        launch whose node had no name until this tick was not known to any look."""
        return self._untold([*_stored_now(before, after, now_at), *_capacity_now(before, after, now_at)], after)

    def _untold(self, reached: list[Reached], state: ScalingState) -> list[Reached]:
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
        stages = {LaunchStage.HEALTHY: True, LaunchStage.FIRST_PACKET: known[launch.sfu].warmed_up}
        for stage, now in stages.items():
            # Stages that a former leader's tick has stored were also reported by that leader.
            if now and stage.value not in launch.stages:
                yield Reached(stage=stage, sfu=launch.sfu, seconds=seconds)

    @staticmethod
    def _newcomers(state: ScalingState, known: dict[str, SfuState], now_at: float) -> Iterable[Reached]:
        for newcomer in state.newcomers:
            if newcomer.sfu in known and (known[newcomer.sfu].load_parts.rooms or 0) > 0:
                seconds = max(0.0, now_at - newcomer.launched_at)
                yield Reached(stage=LaunchStage.FIRST_ROOM, sfu=newcomer.sfu, seconds=seconds)


def _stored_now(before: ScalingState, after: ScalingState, now_at: float) -> Iterable[Reached]:
    """Stages of a launch in progress that its record has since this tick."""
    launch = after.launch
    if launch is not None:
        known = before.launch.stages if before.launch and before.launch.request == launch.request else ()
        for stage in (LaunchStage.HEALTHY, LaunchStage.FIRST_PACKET):
            if stage.value in launch.stages and stage.value not in known:
                yield Reached(stage=stage, sfu=launch.sfu, seconds=max(0.0, now_at - launch.since_at))


def _capacity_now(before: ScalingState, after: ScalingState, now_at: float) -> Iterable[Reached]:
    """The nodes that have become capacity in this tick."""
    counted = {each.sfu for each in before.newcomers}
    known = before.launch.stages if before.launch else ()
    for newcomer in after.newcomers:
        if newcomer.sfu not in counted:
            for stage in (LaunchStage.HEALTHY, LaunchStage.FIRST_PACKET, LaunchStage.CAPACITY):
                if stage.value not in known:
                    yield Reached(stage=stage, sfu=newcomer.sfu, seconds=max(0.0, now_at - newcomer.launched_at))
