"""What the SFU knows of itself, measured once a second and made into reports: load, occupancy, drain, coming up."""

from __future__ import annotations

import logging
import time
from urllib.parse import urlsplit, urlunsplit

from sfu.config import PLAYERS_PATH, SfuConfig
from sfu.core.drain.machine import DrainMachine
from sfu.core.load.rates import Contents, LoadMeter, node_load
from sfu.core.load.report import Figures, Reporter
from sfu.core.load.warm_up import ComingUp
from sfu.plane.api import PlaneSnapshot
from sfu.shell.loop_lag import LoopLag
from sfu.shell.parts import SfuParts
from sfu.shell.process_age import process_age_s
from sfu.shell.sampling import take_sample
from shared.logs import fields
from shared.records import Capacities, SfuState

log = logging.getLogger("sfu")


class Reporting:
    """Call `sample` once a second and `refresh` for each report."""

    def __init__(self, parts: SfuParts, machine: DrainMachine, coming_up: ComingUp, *, ws_port: int) -> None:
        """`ws_port` is where players' websockets are listened for."""
        self._parts = parts
        self._machine = machine
        self._coming_up = coming_up
        self._meter = LoadMeter(cores=parts.config.cores, machine_cpu=parts.config.machine_cpu)
        self._lag = LoopLag()
        self.numbers = make_reporter(parts.config, ws_port=ws_port)

    @property
    def state(self) -> SfuState:
        """The last report."""
        return self.numbers.state

    @property
    def healthy(self) -> bool:
        """Everything has been started. It stays true in a drain (invariant 3)."""
        return self._coming_up.reached.healthy_s is not None

    def reach(self, milestone: str, **facts: object) -> bool:
        """A field of `Milestones` is reached now; False when it was before. `facts` go into the log."""
        age_s = process_age_s()
        first = self._coming_up.reach(milestone, age_s=age_s)
        if first:
            log.info("[sfu] reached %s", fields(milestone=milestone.removesuffix("_s"), after_s=age_s, **facts))
        return first

    def sample(self, snapshot: PlaneSnapshot, *, hidden: tuple[int, int]) -> None:
        """Take the counters of this moment in; `hidden` are the bytes in and out that are no load."""
        hidden_in, hidden_out = hidden
        self._meter.sample(
            take_sample(
                bytes_out=snapshot.totals.bytes_out - hidden_out,
                bytes_in=snapshot.totals.bytes_in - hidden_in,
                loop_lag_s=self._lag.take(),
                now=self._parts.clock(),
            )
        )

    def refresh(self) -> SfuState:
        """Make the next report."""
        parts, coming_up = self._parts, self._coming_up
        streams, rooms = len(parts.consumers), len(parts.rooms)
        players, producers = len(parts.players), len(parts.producers)
        load_parts = self._meter.parts(Contents(streams=streams, rooms=rooms, clients=players, tracks=producers))
        state = self.numbers.next(
            Figures(
                status=self._machine.status,
                drain=self._machine.facts(now=parts.clock()),
                load=node_load(load_parts, parts.config.ceilings()),
                load_parts=load_parts,
                warmed_up=coming_up.warmed_up,
                milestones=coming_up.reached,
                probe_failure=coming_up.probe_failure,
                players=players,
                producers=producers,
                consumers=streams,
            )
        )
        parts.metrics.show_state(state)
        return state

    def stop(self) -> None:
        """Stop measuring the event loop."""
        self._lag.stop()


def make_reporter(config: SfuConfig, *, ws_port: int) -> Reporter:
    """The reporter of an SFU with these settings."""
    first = config.ips()[0]
    host = f"[{first}]" if ":" in first else first
    parts = urlsplit(config.announced_ws or f"{config.front.scheme('ws')}://{host}:{ws_port}")
    capacities = Capacities(
        egress_mbps=config.egress_ceiling_mbps,
        streams=config.stream_ceiling,
        cores=config.cores,
        cpu_guard=config.cpu_guard,
    )
    return Reporter(
        sfu=config.sfu,
        address=urlunsplit(parts if parts.path.strip("/") else parts._replace(path=PLAYERS_PATH)),
        version=config.version,
        cell=config.cell,
        capacities=capacities,
        started_ms=time.time_ns() // 1_000_000,
    )
