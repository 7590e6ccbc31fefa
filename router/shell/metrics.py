"""What a router exports to Prometheus. Labels are bounded: never a player, room or SFU id."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from router.core.assignment import PlacementReason
from shared.front.metrics import FrontMetrics

MAX_VERSIONS = 32
"""Version labels told apart; later ones count as `other`."""
MAX_VERSION = 64
"""Longest version label [characters]."""
_GAPS_MS = (10, 20, 40, 67, 100, 200, 500, 1000, 5000)
_DRAIN_S = (1, 10, 60, 300, 600, 1800, 3600, 7200)
_FAST_S = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5)


class Metrics:
    """The router's own registry and everything in it."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._versions: set[str] = set()
        self.front = FrontMetrics(registry, program="router")
        self.players = Gauge("sluice_router_players", "Player sessions here.", ["state"], registry=registry)
        self.rooms = Gauge("sluice_router_rooms", "Rooms with a session here.", registry=registry)
        self.sfus = Gauge("sluice_router_sfus", "SFUs known here, by status.", ["status"], registry=registry)
        self.not_placeable = Gauge(
            "sluice_router_sfus_not_placeable", "SFUs known here that get no new work.", ["why"], registry=registry
        )
        self.links = Gauge("sluice_router_links", "SFUs linked here.", registry=registry)
        self.store_up = Gauge("sluice_router_store_up", "1 while Redis answers.", registry=registry)
        self.store_trouble = Gauge(
            "sluice_router_store_trouble", "What went wrong with Redis since the start.", ["kind"], registry=registry
        )
        self.messages = Counter("sluice_router_messages", "Messages heard.", ["peer", "type"], registry=registry)
        self.refused = Counter("sluice_router_refused", "Refusals and bad input.", ["peer", "code"], registry=registry)
        self.closed = Counter("sluice_router_closed", "Closes by this router.", ["peer", "code"], registry=registry)
        self.admin = Counter(
            "sluice_router_admin_commands", "Operators' commands by outcome.", ["verb", "outcome"], registry=registry
        )
        self.placements = Counter("sluice_router_placements", "Placements by reason.", ["reason"], registry=registry)
        for reason in PlacementReason:
            self.placements.labels(reason.value)  # from 0 on: a series that is born at 1 has not risen for an alert
        self.in_flight = Gauge(
            "sluice_router_placement_inflight",
            "Joins placed by all routers that SFUs' reports do not show yet.",
            registry=registry,
        )
        self.failing = Gauge(
            "sluice_router_failing_sfus", "SFUs left out because connections fail for many.", registry=registry
        )
        self.ice_failures = Counter(
            "sluice_router_ice_failures",
            "Players that could not connect to the SFU they were sent to.",
            registry=registry,
        )
        self.without_media = Gauge(
            "sluice_router_players_without_media", "Players here whose media does not get through.", registry=registry
        )
        self.media_missing = Counter(
            "sluice_router_media_missing", "How often a player said so for the first time.", registry=registry
        )
        self.told = Counter("sluice_router_told", "Notices about SFUs put on players' wires.", registry=registry)
        self.sync = Histogram(
            "sluice_router_sync_seconds", "One exchange with Redis.", buckets=_FAST_S, registry=registry
        )
        self.sync_failed = Counter("sluice_router_sync_failed", "Exchanges with Redis that failed.", registry=registry)
        self.lag = Histogram(
            "sluice_router_loop_lag_seconds",
            "How late a timer of the event loop fires.",
            buckets=_FAST_S,
            registry=registry,
        )
        self.audio_gap = Histogram(
            "sluice_router_move_audio_gap_ms", "Audio gap of a move.", buckets=_GAPS_MS, registry=registry
        )
        self.video_gap = Histogram(
            "sluice_router_move_video_gap_ms", "Video gap of a move.", buckets=_GAPS_MS, registry=registry
        )
        drain = ["version", "outcome"]
        self.drains = Counter("sluice_router_drains", "Drains that ended here.", drain, registry=registry)
        self.drain_time = Histogram(
            "sluice_router_drain_seconds", "From the cordon to the end.", drain, buckets=_DRAIN_S, registry=registry
        )
        self.drain_stayed = Histogram(
            "sluice_router_drain_conversation_seconds",
            "How long players stayed on after the cordon.",
            ["version"],
            buckets=_DRAIN_S,
            registry=registry,
        )
        self.drain_evicted = Counter(
            "sluice_router_drain_evicted", "Players cut at the end of a drain.", ["version"], registry=registry
        )
        self.drain_tracks = Counter(
            "sluice_router_drain_tracks_at_exit", "Tracks left at exit.", ["version", "side"], registry=registry
        )

    def release(self, label: str) -> None:
        """An SFU of this release is known. What its drains will count begins at 0 here: an alert on a rise would not
        see a series that is born with the first players cut."""
        self.drain_evicted.labels(self.version(label))

    def version(self, label: str) -> str:
        """The label, cut to `MAX_VERSION` characters, or `other` once there are too many."""
        label = label[:MAX_VERSION]
        if label in self._versions or len(self._versions) < MAX_VERSIONS:
            self._versions.add(label)
            return label
        return "other"
