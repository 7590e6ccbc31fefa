"""The SFU's Prometheus metrics. Labels are bounded: never a player, a room or a publication."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from shared.messages.link import ToRouter
from shared.records import DrainReport, SfuState, SfuStatus

_MINUTES = (1, 10, 60, 300, 900, 1800, 2700, 3600, 5400)


class SfuMetrics:
    """All metrics of one SFU on one registry."""

    def __init__(self, registry: CollectorRegistry, *, version: str) -> None:
        self._version = version
        self.players = Gauge("sluice_sfu_players", "Player sessions", registry=registry)
        self.producers = Gauge("sluice_sfu_producers", "Publications carried", registry=registry)
        self.consumers = Gauge("sluice_sfu_consumers", "Forwarded outbound streams", registry=registry)
        self.load = Gauge("sluice_sfu_load", "Node load, 1.0 at the ceiling", registry=registry)
        self.load_part = Gauge("sluice_sfu_load_part", "Parts of the load", ["part"], registry=registry)
        self.status = Gauge("sluice_sfu_status", "1 for the status in force", ["status"], registry=registry)
        self.warmed_up = Gauge("sluice_sfu_warmed_up", "1 once a packet was forwarded", registry=registry)
        self.reachable = Gauge("sluice_sfu_announced_reachable", "1 when the self-test succeeded", registry=registry)
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
        """Show a report's figures; what is unknown keeps its last value."""
        self.players.set(state.players or 0)
        self.producers.set(state.producers or 0)
        self.consumers.set(state.consumers or 0)
        self.warmed_up.set(state.warmed_up)
        if state.load is not None:
            self.load.set(state.load)
        for part in ("cpu", "sysload", "egress_bps", "ingress_bps", "streams", "rooms", "clients", "tracks"):
            value = getattr(state.load_parts, part)
            if value is not None:
                self.load_part.labels(part).set(value)
        for status in (SfuStatus.ONLINE, SfuStatus.CORDONED, SfuStatus.TERMINATING):
            self.status.labels(status.value).set(state.status == status.value)

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
