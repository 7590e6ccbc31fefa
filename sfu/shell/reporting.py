"""What the SFU knows of itself, measured once a second and made into reports: load, occupancy, drain, coming up."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from urllib.parse import urlsplit, urlunsplit

from sfu.config import SfuConfig
from sfu.core.drain.machine import DrainMachine
from sfu.core.load.rates import Contents, LoadMeter, node_load
from sfu.core.load.report import Figures, Reporter
from sfu.core.load.warm_up import ComingUp
from sfu.shell.hub import Hub
from sfu.shell.loop_lag import LoopLag
from sfu.shell.media import PortMedia
from sfu.shell.metrics import SfuMetrics
from sfu.shell.probe import Probe
from sfu.shell.process_age import process_age_s
from sfu.shell.sampling import take_sample
from sfu.shell.signalling import PATH
from shared.logs import fields
from shared.records import Capacities, SfuState

log = logging.getLogger("sfu")


class Reporting:
    """Call `sample` once a second and `refresh` for each report."""

    def __init__(
        self,
        config: SfuConfig,
        *,
        ws_port: int,
        media: PortMedia,
        hub: Hub,
        machine: DrainMachine,
        probe: Probe,
        metrics: SfuMetrics,
        clock: Callable[[], float],
    ) -> None:
        """`ws_port` is where players' websockets are listened for."""
        self._config = config
        self._media = media
        self._hub = hub
        self._machine = machine
        self._probe = probe
        self._metrics = metrics
        self._clock = clock
        self._meter = LoadMeter(cores=config.cores, machine_cpu=config.machine_cpu)
        self._lag = LoopLag()
        self._coming_up = ComingUp()
        self.numbers = make_reporter(config, ws_port=ws_port)
        self.probe_failure: Callable[[], str] = lambda: ""
        """Asked for each report."""

    @property
    def state(self) -> SfuState:
        """The last report."""
        return self.numbers.state

    @property
    def warmed_up(self) -> bool:
        """A first packet has been forwarded."""
        return self._coming_up.warmed_up

    def reach(self, milestone: str, **facts: object) -> bool:
        """A field of `Milestones` is reached now; False when it was before. `facts` go into the log."""
        age_s = process_age_s()
        first = self._coming_up.reach(milestone, age_s=age_s)
        if first:
            log.info("[sfu] reached %s", fields(milestone=milestone.removesuffix("_s"), after_s=age_s, **facts))
        return first

    def sample(self) -> None:
        """Read the counters."""
        snapshot = self._media.plane.snapshot()
        self._media.heard = {peer.peer: peer.last_heard for peer in snapshot.peers}
        hidden_in, hidden_out = self._probe.hidden(snapshot)
        self._meter.sample(
            take_sample(
                bytes_out=snapshot.totals.bytes_out - hidden_out,
                bytes_in=snapshot.totals.bytes_in - hidden_in,
                loop_lag_s=self._lag.take(),
                now=self._clock(),
            )
        )

    def refresh(self) -> SfuState:
        """Make the next report."""
        hub, consumers = self._hub, self._hub.consumers
        parts = self._meter.parts(
            Contents(streams=consumers, rooms=len(hub.rooms), clients=len(hub.players), tracks=len(hub.producers))
        )
        state = self.numbers.next(
            Figures(
                status=self._machine.status,
                drain=self._machine.facts(now=self._clock()),
                load=node_load(parts, self._config.ceilings()),
                load_parts=parts,
                warmed_up=self.warmed_up,
                milestones=self._coming_up.reached,
                probe_failure=self.probe_failure(),
                players=len(hub.players),
                producers=len(hub.producers),
                consumers=consumers,
            )
        )
        self._metrics.show_state(state)
        return state

    def stop(self) -> None:
        """No more looks at the event loop."""
        self._lag.stop()


def make_reporter(config: SfuConfig, *, ws_port: int) -> Reporter:
    """The reporter of an SFU with these settings."""
    first = config.ips()[0]
    parts = urlsplit(config.announced_ws or f"ws://{f'[{first}]' if ':' in first else first}:{ws_port}")
    capacities = Capacities(
        egress_mbps=config.egress_ceiling_mbps,
        streams=config.stream_ceiling,
        cores=config.cores,
        cpu_guard=config.cpu_guard,
    )
    return Reporter(
        sfu=config.sfu,
        address=urlunsplit(parts if parts.path.strip("/") else parts._replace(path=PATH)),
        version=config.version,
        cell=config.cell,
        capacities=capacities,
        started_ms=time.time_ns() // 1_000_000,
    )
