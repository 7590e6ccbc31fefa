"""What a port's front exports to Prometheus: connections that are open, and those that got none."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class FrontMetrics:
    """Of one program; `port` is `players` or `http`."""

    def __init__(self, registry: CollectorRegistry, *, program: str) -> None:
        self.open = Gauge(f"sluice_{program}_connections", "TCP connections.", ["port"], registry=registry)
        self.refused = Counter(
            f"sluice_{program}_connections_refused",
            "Connections refused or evicted, by what was used up.",
            ["port", "why"],
            registry=registry,
        )
