"""The SFU's Prometheus metrics. Labels are bounded: never a player, a room or a publication."""

from __future__ import annotations

import math

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from shared.front.metrics import FrontMetrics
from shared.load import Part, load_of
from shared.messages.link import ToRouter
from shared.records import DrainReport, SfuState, SfuStatus

_RAW_PARTS = (
    "cpu", "cpu_process", "cpu_machine", "sysload", "egress_bps", "ingress_bps",
    "streams", "rooms", "clients", "tracks",
)  # fmt: skip
_MINUTES = (1, 10, 60, 300, 900, 1800, 2700, 3600, 5400)


class SfuMetrics:
    """All metrics of one SFU on one registry."""

    def __init__(self, registry: CollectorRegistry, *, version: str) -> None:
        self._version = version
        self.front = FrontMetrics(registry, program="sfu")
        self.players = Gauge("sluice_sfu_players", "Player sessions", registry=registry)
        self.producers = Gauge("sluice_sfu_producers", "Publications carried", registry=registry)
        self.consumers = Gauge("sluice_sfu_consumers", "Forwarded outbound streams", registry=registry)
        self.load = Gauge("sluice_sfu_load", "Share of the ceiling, NaN: unknown", ["part"], registry=registry)
        self.ceiling = Gauge("sluice_sfu_ceiling", "bit/s, streams, CPU share", ["part"], registry=registry)
        self.loop_lag = Gauge("sluice_sfu_event_loop_lag_seconds", "Worst of the last second", registry=registry)
        self.load_part = Gauge("sluice_sfu_load_part", "Parts of the load", ["part"], registry=registry)
        self.status = Gauge("sluice_sfu_status", "1 for the status in force", ["status"], registry=registry)
        self.warmed_up = Gauge(
            "sluice_sfu_warmed_up", "1 once the probe call or a player had a packet forwarded", registry=registry
        )
        self.milestone = Gauge(
            "sluice_sfu_milestone_seconds", "From process start; NaN: not reached", ["milestone"], registry=registry
        )
        self.probe_failures = Counter(
            "sluice_sfu_probe_failures", "Probe calls that failed", ["reason"], registry=registry
        )
        self.cordoned = Gauge("sluice_sfu_cordoned", "1 while no new work is taken", registry=registry)
        self.drain_deadline = Gauge(
            "sluice_sfu_drain_deadline_seconds", "Left until players are asked to move; NaN: never", registry=registry
        )
        self.cordon_lease = Gauge(
            "sluice_sfu_cordon_lease_seconds", "Left until the cordon lapses; NaN: never", registry=registry
        )
        self.tcp_reachable = Gauge(
            "sluice_sfu_tcp_reachable", "1 when all addresses carried a probe call over TCP", registry=registry
        )
        self.reachable = Gauge(
            "sluice_sfu_announced_reachable", "1 when all addresses carried a probe call", registry=registry
        )
        self.links = Gauge("sluice_sfu_router_links", "Router links that are up", registry=registry)
        self.messages = Counter("sluice_sfu_messages", "Messages from players", ["type"], registry=registry)
        self.trouble = Counter("sluice_sfu_trouble", "Refused or bad input", ["kind"], registry=registry)
        self.entered = Counter("sluice_sfu_entered", "Sessions opened", registry=registry)
        self.ended = Counter("sluice_sfu_sessions_ended", "Sessions ended", ["reason"], registry=registry)
        self.link_messages = Counter("sluice_sfu_link_messages", "Messages to routers", ["type"], registry=registry)
        self.link_dropped = Counter("sluice_sfu_link_reports_dropped", "Reports a slow link missed", registry=registry)
        self.drain_asked = Counter("sluice_sfu_drain_asked", "Players asked to move", ["version"], registry=registry)
        self.drain_evicted = Counter("sluice_sfu_drain_evicted", "Players cut off", ["version"], registry=registry)
        self.drain_exit = Gauge("sluice_sfu_drain_at_exit", "Left at exit", ["version", "what"], registry=registry)
        self.drain_to_exit = Histogram(
            "sluice_sfu_drain_to_exit_seconds", "Cordon to exit", ["version"], registry=registry, buckets=_MINUTES
        )
        self.drain_stayed = Histogram(
            "sluice_sfu_drain_stayed_seconds",
            "How long players stayed after the cordon",
            ["version"],
            registry=registry,
            buckets=_MINUTES,
        )

    def show_state(self, state: SfuState) -> None:
        """Show a report's figures. Shares that are unknown are NaN; raw parts keep their last value."""
        self.players.set(state.players or 0)
        self.producers.set(state.producers or 0)
        self.consumers.set(state.consumers or 0)
        self.warmed_up.set(state.warmed_up)
        self._show_load(state)
        self._show_drain(state)
        for name in ("healthy", "linked", "first_packet"):
            self.milestone.labels(name).set(_or_nan(getattr(state.milestones, f"{name}_s")))
        for status in (SfuStatus.ONLINE, SfuStatus.CORDONED, SfuStatus.TERMINATING):
            self.status.labels(status.value).set(state.status == status.value)

    def _show_load(self, state: SfuState) -> None:
        load = load_of(state)
        self.load.labels("node").set(_or_nan(load.node))
        for part in Part:
            self.load.labels(part.value).set(_or_nan(load.part(part)))
        for name in _RAW_PARTS:
            value = getattr(state.load_parts, name)
            if value is not None:
                self.load_part.labels(name).set(value)
        self.ceiling.labels(Part.EGRESS.value).set(state.capacities.egress_mbps * 1e6)
        self.ceiling.labels(Part.STREAMS.value).set(state.capacities.streams)
        self.ceiling.labels(Part.CPU.value).set(state.capacities.cpu_guard)
        self.loop_lag.set(_or_nan(state.load_parts.loop_lag_s))

    def _show_drain(self, state: SfuState) -> None:
        drain = state.drain
        self.cordoned.set(drain is not None)
        asks_at = drain.drain_max_s if drain else None
        self.drain_deadline.set(math.nan if drain is None or asks_at is None else max(0.0, asks_at - drain.elapsed_s))
        self.cordon_lease.set(_or_nan(drain.lease_left_s if drain else None))

    def sent_to_router(self, message: ToRouter) -> None:
        """Count a link message by its tag."""
        self.link_messages.labels(str(message.__struct_config__.tag)).inc()

    def asked(self, players: int) -> None:
        """Players were asked to move."""
        self.drain_asked.labels(self._version).inc(players)

    def stayed(self, seconds: float) -> None:
        """A player left during a drain."""
        self.drain_stayed.labels(self._version).observe(seconds)

    def drained(self, report: DrainReport) -> None:
        """A drain came to its end (D10)."""
        self.drain_to_exit.labels(self._version).observe(report.to_exit_s)
        self.drain_evicted.labels(self._version).inc(report.evicted)
        self.drain_exit.labels(self._version, "producers").set(report.producers_at_exit)
        self.drain_exit.labels(self._version, "consumers").set(report.consumers_at_exit)


def _or_nan(value: float | None) -> float:
    """Prometheus' way to say that there is no value, which is not zero."""
    return math.nan if value is None else value
